"""The paths of a book's documents: only MEMORY.md, memory_summary.md and skills/<name>/SKILL.md are allowed."""

import re

from memories.errors import InvalidRequest

MEMORY_PATH = "MEMORY.md"
SUMMARY_PATH = "memory_summary.md"
_SKILL_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,62}[A-Za-z0-9])?")
_SKILL_PATH = re.compile(rf"skills/({_SKILL_NAME.pattern})/SKILL\.md")
ROOT = "memory://root"


def is_skill_name(name: str) -> bool:
    """Return True for a valid name: 1 to 64 ASCII letters, digits, - and _, with - and _ only in the middle."""
    return _SKILL_NAME.fullmatch(name) is not None


def skill_path(name: str) -> str:
    """Return the path of the document of a skill with a valid name (is_skill_name)."""
    return f"skills/{name}/SKILL.md"


def skill_name(path: str) -> str:
    """Return the name of the skill with this path, or ""."""
    match = _SKILL_PATH.fullmatch(path)
    return match[1] if match else ""


def _is_path(path: str) -> bool:
    return path in {MEMORY_PATH, SUMMARY_PATH} or bool(skill_name(path))


def clean_path(path: str) -> str:
    """Return a valid path unchanged. Raises InvalidRequest for any other; nothing is decoded or resolved."""
    if _is_path(path):
        return path
    raise InvalidRequest(f"A document is {MEMORY_PATH}, {SUMMARY_PATH} or skills/<name>/SKILL.md.", param="path")


def resolve_uri(uri: str) -> str:
    """Return the path for a `memory://root` address; the root itself is the summary. Raises InvalidRequest.

    Only exact spellings are valid: no other scheme or host, no `..`, no percent-encoding, no query."""
    if uri in {ROOT, f"{ROOT}/"}:
        return SUMMARY_PATH
    path = uri.removeprefix(f"{ROOT}/")
    if path == uri or not _is_path(path):
        raise InvalidRequest(
            f"Documents are {ROOT} (the summary), {ROOT}/{MEMORY_PATH} and {ROOT}/skills/<name>/SKILL.md, no others.",
            param="path",
        )
    return path
