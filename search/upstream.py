"""Vectors of the entries from an embedding model that the operator configured, and how close a message's vector is.

A plain cosine means something else with every model: one calls 0.3 close, another gives 0.7 to any two texts. So the
book itself is the measure: how far apart its entries are from each other says how much a closeness is worth.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from search.book import CENTRE_SHRINK, BookArrays
from search.context_window import MEANING_OF_MODELS, smoothed
from search.entries import Entry
from search.vectors import Floats, cosines, unit

Vector = Sequence[float] | NDArray[np.floating[Any]]
"""As an embedding model gave it, or as it was stored."""

LANGUAGE_SHRINK: Final = 3
"""Entries' worth of the whole book mixed into the centre of each of its languages."""
MEASURED_FROM: Final = 10
"""Vectors from which a book can tell how close is close."""
MOST_MEASURED: Final = 200
"""Entries of a book that are compared with each other for it."""


@dataclass(frozen=True, slots=True, eq=False)
class Closeness:
    """How close each entry is to a message, beside how close entries are to each other (N)."""

    values: Floats
    """Standard deviations above two entries of the book that have nothing to do with each other; 0 for entries without
    a vector."""
    known: NDArray[np.bool_]
    """The entry has a vector."""
    measured: bool
    """The book is large enough to say that one is close; else only the order of the values means something."""


@dataclass(frozen=True, slots=True, eq=False)
class UpstreamVectors:
    """The vectors of a book, ready to be compared."""

    rows: Floats
    """Unit vectors without what texts of their language have in common, with shares of the entries around (N, D)."""
    known: NDArray[np.bool_]
    centres: Mapping[str, Floats]
    """What the texts of each language have in common; "" for all."""
    middle: float
    """Mean cosine of two entries."""
    spread: float
    """Standard deviation of the cosines of two entries."""

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return self.rows.nbytes + self.known.nbytes + sum(centre.nbytes for centre in self.centres.values())

    def closeness(self, query: Vector, language: str) -> Closeness | None:
        """Return how close each entry is to a message in `language`.

        None when the vector cannot be compared: it has another length (another model), or holds no finite numbers.
        """
        vector = np.asarray(query, dtype=np.float32)
        if vector.shape != self.rows.shape[1:] or not np.isfinite(vector).all():
            return None
        vector = unit(unit(vector) - self.centres.get(language, self.centres[""]))
        cosine = np.vecdot(self.rows, vector)
        measured = int(self.known.sum()) >= MEASURED_FROM
        own = cosine[self.known]
        middle, spread = (self.middle, self.spread) if measured else (float(own.mean()), float(own.std()))
        values = np.where(self.known, (cosine - middle) / max(spread, 1e-6), 0)
        return Closeness(values.astype(np.float32), self.known, measured)


def upstream_vectors(
    entries: Sequence[Entry], book: BookArrays, vectors: Mapping[int, Vector] | None
) -> UpstreamVectors | None:
    """Return the vectors by entry number laid out over the entries of `book`; None when there are none.

    When lengths differ (a changed model) the commonest length wins and the others count as missing.
    """
    numbers = [entry.number for entry in entries]
    given = {at: vectors[number] for at, number in enumerate(numbers) if number in vectors} if vectors else {}
    if not given:
        return None
    length = Counter(len(vector) for vector in given.values()).most_common(1)[0][0]
    rows = np.zeros((len(numbers), length), dtype=np.float32)
    for at, vector in given.items():
        if len(vector) == length:
            rows[at] = vector
    rows = unit(np.nan_to_num(rows))
    known = np.any(rows != 0, axis=1)
    rows, centres = _without_languages(rows, known, book.facts.languages)
    if book.around.any:
        rows = unit(smoothed(rows, book.around, MEANING_OF_MODELS))
    return UpstreamVectors(rows, known, centres, *_between(rows[known]))


def _without_languages(
    rows: Floats, known: NDArray[np.bool_], of_entries: Sequence[str]
) -> tuple[Floats, dict[str, Floats]]:
    """Return unit rows without the mean of their language, and these means.

    Models put texts of one language close together whatever they say; taking the mean away is the plain remedy
    (Libovický, Rosa and Fraser, 2020).
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


def _between(rows: Floats) -> tuple[float, float]:
    """Return mean and standard deviation of the cosines of two entries, over a sample of at most `MOST_MEASURED`."""
    sample = rows[np.linspace(0, len(rows) - 1, min(len(rows), MOST_MEASURED)).astype(np.int64)]
    pairs = cosines(sample, sample)[np.triu_indices(len(sample), 1)]
    return (float(pairs.mean()), float(pairs.std())) if len(pairs) else (0.0, 0.0)
