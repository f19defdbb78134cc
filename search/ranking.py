"""Join the kinds of evidence into one score, decide whether it is enough, and pick the best entries."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from math import log2
from typing import Final

import numpy as np
from numpy.typing import NDArray

from search.analysis import Ints
from search.book import SMALL_BOOK, BookArrays
from search.evidence import Evidence
from search.query import Query
from search.vectors import Floats

# Weights of evidence. Graded evidence is counted in standard deviations over the book.
WORDS: Final = 0.5
"""Shared words: in the entry, in its keywords and, fading with distance, around it."""
NEAR_WORDS: Final = 0.2
"""Each query word's closest word in the entry itself."""
MEANING: Final = 0.65
"""Cosine of static embeddings, entry and surroundings."""
MEANING_BESIDE: Final = 0.5
"""The same where there are vectors of an embedding model: both say what a text is about."""
UPSTREAM: Final = 0.75
"""Closeness by an embedding model, where there are vectors."""
SESSION: Final = 0.15
"""Shared words in the whole session: the talk was about this."""
SPEAKER: Final = 2.7
"""Said by the one person whom the message names."""
ASKS: Final = 0.7
"""Taken off entries that end in a question: questions rarely hold the answer."""
ANSWERS: Final = 0.25
"""Added to an entry that follows a question."""
TIME: Final = 2.3
"""The message asks when, and the entry says when."""
DATE: Final = 4.8
"""Said on, or within days after, a day which the message names."""
_WEIGHTS: Final = np.array([WORDS, NEAR_WORDS, MEANING, SESSION])
_WEIGHTS_BESIDE: Final = np.array([WORDS, NEAR_WORDS, MEANING_BESIDE, SESSION])
SESSION_REPEAT: Final = 0.07
"""Taken off per hit already listed from the same session, so that one talk does not fill the list."""

# When to return nothing. Scores only order the entries of one book; a plain cut through them, or through the cosine,
# either loses answers or lets noise in. So three kinds of absolute evidence are added up: words met, meaning met, and
# whether the message is about a person of this book at all.
WORDS_SCALE: Final = 8.0
"""Rarity of words met that is worth one point: about two rare words."""
MEANING_SCALE: Final = 0.4
"""Cosine that is worth one point."""
NAME_POINTS: Final = 0.5
"""Points for a name or number of the book in the message."""
PERSONAL_POINTS: Final = 1.0
"""Points for a message about its writer, or about someone who speaks in the book."""
ENOUGH: Final = 1.0
"""Points needed. A general question needs words and meaning; a personal one needs a trace of either."""
UPSTREAM_SCALE: Final = 2.0
"""Closeness by an embedding model that is worth one point; it takes the place of the static meaning."""
ENOUGH_BESIDE: Final = 1.6
"""Points needed with it: a closer look finds more."""
BY_CHANCE: Final = 0.17
"""Points more that are needed with every doubling beyond `SMALL_BOOK` facts: among many, the best for any message is
close by chance. Not in conversations, where a message most often goes on with what was said."""
LOOKED_AT: Final = 5
"""Best entries whose evidence speaks for the book."""
_ROUNDING: Final = 1e-3
GROUPS: Final = 8
"""Groups of entries per wanted one in which the best are looked for."""
TAIL: Final = 0.06
"""Entries nearer to the middle of the book than this share of the best one's lead are left out."""


def total_score(evidence: Evidence, query: Query, book: BookArrays) -> Floats:
    """Return one score per entry; only differences within one query mean something."""
    upstream = evidence.upstream
    weights = _WEIGHTS if upstream is None else _WEIGHTS_BESIDE
    total = _standard(evidence.graded, weights[: len(evidence.graded)])
    if upstream is not None:
        lead = upstream.values - upstream.values[upstream.known].mean()
        total += UPSTREAM * np.where(upstream.known, lead, np.float32(0))
    if query.speakers:
        total += SPEAKER * evidence.speaker
    if query.asks_when:
        total += TIME * evidence.time
    if query.times:
        total += DATE * evidence.date
    if book.around.any:
        follows = book.around.before >= 0
        total -= ASKS * book.facts.asks
        total += ANSWERS * np.where(follows, book.facts.asks[book.around.before], False)
    return total


def _standard(scores: Floats, weights: NDArray[np.float64]) -> Floats:
    """Return the weighted sum of z-scores over the columns; a row whose values are all equal counts 0."""
    size = scores.shape[1]
    lead = scores - (np.add.reduce(scores, axis=1) / size)[:, None]
    spread = np.sqrt(np.vecdot(lead, lead) / size)
    spread[spread < 1e-6] = np.inf
    return np.asarray(np.add.reduce((weights / spread)[:, None] * lead, axis=0), dtype=np.float32)


def least_score(
    query: Query, evidence: Evidence, found: Floats, best: Ints, lead: Floats, book: BookArrays, *, exactly: bool
) -> np.float32:
    """Return the score from which an entry is relevant enough to be returned; infinite when the book knows nothing.

    `found` holds the scores of the allowed entries, `best` the places of the best of these, best first, and `lead`
    their scores. Unless `exactly` that score is wanted, it is the last one's where all of the best are relevant.
    """
    if not is_enough(query, evidence, best[:LOOKED_AT], by_chance(book)):
        return np.float32(np.inf)
    first, last = lead.item(0), lead.item(-1)
    # Finding the middle of a large book takes long; mostly it is clear that even the last is far above it.
    highest = (last - TAIL * first) / (1 - TAIL) - _ROUNDING
    if not exactly and 2 * np.count_nonzero(found <= highest) > len(found):
        return np.float32(last)
    half = len(found) // 2
    ordered = np.partition(found, [half, -half - 1])
    middle = (float(ordered[half]) + float(ordered[-half - 1])) / 2
    return np.float32(middle + TAIL * (first - middle))


def by_chance(book: BookArrays) -> float:
    """Return the points that the best entries of a book of this size have by chance."""
    return 0.0 if book.around.any else BY_CHANCE * max(log2(book.content.size / SMALL_BOOK), 0.0)


def is_enough(query: Query, evidence: Evidence, best: Ints, more: float) -> bool:
    """Say whether the entries in `best` hold enough evidence that they answer the query, and `more` points. Those
    without a vector of the embedding model are judged as if there was none."""
    upstream = evidence.upstream
    if upstream is not None and upstream.measured:
        known = upstream.known[best]
        if points(query, evidence, best[known], upstream.values, UPSTREAM_SCALE) >= ENOUGH_BESIDE + more:
            return True
        best = best[~known]
    return points(query, evidence, best, evidence.meaning, MEANING_SCALE) >= ENOUGH + more


def points(query: Query, evidence: Evidence, best: Ints, meaning: Floats, scale: float) -> float:
    """Return the evidence that the entries in `best` answer the query; `meaning` is worth one point per `scale`."""
    if not len(best):
        return 0.0
    total: float = max(evidence.near_words[best].tolist()) / WORDS_SCALE
    total += float(meaning[best].max() / scale)
    total += NAME_POINTS * min(max(evidence.names[best].tolist()), 1.0)
    if query.is_personal or query.speakers:
        total += PERSONAL_POINTS
    return total


def best_places(found: Floats, count: int) -> Ints:
    """Return the places of the `count` best scores, best first; earlier first among equals."""
    good: Ints = (found >= _reached_by(found, count)).nonzero()[0]
    return good[(-found[good]).argsort(kind="stable")[:count]]


def _reached_by(found: Floats, count: int) -> np.float32:
    """Return a score that at least `count` of them reach, but not many more.

    Of many the best of each group are looked at: as many groups as one's best reaches it, so many scores do.
    """
    rows = len(found) // (GROUPS * count)
    if rows > 1:
        groups = len(found) // rows
        found = found[: rows * groups].reshape(rows, groups).max(axis=0)
    return np.float32(np.sort(found)[-min(count, len(found))])


def spread_over_sessions(order: Ints, score: Floats, book: BookArrays, limit: int) -> list[int]:
    """Pick greedily from places, best first; each hit of a session makes its next one a little less welcome."""
    negated = (-score[order]).tolist()
    # What a session's hits take off is the same for all that are left of it, so only its best one can be next.
    waiting: dict[int, list[int]] = defaultdict(list)
    for rank, session in zip(range(len(order) - 1, -1, -1), book.around.session_of[order[::-1]].tolist(), strict=True):
        waiting[session].append(rank)
    heap = [(negated[ranks[-1]], ranks.pop(), session) for session, ranks in waiting.items()]
    heapq.heapify(heap)
    taken: Counter[int] = Counter()
    picked: list[int] = []
    while heap and len(picked) < limit:
        _, rank, session = heap[0]
        picked.append(rank)
        if session >= 0:  # entries without a session take nothing off each other
            taken[session] += 1
        if ranks := waiting[session]:
            following = ranks.pop()
            bad = negated[following] + SESSION_REPEAT * taken[session]
            heapq.heapreplace(heap, (bad, following, session))
        else:
            heapq.heappop(heap)
    return [int(at) for at in order[picked]]
