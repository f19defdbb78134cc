"""Ids of tool calls. The model's own id goes back to it unchanged, since some ids are part of what the model reads. An
id is replaced only if it is missing, repeated or too long, or if it comes from another model and has a shape that the
server refuses. The replacement has nine letters and digits, which every server accepts, and depends only on what it
replaces, so that a conversation that grows keeps its first bytes."""

import hashlib
import re
from collections.abc import Container

LONGEST = 128  # as long as the column of a stored result
SHAPES = {
    "any": re.compile(r".{1,128}", re.DOTALL),
    "short": re.compile(r".{1,40}", re.DOTALL),  # OpenAI
    "word": re.compile(r"[A-Za-z0-9_-]{1,64}"),  # Anthropic
    "nine": re.compile(r"[A-Za-z0-9]{9}"),  # Mistral
}
_LETTERS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def made_id(replaces: str, *, taken: Container[str]) -> str:
    """Return nine letters and digits in place of an unusable id. The same id gives the same result, unless that is
    taken."""
    again = 0
    while (found := _nine(f"{again}:{replaces}")) in taken:
        again += 1
    return found


def _nine(text: str) -> str:
    number = int.from_bytes(hashlib.sha256(text.encode("utf-8", "replace")).digest()[:8], "big")
    letters = []
    for _ in range(9):
        number, at = divmod(number, len(_LETTERS))
        letters.append(_LETTERS[at])
    return "".join(letters)
