"""Ids of tool calls. The model's own id goes back to it unchanged: some are part of what the model reads. Only one that
is missing, repeated, too long, or not of this model and of a shape that its server refuses is replaced, by nine letters
and digits, which every server takes. They are made from what they replace, so that a request that grows begins with the
same bytes."""

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
    """Nine letters and digits for an id that can't be used: the same for the same, unless it is taken."""
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
