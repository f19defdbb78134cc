"""Vectors of the entries from an embedding model that the operator configured, and their closeness to a message.

A cosine means something different for every model: for one, 0.3 is close; another gives 0.7 to any two texts. So
closeness is calibrated by the book itself: by the distribution of the cosines between its entries.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from search.book import CENTRE_SHRINK, BookArrays
from search.context_window import UPSTREAM_VECTOR_WEIGHTS, smoothed
from search.entries import Entry
from search.vectors import Floats, Sized, cosines, unit

Vector = Sequence[float] | NDArray[np.floating[Any]]
"""A vector as returned by the embedding model, or as stored."""

LANGUAGE_SHRINK: Final = 3
"""Weight of the whole book's mean, in entries, in the mean of each language."""
MIN_CALIBRATION: Final = 10
"""Minimum number of vectors for calibration."""
SAMPLE_SIZE: Final = 200
"""Number of entries that are compared with each other for calibration."""


@dataclass(frozen=True, slots=True, eq=False)
class Closeness:
    """How close each entry is to a message, relative to how close entries are to each other (N)."""

    values: Floats
    """Standard deviations above the mean cosine of two entries of the book; 0 for entries without a vector."""
    known: NDArray[np.bool_]
    """Whether the entry has a vector."""
    is_calibrated: bool
    """Whether the book is large enough for calibration; otherwise only the order of the values is meaningful."""


@dataclass(frozen=True, slots=True, eq=False)
class UpstreamVectors(Sized):
    """The vectors of a book, prepared for comparison."""

    rows: Floats
    """Unit vectors without the mean of their language, with weighted neighbours (N, D)."""
    known: NDArray[np.bool_]
    centres: Mapping[str, Floats]
    """The mean vector of each language; "" for all."""
    mean: float
    """Mean cosine of two entries."""
    spread: float
    """Standard deviation of the cosines of two entries."""

    def closeness(self, query: Vector, language: str) -> Closeness | None:
        """Return how close each entry is to a message in `language`.

        Return None if the vector cannot be compared: it has a different length (another model) or is not finite.
        """
        vector = np.asarray(query, dtype=np.float32)
        if vector.shape != self.rows.shape[1:] or not np.isfinite(vector).all():
            return None
        vector = unit(unit(vector) - self.centres.get(language, self.centres[""]))
        cosine = np.vecdot(self.rows, vector)
        is_calibrated = int(self.known.sum()) >= MIN_CALIBRATION
        known_cosines = cosine[self.known]
        mean, spread = (
            (self.mean, self.spread) if is_calibrated else (float(known_cosines.mean()), float(known_cosines.std()))
        )
        values = np.where(self.known, (cosine - mean) / max(spread, 1e-6), 0)
        return Closeness(values.astype(np.float32), self.known, is_calibrated)


def upstream_vectors(
    entries: Sequence[Entry], book: BookArrays, vectors: Mapping[int, Vector] | None
) -> UpstreamVectors | None:
    """Return the vectors, given by entry number, for the entries of `book`, or None if there are none but zeros.

    If lengths differ (the model was changed), the most common one is used and the other vectors count as missing.
    """
    numbers = [entry.number for entry in entries]
    vectors_at = {at: vectors[number] for at, number in enumerate(numbers) if number in vectors} if vectors else {}
    if not vectors_at:
        return None
    length = Counter(len(vector) for vector in vectors_at.values()).most_common(1)[0][0]
    rows = np.zeros((len(numbers), length), dtype=np.float32)
    for at, vector in vectors_at.items():
        if len(vector) == length:
            rows[at] = vector
    rows = unit(np.nan_to_num(rows))
    known = np.any(rows != 0, axis=1)
    if not known.any():
        return None
    rows, centres = _without_language_means(rows, known, book.facts.languages)
    if book.window.has_neighbours:
        rows = unit(smoothed(rows, book.window, UPSTREAM_VECTOR_WEIGHTS))
    return UpstreamVectors(rows, known, centres, *_pair_statistics(rows[known]))


def _without_language_means(
    rows: Floats, known: NDArray[np.bool_], of_entries: Sequence[str]
) -> tuple[Floats, dict[str, Floats]]:
    """Return unit rows without the mean of their language, and these means.

    Models place texts of the same language close together regardless of their meaning; subtracting the mean is a simple
    remedy (Libovický, Rosa and Fraser, 2020).
    """
    places = np.flatnonzero(known)
    languages = np.array(of_entries)[places]
    total = np.asarray(rows[places].sum(axis=0) / (len(places) + CENTRE_SHRINK), dtype=np.float32)
    centres, rows = {"": total}, rows.copy()
    for language in dict.fromkeys(languages.tolist()):
        own = places[languages == language]
        centre = (rows[own].sum(axis=0) + LANGUAGE_SHRINK * total) / (len(own) + LANGUAGE_SHRINK)
        centres[language] = np.asarray(centre, dtype=np.float32)
        rows[own] -= centres[language]
    rows[places] = unit(rows[places])
    return rows, centres


def _pair_statistics(rows: Floats) -> tuple[float, float]:
    """Return mean and standard deviation of the cosines of two entries, in a sample of at most `SAMPLE_SIZE`."""
    sample = rows[np.linspace(0, len(rows) - 1, min(len(rows), SAMPLE_SIZE)).astype(np.int64)]
    pairs = cosines(sample, sample)[np.triu_indices(len(sample), 1)]
    return (float(pairs.mean()), float(pairs.std())) if len(pairs) else (0.0, 0.0)
