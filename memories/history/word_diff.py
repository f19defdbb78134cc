"""A readable word-by-word diff of two versions of a text."""

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
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
    tail = common_prefix(old[head:][::-1], new[head:][::-1])
    changed_old, changed_new = old[head : len(old) - tail], new[head : len(new) - tail]
    matcher = SequenceMatcher(None, changed_old, changed_new, autojunk=longest > _MAX_COMPARED)
    found: list[tuple[Literal["same", "del", "ins"], list[str]]] = [("same", old[:head])]
    for operation, start_old, end_old, start_new, end_new in matcher.get_opcodes():
        if operation == "equal":
            found.append(("same", changed_old[start_old:end_old]))
        else:
            found += [("del", changed_old[start_old:end_old]), ("ins", changed_new[start_new:end_new])]
    found.append(("same", old[len(old) - tail :]))
    return tuple(Piece(kind, "".join(pieces)) for kind, pieces in found if pieces)


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
