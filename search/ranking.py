"""Combines all evidence into one score, decides whether it suffices, and selects the best entries."""

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

# Weights of evidence. Graded evidence is measured in standard deviations over the book.
WORDS: Final = 0.5
"""Shared words: in the entry, in its keywords and, decaying with distance, in its neighbours."""
NEAR_WORDS: Final = 0.2
"""Each query word's closest word in the entry itself."""
MEANING: Final = 0.65
"""Cosine of static embeddings, with neighbours."""
MEANING_WITH_UPSTREAM: Final = 0.5
"""The same if there are vectors of an embedding model, which measure the same thing."""
UPSTREAM: Final = 0.75
"""Closeness by an embedding model, if there are vectors."""
SESSION: Final = 0.15
"""Shared words in the whole session."""
SPEAKER: Final = 2.7
"""Said by the person whom the message names."""
QUESTION: Final = 0.7
"""Subtracted from entries that end in a question, since questions rarely contain the answer."""
FOLLOWS_QUESTION: Final = 0.25
"""Added to an entry that follows a question."""
TIME: Final = 2.3
"""The message asks for a time, and the entry states one."""
DATE: Final = 4.8
"""Said on, or within days after, a date in the message."""
_WEIGHTS: Final = np.array([WORDS, NEAR_WORDS, MEANING, SESSION])
_WEIGHTS_WITH_UPSTREAM: Final = np.array([WORDS, NEAR_WORDS, MEANING_WITH_UPSTREAM, SESSION])
SESSION_REPEAT: Final = 0.07
"""Subtracted per hit already selected from the same session, so that one conversation does not fill the list."""

# When to return nothing. Scores only order the entries of one book; a threshold on them, or on the cosine, either loses
# answers or lets noise in. So points are added up for three kinds of absolute evidence: matching words, matching
# meaning, and whether the message is about a person in this book at all.
WORDS_SCALE: Final = 5.0
"""BM25 that is worth one point: about two rare words."""
MEANING_SCALE: Final = 0.4
"""Cosine that is worth one point."""
PERSONAL_POINTS: Final = 1.0
"""Points for a message about its writer, or about a speaker of the book."""
MIN_POINTS: Final = 1.0
"""Points needed. A general question needs words and meaning; a personal one needs a little of either."""
UPSTREAM_SCALE: Final = 2.0
"""Closeness by an embedding model that is worth one point."""
MEANING_SCALE_WITH_UPSTREAM: Final = 0.8
"""Cosine that is worth one point beside such a model: two models err less than one."""
MIN_POINTS_UPSTREAM: Final = 1.7
"""Points needed with an embedding model, which finds more."""
CHANCE_POINTS: Final = 0.23
"""Additional points needed for every doubling beyond `SMALL_BOOK` facts: among many, the best one for any message is
close by chance. Not needed in conversations, where a message usually continues the topic."""
KEYWORD_POINTS: Final = 0.05
"""Additional points needed among facts with keywords, which match by chance, too."""
TOP_ENTRIES: Final = 5
"""Number of best entries whose evidence is considered."""
GROUPS_PER_RESULT: Final = 8
"""Groups per wanted entry when the cut-off is estimated from group maxima."""
TAIL_SHARE: Final = 0.06
"""Entries whose distance from the median score is below this share of the best one's are left out."""


def total_score(evidence: Evidence, query: Query, book: BookArrays) -> Floats:
    """Return one score per entry, only comparable within one query."""
    upstream = evidence.upstream
    weights = _WEIGHTS if upstream is None else _WEIGHTS_WITH_UPSTREAM
    total = _standard(evidence.graded, weights[: len(evidence.graded)])
    if upstream is not None:
        lead = upstream.values - upstream.values[upstream.known].mean()
        total += UPSTREAM * np.where(upstream.known, lead, np.float32(0))
    if query.speakers:
        total += SPEAKER * evidence.speaker
    if query.message.asks_when:
        total += TIME * evidence.time
    if query.message.times:
        total += DATE * evidence.date
    if book.window.has_neighbours:
        follows = book.window.before >= 0
        total -= QUESTION * book.facts.is_question
        total += FOLLOWS_QUESTION * np.where(follows, book.facts.is_question[book.window.before], False)
    return total


def _standard(scores: Floats, weights: NDArray[np.float64]) -> Floats:
    """Return the weighted sum of the rows' z-scores; a constant row counts 0."""
    size = scores.shape[1]
    deviations = scores - (np.add.reduce(scores, axis=1) / size)[:, None]
    spread = np.sqrt(np.vecdot(deviations, deviations) / size)
    spread[spread < 1e-6] = np.inf
    return np.asarray(np.add.reduce((weights / spread)[:, None] * deviations, axis=0), dtype=np.float32)


def min_score(query: Query, evidence: Evidence, scores: Floats, best: Ints, book: BookArrays) -> np.float32:
    """Return the score from which an entry is relevant enough; infinity if the book has no answer.

    `scores` are those of the allowed entries, `best` the indexes of the best of these, best first.
    """
    if not has_enough_evidence(query, evidence, best[:TOP_ENTRIES], chance_points(book)):
        return np.float32(np.inf)
    half = len(scores) // 2
    ordered = np.partition(scores, [half, -half - 1])
    middle = (float(ordered[half]) + float(ordered[-half - 1])) / 2
    return np.float32(middle + TAIL_SHARE * (float(scores.max()) - middle))


def chance_points(book: BookArrays) -> float:
    """Return the points that the best entries of a book of this size reach by chance."""
    if book.window.has_neighbours:
        return 0.0
    by_size = CHANCE_POINTS * max(log2(book.content.size / SMALL_BOOK), 0.0)
    return by_size + (KEYWORD_POINTS if book.keywords.documents.size else 0.0)


def has_enough_evidence(query: Query, evidence: Evidence, best: Ints, extra: float) -> bool:
    """Return True if the entries in `best` reach the points needed plus `extra`. Entries without a vector of the
    embedding model are judged as if there were no such model."""
    upstream = evidence.upstream
    if upstream is not None and upstream.is_calibrated:
        known = upstream.known[best]
        by_upstream = float(upstream.values[best].max()) / UPSTREAM_SCALE
        total = points(query, evidence, best[known], MEANING_SCALE_WITH_UPSTREAM) + by_upstream
        if known.any() and total >= MIN_POINTS_UPSTREAM + extra:
            return True
        best = best[~known]
    return points(query, evidence, best, MEANING_SCALE) >= MIN_POINTS + extra


def points(query: Query, evidence: Evidence, best: Ints, meaning_scale: float) -> float:
    """Return the points of the entries in `best`; the static cosine is worth one point per `meaning_scale`."""
    if not len(best):
        return 0.0
    total: float = max(evidence.shared_words[best].tolist()) / WORDS_SCALE
    total += float(evidence.meaning[best].max()) / meaning_scale
    if query.message.is_personal or query.speakers:
        total += PERSONAL_POINTS
    return total


def best_places(scores: Floats, count: int) -> Ints:
    """Return the indexes of the `count` best scores, best first; ties in order."""
    good: Ints = (scores >= _cut_off(scores, count)).nonzero()[0]
    return good[(-scores[good]).argsort(kind="stable")[:count]]


def _cut_off(scores: Floats, count: int) -> np.float32:
    """Return a score that at least `count` scores reach, but not many more.

    For many scores only the maxima of groups are compared: at least as many scores reach a value as group maxima do.
    """
    rows = len(scores) // (GROUPS_PER_RESULT * count)
    if rows > 1:
        groups = len(scores) // rows
        scores = scores[: rows * groups].reshape(rows, groups).max(axis=0)
    return np.float32(np.sort(scores)[-min(count, len(scores))])


def spread_over_sessions(order: Ints, score: Floats, book: BookArrays, limit: int) -> list[int]:
    """Select from indexes greedily, best first; each hit of a session lowers the score of its next one."""
    negated = (-score[order]).tolist()
    # The penalty is the same for all remaining entries of a session, so only the best of them can be next.
    waiting: dict[int, list[int]] = defaultdict(list)
    for rank, session in zip(range(len(order) - 1, -1, -1), book.window.session_of[order[::-1]].tolist(), strict=True):
        waiting[session].append(rank)
    heap = [(negated[ranks[-1]], ranks.pop(), session) for session, ranks in waiting.items()]
    heapq.heapify(heap)
    taken: Counter[int] = Counter()
    picked: list[int] = []
    while heap and len(picked) < limit:
        _, rank, session = heap[0]
        picked.append(rank)
        if session >= 0:  # entries without a session do not lower each other's scores
            taken[session] += 1
        if ranks := waiting[session]:
            next_rank = ranks.pop()
            cost = negated[next_rank] + SESSION_REPEAT * taken[session]
            heapq.heapreplace(heap, (cost, next_rank, session))
        else:
            heapq.heappop(heap)
    return [int(at) for at in order[picked]]
