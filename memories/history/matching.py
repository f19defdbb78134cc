"""What two sequences of words or lines have in common.

Elements that occur once in both are matched first, as in a patience diff, and the stretches between them are compared
recursively; only short stretches are compared element by element. So the work grows with the length, not with its
square."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

_MAX_COMPARISONS = 10_000  # comparisons of elements within one short stretch
_MAX_ALL_COMPARISONS = 200_000  # the same for all stretches; the rest counts as different
_MAX_DEPTH = 12  # levels of recursion

Span = tuple[int, int, int, int]  # start and end in the old sequence, start and end in the new one
Pair = tuple[int, int]  # positions of the same element in the old and the new sequence
Run = tuple[int, int, int]  # start in the old sequence, start in the new one, number of equal elements


def equal_runs(old: Sequence[str], new: Sequence[str]) -> Iterator[Run]:
    """Yield the runs of elements that both sequences have, in their order, and finally an empty run at the ends. The
    elements between two runs differ."""
    start, length = (0, 0), 0
    for at_old, at_new, more in sorted(_matched(old, new)):
        if length and (at_old, at_new) == (start[0] + length, start[1] + length):
            length += more
            continue
        if length:
            yield *start, length
        start, length = (at_old, at_new), more
    if length:
        yield *start, length
    yield len(old), len(new), 0


def _matched(old: Sequence[str], new: Sequence[str]) -> list[Run]:
    """Return the equal runs, in no particular order."""
    found: list[Run] = []
    waiting: list[tuple[Span, int]] = [((0, len(old), 0, len(new)), 0)]
    left = _MAX_ALL_COMPARISONS
    while waiting:
        span, depth = waiting.pop()
        (a, b, c, d), ends = _without_equal_ends(old, new, span)
        found += ends
        if a == b or c == d:
            continue
        size = (b - a) * (d - c)
        if size <= min(_MAX_COMPARISONS, left):
            left -= size
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
    """Return the longest series of elements that occur once in each sequence, in the same order."""
    a, b, c, d = span
    once_old = {element for element, count in Counter(old[a:b]).items() if count == 1}
    counts = Counter(new[c:d])
    place = {new[at]: at for at in range(c, d) if counts[new[at]] == 1 and new[at] in once_old}
    pairs = [(at, place[old[at]]) for at in range(a, b) if old[at] in place]
    tails: list[int] = []  # by length, the smallest last position in `new` of a series
    last: list[int] = []  # the index of that pair
    before: list[int] = []  # the previous pair of each pair in its series
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
