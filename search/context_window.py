"""Entries of one session in order: who comes before and after, and what spreads between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from search.analysis import Ints
from search.entries import Entry
from search.postings import Triples
from search.vectors import Floats

BACK: Final = (0.8, 0.48, 0.29, 0.17, 0.10)
"""How much of a word said one, two … entries earlier counts for an entry: what was just said frames it."""
AHEAD: Final = (0.56, 0.34, 0.20, 0.12, 0.07)
"""The share of later entries; it is smaller, since answers follow questions."""
MEANING: Final = (0.6, 0.4, 0.25, 0.15)
"""Share of the vectors around an entry, both ways, where a vector is a mean of words."""
MEANING_OF_MODELS: Final = (0.3,)
"""The same for vectors of an embedding model, which tell more of a single text."""


@dataclass(frozen=True, slots=True, eq=False)
class ContextWindow:
    """Places of neighbours, -1 for none; arrays of N."""

    session_of: Ints
    before: Ints
    after: Ints
    n_sessions: int
    any: bool
    """Some entry has a neighbour."""

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return self.session_of.nbytes + self.before.nbytes + self.after.nbytes


def context_window_of(entries: Sequence[Entry]) -> ContextWindow:
    """Link the entries of each session in the order given."""
    session_of = np.full(len(entries), -1, dtype=np.int64)
    before, after = session_of.copy(), session_of.copy()
    sessions: dict[str, int] = {}
    last: dict[int, int] = {}
    for at, entry in enumerate(entries):
        if entry.session_id is None:
            continue
        session = session_of[at] = sessions.setdefault(entry.session_id, len(sessions))
        if session in last:
            before[at] = last[session]
            after[last[session]] = at
        last[session] = at
    return ContextWindow(session_of, before, after, len(sessions), bool((before >= 0).any()))


def _steps(towards: Ints, weights: Sequence[float]) -> Iterator[tuple[Ints, float]]:
    """Yield, for distance 1, 2 …, the place of the entry that far away and its weight."""
    at = np.arange(len(towards))
    for weight in weights:
        at = np.where(at >= 0, towards[at], -1)
        yield at, weight


def smoothed(rows: Floats, around: ContextWindow, shares: Sequence[float] = MEANING) -> Floats:
    """Return each row plus fading shares of the rows around it."""
    if not around.any:
        return rows
    total = rows.copy()
    for towards in (around.before, around.after):
        for at, weight in _steps(towards, shares):
            has = np.flatnonzero(at >= 0)
            total[has] += weight * rows[at[has]]
    return total


def spread_counts(triples: Triples, lengths: Floats, around: ContextWindow) -> tuple[Triples, Floats]:
    """Return triples, with repeated pairs, and lengths with fading shares for the entries around."""
    terms, documents, counts = triples
    parts = [triples]
    total = lengths.copy()
    # A word counts for a later entry as something said before it, hence the crossed directions.
    for towards, weights in ((around.after, BACK), (around.before, AHEAD)):
        for at, weight in _steps(towards, weights):
            target = at[documents]
            has = target >= 0
            parts.append((terms[has], target[has], counts[has] * np.float32(weight)))
            giving = np.flatnonzero(at >= 0)
            np.add.at(total, at[giving], weight * lengths[giving])
    all_terms, all_documents, all_counts = (np.concatenate(column) for column in zip(*parts, strict=True))
    return (all_terms, all_documents, all_counts), total
