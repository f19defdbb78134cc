"""A readable word-by-word diff of two versions of a text."""

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import groupby, pairwise
from typing import Literal, NamedTuple

_PIECES = re.compile(r"\s+|\w+(?:[:.,/'’-]\w+)*|[^\w\s]")
_MAX_PIECES = 2_000  # pieces of one text; longer texts are shown as replaced as a whole
_MAX_COMPARED = 400
"""Pieces of one text up to which every piece is compared with every equal one. In longer texts, pieces that make up
more than 1 % of it are only compared beside rarer ones, so that the work does not grow quadratically."""


class Piece(NamedTuple):
    """A stretch of text that was kept, deleted or inserted."""

    kind: Literal["same", "del", "ins"]
    text: str


def word_diff(before: str, after: str) -> tuple[Piece, ...]:
    """Return both texts as one sequence of pieces: without "ins" they join to `before`, without "del" to `after`."""
    old, new = _PIECES.findall(before), _PIECES.findall(after)
    longest = max(len(old), len(new))
    if before != after and longest > _MAX_PIECES:
        return Piece("del", before), Piece("ins", after)
    head = common_prefix(old, new)
    matcher = SequenceMatcher(None, _keys(old[head:]), _keys(new[head:]), autojunk=longest > _MAX_COMPARED)
    found: list[Piece] = [Piece("same", text) for text in old[:head]]
    for _, start_old, end_old, start_new, end_new in matcher.get_opcodes():
        gone, come = old[head + start_old : head + end_old], new[head + start_new : head + end_new]
        same = common_prefix(gone[::-1], come[::-1])
        found += [Piece("del", text) for text in gone[: len(gone) - same]]
        found += [Piece("ins", text) for text in come[: len(come) - same]]
        found += [Piece("same", text) for text in come[len(come) - same :]]
    return tuple(Piece(kind, "".join(piece.text for piece in run)) for kind, run in groupby(found, lambda p: p.kind))


def _keys(pieces: Sequence[str]) -> list[str]:
    """Return what is compared. White space counts together with the word before it: a space alone is everywhere."""
    return [before + piece if piece.isspace() else piece for before, piece in pairwise(["", *pieces])]


def common_prefix(left: Sequence[str], right: Sequence[str]) -> int:
    """Return the length of the common prefix of two sequences."""
    same, differ = 0, min(len(left), len(right)) + 1
    while differ - same > 1:
        middle = (same + differ) // 2
        if left[same:middle] == right[same:middle]:
            same = middle
        else:
            differ = middle
    return same
