"""BM25 over sparse arrays of terms and documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from search.analysis import Ints
from search.vectors import Floats, Sized

SATURATION: Final = 1.2
"""k1 of BM25: how quickly repeats of a term stop mattering (Robertson and Zaragoza, 2009)."""
LENGTH_SHARE: Final = 0.75
"""b of BM25: how much long documents are penalised."""

Triples = tuple[Ints, Ints, Floats]
"""Terms, documents and counts: three arrays of equal length."""

Contributions = tuple[NDArray[np.int32], Floats]
"""Documents and their partial scores; a document may occur several times."""
NO_CONTRIBUTIONS: Final[Contributions] = (np.empty(0, dtype=np.int32), np.empty(0, dtype=np.float32))


@dataclass(frozen=True, slots=True, eq=False)
class Postings(Sized):
    """A term-major sparse matrix: term t occurs in `documents[starts[t]:starts[t + 1]]`."""

    starts: Ints
    documents: NDArray[np.int32]
    impacts: Floats
    """Saturated, length-normalised term frequency, 0 to k1 + 1, without idf."""
    idf: Floats
    """The idf of every term, see `idf_of`."""
    size: int
    """Number of documents."""

    def contributions(self, terms: Ints, weights: Floats) -> Contributions:
        """Return the BM25 contribution of each posting of weighted terms."""
        places, counts = row_places(self.starts, terms)
        return self.documents[places], self.impacts[places] * (weights * self.idf[terms]).repeat(counts)

    def best(self, terms: Ints, weights: Floats) -> Floats:
        """Return for every document the largest weight times impact of the given terms, 0 if it contains none."""
        places, counts = row_places(self.starts, terms)
        found = np.zeros(self.size, dtype=np.float32)
        np.maximum.at(found, self.documents[places], weights.repeat(counts) * self.impacts[places])
        return found


def summed(contributions: Sequence[Contributions], size: int) -> Floats:
    """Return the summed contributions of each of `size` documents."""
    documents = np.concatenate([array for array, _ in contributions] or [NO_CONTRIBUTIONS[0]])
    values = np.concatenate([array for _, array in contributions] or [NO_CONTRIBUTIONS[1]])
    return np.bincount(documents, weights=values, minlength=size).astype(np.float32)


def row_places(starts: Ints, rows: Ints) -> tuple[Ints, Ints]:
    """Return the places of all elements in the given rows of a sparse matrix, and the size of each row.

    Row r occupies the places from `starts[r]` to `starts[r + 1]`.
    """
    first = starts[rows]
    counts = starts[rows + 1] - first
    ends = counts.cumsum()
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total) + (first - ends + counts).repeat(counts), counts


def build_postings(triples: Triples, lengths: Floats, idf: Floats, *, saturation: float = SATURATION) -> Postings:
    """Return the postings of triples, which must be sorted by document and have no repeated pairs (see `merged`).

    `lengths` are the lengths of the documents in terms.
    """
    terms, documents, counts = triples
    nonempty = lengths[lengths > 0]
    average = float(nonempty.mean()) if nonempty.size else 1.0
    penalty = saturation * (1 - LENGTH_SHARE + LENGTH_SHARE * lengths / average)
    impacts = counts * (saturation + 1) / (counts + penalty[documents])
    return term_major((terms, documents, impacts.astype(np.float32)), idf, len(lengths))


def term_major(triples: Triples, idf: Floats, size: int) -> Postings:
    """Return the postings of (term, document, impact) triples over `size` documents."""
    terms, documents, impacts = triples
    # Sorting two-byte numbers takes a tenth of the time.
    order = (terms.astype(np.uint16) if len(idf) <= 2**16 else terms).argsort(kind="stable")
    starts = np.concatenate(([0], np.bincount(terms, minlength=len(idf)).cumsum()))
    return Postings(starts, documents[order].astype(np.int32), impacts[order].astype(np.float32), idf, size)


def merged(triples: Triples) -> Triples:
    """Return the triples sorted by document, with the counts of repeated pairs added up."""
    terms, documents, counts = triples
    n_terms = int(terms.max()) + 1 if len(terms) else 1
    key = documents * n_terms + terms
    order = np.argsort(key, kind="stable")
    key, counts = key[order], counts[order]
    first = np.flatnonzero(np.diff(key, prepend=-1))
    documents, terms = np.divmod(key[first], n_terms)
    return terms, documents, np.add.reduceat(counts, first) if len(first) else counts


def idf_of(document_counts: Ints, size: int, *, at_least: int = 1) -> Floats:
    """Return the idf of every term: ln(1 + (N - n + 0.5) / (n + 0.5)), always positive.

    n is the number of documents with the term (`document_counts`). N is `size`, but at least `at_least`, since a few
    documents cannot tell which words are rare.
    """
    return np.log1p((max(size, at_least, 1) - document_counts + 0.5) / (document_counts + 0.5)).astype(np.float32)
