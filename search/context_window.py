"""Neighbouring entries of a session, and how counts and vectors spread between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from search.analysis import Ints
from search.entries import Entry
from search.postings import Triples
from search.vectors import Floats, Sized

BACKWARD_WEIGHTS: Final = (0.8, 0.48, 0.29, 0.17, 0.10)
"""Weights of words from one, two … entries earlier, which give an entry its context."""
FORWARD_WEIGHTS: Final = (0.56, 0.34, 0.20, 0.12, 0.07)
"""Weights of words from later entries; they are smaller, since answers follow questions."""
VECTOR_WEIGHTS: Final = (0.6, 0.4, 0.25, 0.15)
"""Weights of neighbouring static vectors, in both directions."""
UPSTREAM_VECTOR_WEIGHTS: Final = (0.3,)
"""The same for vectors of an embedding model, which represent a single text better."""


@dataclass(frozen=True, slots=True, eq=False)
class ContextWindow(Sized):
    """Indexes of neighbouring entries, -1 for none; arrays of length N."""

    session_of: Ints
    before: Ints
    after: Ints
    n_sessions: int
    has_neighbours: bool
    """True if any entry has a neighbour."""


def context_window_of(entries: Sequence[Entry]) -> ContextWindow:
    """Link the entries of each session in the given order."""
    session_of = np.full(len(entries), -1, dtype=np.int64)
    before, after = session_of.copy(), session_of.copy()
    sessions: dict[str, int] = {}
    last_of: dict[int, int] = {}
    for at, entry in enumerate(entries):
        if entry.session_id is None:
            continue
        session = session_of[at] = sessions.setdefault(entry.session_id, len(sessions))
        if session in last_of:
            before[at] = last_of[session]
            after[last_of[session]] = at
        last_of[session] = at
    return ContextWindow(session_of, before, after, len(sessions), bool((before >= 0).any()))


def _steps(neighbours: Ints, weights: Sequence[float]) -> Iterator[tuple[Ints, float]]:
    """Yield, for distance 1, 2 …, the indexes of the entries at that distance and their weight."""
    at = np.arange(len(neighbours))
    for weight in weights:
        at = np.where(at >= 0, neighbours[at], -1)
        yield at, weight


def smoothed(rows: Floats, window: ContextWindow, shares: Sequence[float] = VECTOR_WEIGHTS) -> Floats:
    """Return each row plus weighted neighbouring rows."""
    if not window.has_neighbours:
        return rows
    total = rows.copy()
    for neighbours in (window.before, window.after):
        for at, weight in _steps(neighbours, shares):
            present = np.flatnonzero(at >= 0)
            total[present] += weight * rows[at[present]]
    return total


def spread_counts(triples: Triples, lengths: Floats, window: ContextWindow) -> tuple[Triples, Floats]:
    """Return triples and lengths plus the weighted ones of neighbouring entries; pairs may repeat in the triples."""
    terms, documents, counts = triples
    parts = [triples]
    total = lengths.copy()
    # A word is spread to later entries with the backward weights, hence the crossed directions.
    for neighbours, weights in ((window.after, BACKWARD_WEIGHTS), (window.before, FORWARD_WEIGHTS)):
        for at, weight in _steps(neighbours, weights):
            target = at[documents]
            present = target >= 0
            parts.append((terms[present], target[present], counts[present] * np.float32(weight)))
            sources = np.flatnonzero(at >= 0)
            np.add.at(total, at[sources], weight * lengths[sources])
    all_terms, all_documents, all_counts = (np.concatenate(column) for column in zip(*parts, strict=True))
    return (all_terms, all_documents, all_counts), total
