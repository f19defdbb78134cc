"""A readable word-by-word diff of two versions of a text."""

import re
from typing import Literal, NamedTuple

from memories.history.matching import equal_runs

_PIECES = re.compile(r"\s+|\w+(?:[:.,/'’-]\w+)*|[^\w\s]")
_MAX_PIECES = 2_000  # pieces of one text; longer texts are shown as replaced as a whole


class Piece(NamedTuple):
    """A stretch of text that was kept, deleted or inserted."""

    kind: Literal["same", "del", "ins"]
    text: str


def word_diff(before: str, after: str) -> tuple[Piece, ...]:
    """Return both texts as one sequence of pieces: without "ins" they join to `before`, without "del" to `after`."""
    if before == after:
        return (Piece("same", after),) if after else ()
    old, new = _PIECES.findall(before), _PIECES.findall(after)
    if max(len(old), len(new)) > _MAX_PIECES:
        return Piece("del", before), Piece("ins", after)
    pieces: list[Piece] = []
    left, right = 0, 0
    for start_old, start_new, length in equal_runs(old, new):
        pieces += Piece("del", "".join(old[left:start_old])), Piece("ins", "".join(new[right:start_new]))
        left, right = start_old + length, start_new + length
        pieces.append(Piece("same", "".join(old[start_old:left])))
    return tuple(piece for piece in pieces if piece.text)
