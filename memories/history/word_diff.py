"""A readable word-by-word diff of two versions of a text.

Words that occur once in both texts are matched first, as in a patience diff, and the stretches between them are
compared recursively; only short stretches are compared word by word. So the work grows with the number of words, not
with its square."""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Literal, NamedTuple

_PIECES = re.compile(r"\s+|\w+(?:[:.,/'’-]\w+)*|[^\w\s]")
_MAX_PIECES = 2_000  # pieces of one text; longer texts are shown as replaced as a whole
_MAX_COMPARISONS = 10_000  # comparisons of words within one short stretch
_MAX_DEPTH = 12  # levels of recursion

Span = tuple[int, int, int, int]  # start and end in the old pieces, start and end in the new ones
Pair = tuple[int, int]  # positions of the same piece in the old and the new text
Run = tuple[int, int, int]  # start in the old pieces, start in the new ones, number of equal pieces


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
    out: list[Piece] = []
    left, right = 0, 0
    for start_old, start_new, length in _runs(sorted(_matched(old, new)), len(old), len(new)):
        out += [Piece("del", text) for text in ["".join(old[left:start_old])] if text]
        out += [Piece("ins", text) for text in ["".join(new[right:start_new])] if text]
        left, right = start_old + length, start_new + length
        out += [Piece("same", text) for text in ["".join(old[start_old:left])] if text]
    return tuple(out)


def _runs(found: Sequence[Run], end_old: int, end_new: int) -> Iterator[Run]:
    """Yield the runs, with adjacent ones joined, and finally an empty run at the ends of both texts."""
    start, length = (0, 0), 0
    for old, new, more in found:
        if length and (old, new) == (start[0] + length, start[1] + length):
            length += more
            continue
        if length:
            yield *start, length
        start, length = (old, new), more
    if length:
        yield *start, length
    yield end_old, end_new, 0


def _matched(old: Sequence[str], new: Sequence[str]) -> list[Run]:
    """Return the runs of equal pieces of both texts, in no particular order."""
    found: list[Run] = []
    waiting: list[tuple[Span, int]] = [((0, len(old), 0, len(new)), 0)]
    while waiting:
        span, depth = waiting.pop()
        (a, b, c, d), ends = _without_equal_ends(old, new, span)
        found += ends
        if a == b or c == d:
            continue
        if (b - a) * (d - c) <= _MAX_COMPARISONS:
            blocks = SequenceMatcher(None, old[a:b], new[c:d], autojunk=False).get_matching_blocks()
            found += [(a + block.a, c + block.b, block.size) for block in blocks if block.size]
            continue
        anchors = _anchors(old, new, (a, b, c, d)) if depth < _MAX_DEPTH else []
        found += [(*pair, 1) for pair in anchors]
        for (i, j), (k, m) in zip([(a - 1, c - 1), *anchors], [*anchors, (b, d)], strict=True):
            if anchors and k > i + 1 and m > j + 1:
                waiting.append(((i + 1, k, j + 1, m), depth + 1))
    return found


def _without_equal_ends(old: Sequence[str], new: Sequence[str], span: Span) -> tuple[Span, list[Run]]:
    a, b, c, d = span
    head = common_prefix(old[a:b], new[c:d])
    tail = common_prefix(old[a + head : b][::-1], new[c + head : d][::-1])
    runs = ((a, c, head), (b - tail, d - tail, tail))
    return (a + head, b - tail, c + head, d - tail), [run for run in runs if run[2]]


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


def _anchors(old: Sequence[str], new: Sequence[str], span: Span) -> list[Pair]:
    """Return the longest sequence of pieces that occur once in each text and have the same order in both."""
    a, b, c, d = span
    once_old = {piece for piece, count in Counter(old[a:b]).items() if count == 1}
    counts = Counter(new[c:d])
    place = {new[at]: at for at in range(c, d) if counts[new[at]] == 1 and new[at] in once_old}
    pairs = [(at, place[old[at]]) for at in range(a, b) if old[at] in place]
    tails: list[int] = []  # by length, the smallest last position in `new` of a sequence
    last: list[int] = []  # the index of that pair
    before: list[int] = []  # the previous pair of each pair in its sequence
    for index, (_, at) in enumerate(pairs):
        length = bisect_left(tails, at)
        before.append(last[length - 1] if length else -1)
        tails[length : length + 1], last[length : length + 1] = [at], [index]
    row: list[Pair] = []
    index = last[-1] if last else -1
    while index >= 0:
        row.append(pairs[index])
        index = before[index]
    return row[::-1]
