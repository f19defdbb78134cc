"""Which documents hold which term, and how much that says: BM25 over sparse arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from memories.search.analysis import Ints
from memories.search.vectors import Floats

SATURATION: Final = 1.2
"""k1 of BM25: how soon more repeats of a term stop to matter (Robertson and Zaragoza, 2009)."""
LENGTH_SHARE: Final = 0.75
"""b of BM25: how much long documents pay for their length."""


@dataclass(frozen=True, slots=True, eq=False)
class Postings:
    """Term-major sparse matrix: term t is in `documents[starts[t]:starts[t + 1]]`."""

    starts: Ints
    documents: NDArray[np.int32]
    impacts: Floats
    """Saturated, length-normalised term frequency, 0 to k1 + 1, without idf."""
    idf: Floats
    """Rarity of every term, see `rarity`."""
    size: int
    """Number of documents."""

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return self.starts.nbytes + self.documents.nbytes + self.impacts.nbytes + self.idf.nbytes

    def gather(self, terms: Ints, weights: Floats) -> tuple[NDArray[np.int32], Floats, Floats]:
        """Return documents, impacts and weights of all postings of `terms`, end to end."""
        starts = self.starts[terms]
        counts = self.starts[terms + 1] - starts
        ends = np.cumsum(counts)
        total = int(ends[-1]) if len(ends) else 0
        places = np.arange(total) + np.repeat(starts - (ends - counts), counts)
        return self.documents[places], self.impacts[places], np.repeat(weights, counts)

    def score(self, terms: Ints, weights: Floats) -> Floats:
        """Return the BM25 score of every document for weighted terms."""
        documents, impacts, weight = self.gather(terms, weights * self.idf[terms])
        return np.bincount(documents, weights=impacts * weight, minlength=self.size).astype(np.float32)

    def best(self, terms: Ints, weights: Floats) -> Floats:
        """Return for every document the largest weight among the given terms it holds, 0 without any."""
        documents, _, weight = self.gather(terms, weights)
        found = np.zeros(self.size, dtype=np.float32)
        np.maximum.at(found, documents, weight)
        return found


def build_postings(
    terms: Ints, documents: Ints, counts: Floats, lengths: Floats, idf: Floats, *, saturation: float = SATURATION
) -> Postings:
    """Return the postings of (term, document, count) triples; repeated pairs are added up.

    `lengths` holds the length of every document in terms, `idf` the rarity of every term.
    """
    size = len(lengths)
    key = terms * max(size, 1) + documents
    order = np.argsort(key, kind="stable")
    key, counts = key[order], counts[order]
    first = np.flatnonzero(np.diff(key, prepend=-1))
    summed = np.add.reduceat(counts, first) if len(first) else counts
    term, document = np.divmod(key[first], max(size, 1))
    average = float(lengths[lengths > 0].mean()) if (lengths > 0).any() else 1.0
    penalty = saturation * (1 - LENGTH_SHARE + LENGTH_SHARE * lengths[document] / average)
    impacts = summed * (saturation + 1) / (summed + penalty)
    starts = np.searchsorted(term, np.arange(len(idf) + 1))
    return Postings(starts, document.astype(np.int32), impacts.astype(np.float32), idf, size)


def rarity(terms: Ints, documents: Ints, n_terms: int, size: int, *, at_least: int = 1) -> Floats:
    """Return the idf of every term: ln(1 + (N - n + 0.5) / (n + 0.5)), always positive.

    n counts the documents with a (term, document) pair. N is `size`, but not below `at_least`: a
    handful of documents can't tell which words are rare.
    """
    size = max(size, 1)
    held = np.bincount(np.unique(terms * size + documents) // size, minlength=n_terms)[:n_terms]
    return np.log1p((max(size, at_least) - held + 0.5) / (held + 0.5)).astype(np.float32)
