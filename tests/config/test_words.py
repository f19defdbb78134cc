"""The words that people read are plain and the same everywhere: on pages, in the admin, in mails, toasts, errors,
commands and documentation. What is an address, a field of an API or a name in code is not looked at."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("config", "gateway", "memories", "reviews", "search")
# What is not said, and what is said instead.
INSTEAD = {
    r"turn(ed)? down": "reject",
    r"t(ake|akes|aken|ook) back": "undo, revoke",
    r"puts? back|putting back": "restore",
    r"written anew|made anew": "rewritten, built again",
    r"whoever": "anyone who, the person who, an administrator",
    r"kept nowhere|stands? nowhere": "not stored, is not in",
    r"in meaning to|close to (the|your) \w+ in meaning": "similar meaning",
    r"forget everything": "delete everything",
    r"ceilings?": "limit",
    r"does not work any more": "no longer works",
    r"no job waits|is open for long": "Queue empty. Nothing is stuck.",
    r"mended|mends": "edit, fix",
    r"write to assistant": "message assistant",
}
# Words that a model reads, where each wording was measured.
EXCUSED = {"memories/evidence/decision.py": {"stands nowhere"}}
_PHRASES = re.compile("|".join(rf"(?:\b(?:{phrase})\b)" for phrase in INSTEAD), re.IGNORECASE)


def strings_of(path: Path) -> Iterator[str]:
    """The texts in a module that are not docstrings."""
    tree = ast.parse(path.read_text())
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in docstrings
            and " " in node.value
        ):
            yield node.value


def without_code(text: str) -> str:
    """A page, a script or a document without comments, addresses and what stands between backticks."""
    text = re.sub(r"\{#.*?#\}|<!--.*?-->", "", text, flags=re.DOTALL)
    return re.sub(r"`[^`\n]*`|\]\([^)]*\)|^\s*//.*$|\s//\s.*$", "", text, flags=re.MULTILINE)


def surfaces() -> Iterator[tuple[str, str]]:
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            if "migrations" not in path.parts:
                for text in strings_of(path):
                    yield str(path.relative_to(ROOT)), text
    pages = [*(ROOT / "templates").rglob("*.*"), *(ROOT / "static").rglob("*.js")]
    for path in sorted([*pages, *(ROOT / "docs").glob("*.md"), ROOT / "README.md"]):
        yield str(path.relative_to(ROOT)), without_code(path.read_text())


def test_no_surface_says_what_has_a_plainer_word() -> None:
    found = {
        f"{name}: {match[0]}"
        for name, text in surfaces()
        for match in _PHRASES.finditer(text)
        if match[0].lower() not in EXCUSED.get(name, ())
    }
    assert sorted(found) == []


@pytest.mark.parametrize("said", ["It was turned down.", "Whoever reads it", "close to your question in meaning"])
def test_such_a_phrase_is_recognised(said: str) -> None:
    assert _PHRASES.search(said)
