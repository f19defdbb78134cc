"""Ids of tool calls. The model's own id is sent back unchanged, since some models read it. It is replaced only if it is
missing, repeated or too long, or if it comes from another model and has a shape that the server refuses. The
replacement has nine letters and digits, which every server accepts, and depends only on the id it replaces, so that a
growing conversation keeps its prefix for prompt caches."""

import hashlib
import re
from collections.abc import Container

MAX_ID_CHARS = 128  # the length of the database column
SHAPES = {
    "any": re.compile(r".{1,128}", re.DOTALL),
    "short": re.compile(r".{1,40}", re.DOTALL),  # OpenAI
    "word": re.compile(r"[A-Za-z0-9_-]{1,64}"),  # Anthropic
    "nine": re.compile(r"[A-Za-z0-9]{9}"),  # Mistral
}
_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def replacement_id(unusable: str, *, taken: Container[str]) -> str:
    """Return a nine-character id for an unusable one: always the same one, unless it is taken."""
    attempt = 0
    while (new := _nine_characters(f"{attempt}:{unusable}")) in taken:
        attempt += 1
    return new


def _nine_characters(text: str) -> str:
    number = int.from_bytes(hashlib.sha256(text.encode("utf-8", "replace")).digest()[:8], "big")
    characters = []
    for _ in range(9):
        number, position = divmod(number, len(_ALPHABET))
        characters.append(_ALPHABET[position])
    return "".join(characters)
