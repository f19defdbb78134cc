"""Paths of a book's documents: MEMORY.md, memory_summary.md and skills/<name>/SKILL.md are the only ones."""

import re

from memories.errors import InvalidRequest

MEMORY_PATH = "MEMORY.md"
SUMMARY_PATH = "memory_summary.md"
MAX_SKILL_NAME = 64
_SKILL_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,62}[A-Za-z0-9])?")
_SKILL_PATH = re.compile(r"skills/([^/]+)/SKILL\.md")
ROOT = "memory://root"


def is_skill_name(name: str) -> bool:
    """Return True if a skill may be called so: 1 to 64 ASCII letters, digits, - and _; the first and last no - or _."""
    return _SKILL_NAME.fullmatch(name) is not None


def skill_path(name: str) -> str:
    """Return the path of a skill's document. Raises InvalidRequest for a name that is not allowed."""
    if not is_skill_name(name):
        raise InvalidRequest(
            f"A skill's name has 1 to {MAX_SKILL_NAME} letters, digits, - and _, the first and last a letter or digit."
        )
    return f"skills/{name}/SKILL.md"


def skill_name(path: str) -> str:
    """Return the name of the skill whose document this is, or ""."""
    match = _SKILL_PATH.fullmatch(path)
    return match[1] if match and is_skill_name(match[1]) else ""


def clean_path(path: str) -> str:
    """Return the path if a document may have it. Raises InvalidRequest; nothing is decoded, resolved or repaired."""
    if path in {MEMORY_PATH, SUMMARY_PATH} or skill_name(path):
        return path
    raise InvalidRequest(f"A document is {MEMORY_PATH}, {SUMMARY_PATH} or skills/<name>/SKILL.md.", param="path")


def resolve_uri(uri: str) -> str:
    """Return the path that a `memory://root` address names; the root itself is the summary. Raises InvalidRequest.

    Only the exact spellings exist: no other scheme or host, no `..`, nothing percent-encoded, no query."""
    if uri in {ROOT, f"{ROOT}/"}:
        return SUMMARY_PATH
    path = uri.removeprefix(f"{ROOT}/")
    if path == uri or (path not in {MEMORY_PATH, SUMMARY_PATH} and not skill_name(path)):
        raise InvalidRequest(
            f"read knows {ROOT} (the summary), {ROOT}/{MEMORY_PATH}, {ROOT}/skills/<name>/SKILL.md, and nothing else.",
            param="path",
        )
    return path
