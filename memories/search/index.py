"""The search over one book: build once, ask many times, from any thread."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from memories.search.analysis import AnalysisCache
from memories.search.arrays import BookArrays, build_arrays
from memories.search.entries import Entry
from memories.search.hits import Hit, Reason
from memories.search.keywords import extract_keywords
from memories.search.match_all import FoldedContents
from memories.search.query import Query, analyse_query
from memories.search.ranking import pick, total_score
from memories.search.relevance import relevant
from memories.search.signals import Evidence, gather_evidence
from memories.search.superseded import newest_first
from memories.search.tuning import DEFAULT, Tuning
from memories.search.upstream import UpstreamVectors, upstream_vectors
from memories.search.vectors import Floats
from memories.search.why import ALL_KEYWORDS, NO_KEYWORDS, reasons_for, sentence

STRATEGIES: Final = ("ranked", "match_all")
RESERVE: Final = 10
"""Entries ranked beyond the limit."""


class BookIndex:
    """An immutable index over the entries of one book; any number of threads may search it at once."""

    def __init__(
        self, entries: tuple[Entry, ...], arrays: BookArrays, upstream: UpstreamVectors | None, tuning: Tuning
    ) -> None:
        self.entries = entries
        self._arrays = arrays
        self._upstream = upstream
        self._tuning = tuning
        self._folded = FoldedContents([entry.content for entry in entries])
        self._categories = np.array([entry.category for entry in entries], dtype=object)
        self._numbers = np.array([entry.number for entry in entries], dtype=np.int64)
        self.nbytes = arrays.nbytes + self._folded.nbytes + self._numbers.nbytes
        """Bytes of the arrays and folded texts, for a cache bounded by bytes."""
        if upstream is not None:
            self.nbytes += upstream.nbytes

    @classmethod
    def build(
        cls,
        entries: Sequence[Entry],
        *,
        analysis: AnalysisCache | None = None,
        vectors: Mapping[int, Sequence[float]] | None = None,
        tuning: Tuning = DEFAULT,
    ) -> BookIndex:
        """Index `entries`; what `analysis` has seen before is not analysed again.

        `vectors` are those of an upstream embedding model by entry number; entries may lack one.
        """
        arrays = build_arrays(entries, analysis if analysis is not None else AnalysisCache())
        return cls(tuple(entries), arrays, upstream_vectors(entries, vectors), tuning)

    def search(
        self,
        query: str,
        *,
        limit: int,
        keywords: Sequence[str] | None = None,
        strategy: str = "ranked",
        category: str | None = None,
        exclude: Collection[int] = (),
        threshold: bool = True,
        query_vector: Sequence[float] | None = None,
    ) -> list[Hit]:
        """Return at most `limit` hits: best first, or in insertion order for `match_all`.

        `keywords` are what the extractor gave; None runs the `local` rule on the query. Without any
        keyword every entry qualifies, in insertion order. With `threshold` entries without enough
        evidence are left out, but never one that `match_all` would return. `exclude` holds numbers.
        Raises ValueError for an unknown strategy.
        """
        if strategy not in STRATEGIES:
            raise ValueError(f"strategy must be one of {', '.join(STRATEGIES)}, not {strategy!r}")
        wanted = extract_keywords(query) if keywords is None else [word for word in keywords if word.strip()]
        allowed = self._allowed(category, exclude)
        if limit <= 0 or not allowed.any():
            return []
        strict = [at for at in self._folded.holding(wanted) if allowed[at]]
        if strategy == "match_all" or not wanted:
            reason = ALL_KEYWORDS if wanted else NO_KEYWORDS
            return [self._hit(at, 1.0, (reason,)) for at in strict[:limit]]
        return self._ranked(
            analyse_query(query, wanted if keywords is not None else (), self._arrays),
            strict, allowed, limit, threshold, query_vector,
        )  # fmt: skip

    def _allowed(self, category: str | None, exclude: Collection[int]) -> NDArray[np.bool_]:
        allowed = np.ones(len(self.entries), dtype=bool)
        if category is not None:
            allowed &= self._categories == category
        if exclude:
            allowed &= ~np.isin(self._numbers, list(exclude))
        return allowed

    def _ranked(
        self, query: Query, strict: list[int], allowed: NDArray[np.bool_], limit: int, threshold: bool,
        query_vector: Sequence[float] | None,
    ) -> list[Hit]:  # fmt: skip
        book = self._arrays
        evidence = gather_evidence(query, book)
        score = total_score(evidence, query, book, self._tuning)
        if query_vector is not None and self._upstream is not None:
            score += self._tuning.upstream * self._upstream.cosine(query_vector)
        candidates = allowed
        if threshold:
            candidates = relevant(query, evidence, score, allowed)
            candidates[strict] = True
        # Picked with some reserve, so that a newer fact just below the cut still passes its older one.
        order = pick(score, candidates, book, limit + RESERVE, self._tuning)
        order = newest_first(order, query, self.entries, book)
        order = _with_strict(order[:limit], strict, limit)
        return self._hits(order, score, query, evidence)

    def _hits(self, order: list[int], score: Floats, query: Query, evidence: Evidence) -> list[Hit]:
        shown = np.minimum.accumulate(score[order]) if order else score[:0]
        return [
            self._hit(at, float(value), reasons_for(at, query, evidence, self.entries, self._arrays))
            for at, value in zip(order, shown, strict=True)
        ]

    def _hit(self, at: int, score: float, reasons: tuple[Reason, ...]) -> Hit:
        return Hit(number=self.entries[at].number, score=round(score, 4), why=sentence(reasons), reasons=reasons)


def _with_strict(order: list[int], strict: list[int], limit: int) -> list[int]:
    """Return the order with every strict match in it, if they all fit; the least of the others make room."""
    if len(strict) > limit:
        return order
    missing = [at for at in strict if at not in order]
    if not missing:
        return order
    must = set(strict)
    room = limit - len(strict)
    kept: list[int] = []
    for at in order:
        if at in must:
            kept.append(at)
        elif room > 0:
            kept.append(at)
            room -= 1
    return kept + missing
