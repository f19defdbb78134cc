"""Texts for people use the same plain phrases everywhere: pages, the admin, mails, toasts, errors, commands and
documentation. Addresses, API fields and names in code are not checked."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("config", "gateway", "memories", "reviews", "search")
# Phrases to avoid, and what to write instead.
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
# Texts for models, whose wording was measured.
EXCUSED = {"memories/evidence/decision.py": {"stands nowhere"}}
_PHRASES = re.compile("|".join(rf"(?:\b(?:{phrase})\b)" for phrase in INSTEAD), re.IGNORECASE)


def strings_of(path: Path) -> Iterator[str]:
    """Yield the texts in a module that are not docstrings."""
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
    """Return a page, script or document without comments, addresses and code in backticks."""
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


def test_no_text_uses_a_phrase_that_has_a_plainer_one() -> None:
    found = {
        f"{name}: {match[0]}"
        for name, text in surfaces()
        for match in _PHRASES.finditer(text)
        if match[0].lower() not in EXCUSED.get(name, ())
    }
    assert sorted(found) == []


@pytest.mark.parametrize("text", ["It was turned down.", "Whoever reads it", "close to your question in meaning"])
def test_phrases_are_recognised(text: str) -> None:
    assert _PHRASES.search(text)
