"""Names of people and files in sentences, whatever the direction of their writing."""

import unicodedata

_CONTROLS = dict.fromkeys(map(ord, "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"))
_TO_THE_LEFT = frozenset({"R", "AL"})


def isolated(name: str) -> str:
    """Return a name for a sentence, without controls of direction, which would turn the rest of the sentence around,
    and between isolates if it has letters that are written from right to left."""
    name = name.translate(_CONTROLS)
    turned = any(unicodedata.bidirectional(char) in _TO_THE_LEFT for char in name)
    return f"\u2068{name}\u2069" if turned else name
