"""Finding a quote in a text. Case, width, white space, punctuation and quotation marks are forgiven, and a quote may
leave something out where it says so with an ellipsis."""

import re
import unicodedata

SHORTEST_QUOTE = 3  # letters and digits of a quote; what is shorter stands everywhere
_NO_WORD = re.compile(r"[\W_]+")
_LEFT_OUT = re.compile(r"[\[(]?(?:…|\.{3,})[\])]?")


def folded(text: str) -> str:
    """Return the letters and digits of a text, the same for texts that differ in nothing else."""
    return _NO_WORD.sub("", unicodedata.normalize("NFKC", text).casefold())


def parts_of(quote: str) -> list[str]:
    """Return the folded parts of a quote between its ellipses; none where it is too short to be one."""
    parts = [part for piece in _LEFT_OUT.split(quote) if (part := folded(piece))]
    return parts if sum(map(len, parts)) >= SHORTEST_QUOTE else []


def find_parts(parts: list[str], text: str) -> tuple[int, int] | None:
    """Return where the parts stand in a folded text, in their order: where the first begins and the last ends."""
    first, at = -1, 0
    for part in parts:
        found = text.find(part, at)
        if found < 0:
            return None
        first, at = (found if first < 0 else first), found + len(part)
    return first, at


def unfolded(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the place in a text of a place in its folded form."""
    reached = 0
    begins = len(text)
    for at, letter in enumerate(text):
        size = len(folded(letter))
        if size and reached <= start < reached + size:
            begins = at
        reached += size
        if size and reached >= end:
            return min(begins, at), at + 1
    return min(begins, len(text)), len(text)
