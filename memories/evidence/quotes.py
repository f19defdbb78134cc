"""Find a quote in a text. Case, width, white space, punctuation and quotation marks are ignored, and an ellipsis in the
quote matches any omitted text."""

import re

from search.normal_form import normalized

MIN_QUOTE_CHARS = 3  # letters and digits; shorter texts occur everywhere
_SLICE = 1000  # characters that are folded at once on the way to the span
_PIECE = 20_000
_NON_WORD = re.compile(r"[\W_]+")
_ELLIPSIS = re.compile(r"[\[(]?(?:…|\.{3,})[\])]?")


def folded(text: str) -> str:
    """Return only the letters and digits of a text, with case and width folded."""
    text = normalized(text).casefold()
    pieces = (text[start : start + _PIECE] for start in range(0, len(text), _PIECE))  # a call holds the GIL
    return "".join([_NON_WORD.sub("", piece) for piece in pieces])


def quote_parts(quote: str) -> list[str]:
    """Return the folded parts of a quote between its ellipses; empty if the quote is too short."""
    parts = [part for piece in _ELLIPSIS.split(quote) if (part := folded(piece))]
    return parts if sum(map(len, parts)) >= MIN_QUOTE_CHARS else []


def find_parts(parts: list[str], text: str) -> tuple[int, int] | None:
    """Return the span of a folded text from the first part to the last, or None if they do not occur in this order."""
    first, at = -1, 0
    for part in parts:
        found = text.find(part, at)
        if found < 0:
            return None
        first, at = (found if first < 0 else first), found + len(part)
    return first, at


def original_span(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the span of `text` that corresponds to a span of its folded form."""
    reached = at = 0
    while (at + _SLICE < len(text)) and reached + (size := len(folded(text[at : at + _SLICE]))) <= start:
        reached, at = reached + size, at + _SLICE
    begins = len(text)
    for place, letter in enumerate(text[at:], at):
        size = len(folded(letter))
        if size and reached <= start < reached + size:
            begins = place
        reached += size
        if size and reached >= end:
            return min(begins, place), place + 1
    return min(begins, len(text)), len(text)
