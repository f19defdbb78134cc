"""Join the kinds of evidence into one score, and pick the best entries."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from memories.search.arrays import BookArrays
from memories.search.query import Query
from memories.search.signals import Evidence
from memories.search.tuning import Tuning
from memories.search.vectors import Floats


def standard(score: Floats) -> Floats:
    """Return z-scores; zeros when all are equal."""
    spread = float(score.std()) if score.size else 0.0
    if spread < 1e-6:
        return np.zeros_like(score)
    return np.asarray((score - score.mean()) / spread, dtype=np.float32)


def total_score(evidence: Evidence, query: Query, book: BookArrays, tuning: Tuning) -> Floats:
    """Return one score per entry; only differences within one query mean something."""
    content = tuning.words * standard(evidence.words)
    content += tuning.near_words * standard(evidence.near_words)
    content += tuning.meaning * standard(evidence.meaning)
    total = content + tuning.session * standard(evidence.session)
    total += tuning.speaker * evidence.speaker + tuning.time * evidence.time + tuning.date * evidence.date
    if book.around.any:
        follows = book.around.before >= 0
        total -= tuning.asks * book.asks
        total += tuning.answers * np.where(follows, book.asks[book.around.before], False)
    return np.asarray(total, dtype=np.float32)


def best_places(score: Floats, allowed: NDArray[np.bool_], count: int) -> NDArray[np.int64]:
    """Return the places of the `count` best allowed entries, best first; earlier first among equals."""
    places = np.flatnonzero(allowed)
    if count < len(places):
        cut = np.partition(-score[places], count - 1)[count - 1]
        places = places[-score[places] <= cut]
    return places[np.argsort(-score[places], kind="stable")][:count]


def pick(score: Floats, allowed: NDArray[np.bool_], book: BookArrays, limit: int, tuning: Tuning) -> list[int]:
    """Return the places of at most `limit` allowed entries, best first."""
    if not book.around.any:
        return [int(at) for at in best_places(score, allowed, limit)]
    order = best_places(score, allowed, limit * 4 + 20)
    return _spread_over_sessions(order, score, book, limit, tuning.session_repeat)


def _spread_over_sessions(
    order: NDArray[np.int64], score: Floats, book: BookArrays, limit: int, repeat: float
) -> list[int]:
    """Pick greedily; each hit already taken from a session makes its next one a little less welcome."""
    sessions = book.around.session_of[order]
    left = score[order].astype(np.float64)
    picked: list[int] = []
    for _ in range(min(limit, len(order))):
        best = int(left.argmax())
        picked.append(int(order[best]))
        left[best] = -np.inf
        if sessions[best] >= 0:
            left[sessions == sessions[best]] -= repeat
    return picked
