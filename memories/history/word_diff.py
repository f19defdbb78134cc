"""What changed between two versions of a text, word by word, for people to read.

Words that stand once in both texts are matched first, as in a patience diff, and what lies between them is compared
again; only short stretches are compared word against word. So the work grows with the number of words, not with its
square, whatever the texts are."""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Literal, NamedTuple

_PIECES = re.compile(r"\s+|\w+(?:[:.,/'’-]\w+)*|[^\w\s]")
_LONGEST = 2_000  # pieces of one text; of longer ones the whole text is shown as replaced
_MOST_CELLS = 10_000  # comparisons of one short stretch, word against word
_DEEPEST = 12  # how often what lies between matched words is compared again

Span = tuple[int, int, int, int]  # from, to in the old pieces; from, to in the new ones
Pair = tuple[int, int]  # a piece of the old text and the same piece of the new one
Run = tuple[int, int, int]  # start in the old pieces, start in the new ones, how many in a row are the same


class Piece(NamedTuple):
    """A stretch of text that stayed, went or came."""

    kind: Literal["same", "del", "ins"]
    text: str


def word_diff(before: str, after: str) -> tuple[Piece, ...]:
    """Return both texts as one row of pieces: joined without "ins" they give `before`, without "del" `after`."""
    if before == after:
        return (Piece("same", after),) if after else ()
    old, new = _PIECES.findall(before), _PIECES.findall(after)
    if max(len(old), len(new)) > _LONGEST:
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
    """Yield the runs, those that follow each other joined to one, and finally an empty one at both ends."""
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
    """Return the pieces that are the same in both texts, in the order of both."""
    found: list[Run] = []
    waiting: list[tuple[Span, int]] = [((0, len(old), 0, len(new)), 0)]
    while waiting:
        span, depth = waiting.pop()
        (a, b, c, d), ends = _without_equal_ends(old, new, span)
        found += ends
        if a == b or c == d:
            continue
        if (b - a) * (d - c) <= _MOST_CELLS:
            blocks = SequenceMatcher(None, old[a:b], new[c:d], autojunk=False).get_matching_blocks()
            found += [(a + block.a, c + block.b, block.size) for block in blocks if block.size]
            continue
        anchors = _anchors(old, new, (a, b, c, d)) if depth < _DEEPEST else []
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


def common_prefix(one: Sequence[str], other: Sequence[str]) -> int:
    """Return how many pieces, or characters, two texts begin with together."""
    same, differ = 0, min(len(one), len(other)) + 1
    while differ - same > 1:
        middle = (same + differ) // 2
        if one[same:middle] == other[same:middle]:
            same = middle
        else:
            differ = middle
    return same


def _anchors(old: Sequence[str], new: Sequence[str], span: Span) -> list[Pair]:
    """Return the longest row, in the order of both texts, of pieces that stand once in each."""
    a, b, c, d = span
    once_old = {piece for piece, count in Counter(old[a:b]).items() if count == 1}
    counts = Counter(new[c:d])
    place = {new[at]: at for at in range(c, d) if counts[new[at]] == 1 and new[at] in once_old}
    pairs = [(at, place[old[at]]) for at in range(a, b) if old[at] in place]
    tails: list[int] = []  # the smallest last place in `new` of a row of each length
    last: list[int] = []  # which pair that is
    before: list[int] = []  # the pair before each pair in its row
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
