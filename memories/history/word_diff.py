"""A readable word-by-word diff of two versions of a text. A few words that happen to be equal, between larger changes,
count as changed too."""

import re
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Literal, NamedTuple

from memories.history.matching import Run, equal_runs

_PIECES = re.compile(r"\s+|\w+(?:[:.,/'’-]\w+)*|[^\w\s]")
_LEAST_SHARE = 2  # how many times longer than an equal run both changes beside it are, if it counts as changed
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
    for start_old, start_new, length in _long_enough(equal_runs(old, new), old, new):
        pieces += Piece("del", "".join(old[left:start_old])), Piece("ins", "".join(new[right:start_new]))
        left, right = start_old + length, start_new + length
        pieces.append(Piece("same", "".join(old[start_old:left])))
    return tuple(piece for piece in pieces if piece.text)


def _long_enough(runs: Iterable[Run], old: Sequence[str], new: Sequence[str]) -> list[Run]:
    """Return the runs without those that are short beside both changes around them, such as a single "the"."""
    old_at, new_at = ([0, *accumulate(map(len, pieces))] for pieces in (old, new))

    def changed(before: Run, after: Run) -> int:
        """Return the number of characters that differ between two runs, in the longer text."""
        deleted = old_at[after[0]] - old_at[before[0] + before[2]]
        return max(deleted, new_at[after[1]] - new_at[before[1] + before[2]])

    kept: list[Run] = [(0, 0, 0)]
    for run in runs:
        while len(kept) > 1:
            start, _, length = kept[-1]
            size = old_at[start + length] - old_at[start]
            if min(changed(kept[-2], kept[-1]), changed(kept[-1], run)) < _LEAST_SHARE * size:
                break
            kept.pop()
        kept.append(run)
    return kept[1:]
