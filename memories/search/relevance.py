"""When to return nothing: is there enough evidence, in absolute terms, that a book knows something?

Scores only order the entries of one book; a plain cut through them, or through the cosine, either
loses answers or lets noise in. So three kinds of evidence are added up: words met, meaning met, and
whether the message is about a person of this book at all.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from memories.search.query import Query
from memories.search.ranking import best_places
from memories.search.signals import Evidence
from memories.search.vectors import Floats

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
LOOKED_AT: Final = 5
"""Best entries whose evidence speaks for the book."""
TAIL: Final = 0.06
"""Entries nearer to the middle of the book than this share of the best one's lead are left out."""


def points(query: Query, evidence: Evidence, best: NDArray[np.int64]) -> float:
    """Return the evidence that the entries in `best` answer the query; `ENOUGH` is enough."""
    if not len(best):
        return 0.0
    total = float(evidence.near_words[best].max()) / WORDS_SCALE
    total += float(evidence.meaning[best].max()) / MEANING_SCALE
    total += NAME_POINTS * min(float(evidence.names[best].max()), 1.0)
    if query.is_personal or query.speakers:
        total += PERSONAL_POINTS
    return total


def relevant(query: Query, evidence: Evidence, score: Floats, allowed: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which allowed entries are relevant enough to be returned (N); perhaps none."""
    places = np.flatnonzero(allowed)
    best = best_places(score, allowed, LOOKED_AT)
    if points(query, evidence, best) < ENOUGH:
        return np.zeros_like(allowed)
    middle = float(np.median(score[places]))
    lead = float(score[best[0]]) - middle
    return allowed & (score >= middle + TAIL * lead)
