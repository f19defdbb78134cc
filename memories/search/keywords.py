"""The `local` rule that takes keywords out of a message without a model."""

from __future__ import annotations

_TWENTY = "the a an and or but in on at to for of as by is was are were be been"
STOP_WORDS = frozenset(_TWENTY.split())
"""The twenty words that are never keywords."""

_SPACES = str.maketrans(dict.fromkeys(".,!?;:()[]{}\"'\n\t", " "))
_FEWEST_BYTES = 3


def extract_keywords(text: str) -> list[str]:
    """Return the keywords of `text` in order of first occurrence, without duplicates.

    Lower-cases, turns punctuation into spaces, splits on white space, keeps tokens longer than
    two bytes of UTF-8 (so Cyrillic "ты" stays and "my" goes) and drops the stop words.
    """
    tokens = text.lower().translate(_SPACES).split()
    kept = (
        token
        for token in tokens
        if len(token.encode("utf-8", "surrogatepass")) >= _FEWEST_BYTES and token not in STOP_WORDS
    )
    return list(dict.fromkeys(kept))
