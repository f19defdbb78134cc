"""Vectors made elsewhere, by an embedding model the operator configured, as one more kind of evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memories.search.entries import Entry
from memories.search.vectors import Floats, unit


@dataclass(frozen=True, slots=True, eq=False)
class UpstreamVectors:
    """Unit vectors per entry; entries without one are told by `known`."""

    rows: Floats
    known: NDArray[np.bool_]

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return self.rows.nbytes + self.known.nbytes

    def cosine(self, query: Sequence[float]) -> Floats:
        """Return z-scored cosines over the entries that have a vector, 0 for the others (N).

        A query vector of another length (another model) counts as none: all 0.
        """
        found = np.zeros(len(self.known), dtype=np.float32)
        vector = np.asarray(query, dtype=np.float32)
        if vector.shape != self.rows.shape[1:] or not self.known.any() or not np.isfinite(vector).all():
            return found
        cosine = self.rows[self.known] @ unit(vector)
        spread = float(cosine.std())
        if spread > 1e-6:
            found[self.known] = (cosine - cosine.mean()) / spread
        return found


def upstream_vectors(entries: Sequence[Entry], vectors: Mapping[int, Sequence[float]] | None) -> UpstreamVectors | None:
    """Return the vectors by entry number as rows; None when there are none.

    When lengths differ (a changed model) the commonest length wins and the others count as missing.
    """
    given = {at: vectors[entry.number] for at, entry in enumerate(entries) if vectors and entry.number in vectors}
    if not given:
        return None
    length = Counter(len(vector) for vector in given.values()).most_common(1)[0][0]
    rows = np.zeros((len(entries), length), dtype=np.float32)
    for at, vector in given.items():
        if len(vector) == length:
            rows[at] = vector
    rows = unit(np.nan_to_num(rows))
    return UpstreamVectors(rows, np.any(rows != 0, axis=1))
