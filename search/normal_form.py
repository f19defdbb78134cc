"""Unicode normalisation of texts that anybody may have written.

`unicodedata.normalize` sorts the marks that follow a letter in quadratic time, with the interpreter lock held: 16,000
marks in alternating order take 1.4 s. Here a long text is normalised in slices."""

import unicodedata
from typing import Literal

_SLICE = 256  # characters
_MAX_MARKS = 32  # a text may be cut behind so many marks in a row; Unicode's stream-safe format has 30
_CONTEXT = 4  # characters with which the next one may be composed


def normalized(text: str, form: Literal["NFC", "NFKC"] = "NFKC") -> str:
    """Return the text in a normal form of Unicode, except that very many marks in a row are not put in order."""
    if len(text) <= _SLICE or text.isascii():
        return unicodedata.normalize(form, text)
    pieces, start = list[str](), 0
    while start < len(text):
        end = _cut(text, start + _SLICE, form)
        pieces.append(unicodedata.normalize(form, text[start:end]))
        start = end
    return "".join(pieces)


def _cut(text: str, start: int, form: Literal["NFC", "NFKC"]) -> int:
    """Return the first place from `start` on where the character is not affected by those before it."""
    end = min(start + _MAX_MARKS, len(text))
    for place in range(start, end):
        alone = unicodedata.normalize(form, text[place])
        before = text[max(0, place - _CONTEXT) : place]
        if not unicodedata.combining(alone[0]) and (
            unicodedata.normalize(form, before + text[place]) == unicodedata.normalize(form, before) + alone
        ):
            return place
    return end
