"""The search index of one book: built once, searched many times, from any thread."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache, partial
from itertools import chain
from typing import Final

import numpy as np
from numpy.typing import NDArray

from search.analysis import PROCESS_CACHE, AnalysisCache, BookKey, Ints
from search.book import BookArrays, build_arrays
from search.entries import Entry
from search.evidence import gather_evidence
from search.hits import Hit, ranked_reasons, strict_reasons
from search.keywords import FoldedContents, extract_keywords
from search.query import analyse_query, parts_of, searched_part
from search.ranking import best_places, min_score, spread_over_sessions, total_score
from search.superseded import newest_first
from search.term_similarity import TermSimilarity
from search.tokens import language_of
from search.upstream import UpstreamVectors, Vector, upstream_vectors
from search.vectors import Floats

STRATEGIES: Final = ("ranked", "match_all")
RESERVE: Final = 10
"""Entries ranked beyond the limit."""
_CACHE_SIZE: Final = 1024
"""Entries whose term sets are cached, since the same entries are found again and again."""
_TERMS_BYTES: Final = 1000
"""Approximate size of a cached term set."""


class BookIndex:
    """An index over the entries of one book. Thread-safe."""

    def __init__(self, entries: tuple[Entry, ...], arrays: BookArrays, upstream: UpstreamVectors | None) -> None:
        self.entries = entries
        self._places = {entry.number: at for at, entry in enumerate(entries)}
        self._arrays = arrays
        self._similarity = TermSimilarity(arrays)
        self._terms_of = lru_cache(_CACHE_SIZE)(arrays.terms_of)
        self._folded = FoldedContents([entry.content for entry in entries])
        self._upstream = upstream

    @classmethod
    def build(
        cls,
        entries: Sequence[Entry],
        *,
        analysis: AnalysisCache = PROCESS_CACHE,
        book: BookKey | None = None,
        vectors: Mapping[int, Vector] | None = None,
    ) -> BookIndex:
        """Build an index of `entries`, which must have distinct numbers. Entries in the cache `analysis` are not
        analysed again; new ones are cached as texts of `book` until that is forgotten.

        `vectors` are vectors of an upstream embedding model by entry number; some may be missing.
        """
        arrays = build_arrays(entries, analysis, book)
        return cls(tuple(entries), arrays, upstream_vectors(entries, arrays, vectors))

    @property
    def nbytes(self) -> int:
        """Size of the arrays and texts, for a cache limited by bytes."""
        upstream = self._upstream.nbytes if self._upstream is not None else 0
        term_sets = _TERMS_BYTES * self._terms_of.cache_info().currsize
        return self._arrays.nbytes + self._folded.nbytes + self._similarity.nbytes + term_sets + upstream

    def search(
        self,
        query: str,
        *,
        limit: int,
        keywords: Sequence[str] | None = None,
        strategy: str = "ranked",
        category: str | None = None,
        exclude: Collection[int] = (),
        only: Collection[int] | None = None,
        threshold: bool = True,
        query_vector: Vector | None = None,
    ) -> list[Hit]:
        """Return at most `limit` hits: best first, or in insertion order for `match_all`.

        `keywords` are extracted keywords; None applies the `local` rule to the query. Without keywords every entry
        matches, in insertion order. With `threshold`, entries with too little evidence are left out, except those that
        `match_all` would return. `exclude` and `only` are entry numbers. Raises ValueError for an unknown strategy.
        """
        if strategy not in STRATEGIES:
            raise ValueError(f"strategy must be one of {', '.join(STRATEGIES)}, not {strategy!r}")
        wanted = extract_keywords(query) if keywords is None else [word for word in keywords if word.strip()]
        allowed = self._allowed(category, exclude, only)
        places = allowed.nonzero()[0]
        if limit <= 0 or not len(places):
            return []
        strict = [at for at in self._folded.holding(wanted) if allowed[at]]
        if strategy == "match_all" or not wanted:
            explain = partial(strict_reasons, bool(wanted))
            return [Hit(self.entries[at].number, 1.0, explain) for at in strict[:limit]]
        rank = partial(self._ranked, places=places, limit=limit, threshold=threshold, query_vector=query_vector)
        found = rank(query, wanted if keywords is not None else (), strict)
        parts = [part for part in parts_of(searched_part(query)) if extract_keywords(part)]
        return (
            self._best(found, *(rank(part, (), []) for part in parts), strict=strict, limit=limit) if parts else found
        )

    def _allowed(
        self, category: str | None, exclude: Collection[int], only: Collection[int] | None
    ) -> NDArray[np.bool_]:
        allowed = np.ones(len(self.entries), dtype=bool)
        if only is not None:
            allowed[:] = False
            allowed[[self._places[number] for number in only if number in self._places]] = True
        if category is not None:
            allowed &= np.array([entry.category == category for entry in self.entries], dtype=bool)
        allowed[[self._places[number] for number in exclude if number in self._places]] = False
        return allowed

    def _best(self, *searches: Sequence[Hit], strict: list[int], limit: int) -> list[Hit]:
        """Merge the hits of several searches by the best score of each entry, best first."""
        best: dict[int, Hit] = {}
        for hit in chain.from_iterable(searches):
            at = self._places[hit.number]
            if at not in best or best[at].score < hit.score:
                best[at] = hit
        order = sorted(best, key=lambda at: -best[at].score)
        return [best[at] for at in _with_strict(order[:limit], strict, limit)]

    def _ranked(
        self,
        text: str,
        extra_words: Sequence[str],
        strict: list[int],
        *,
        places: Ints,
        limit: int,
        threshold: bool,
        query_vector: Vector | None,
    ) -> list[Hit]:
        book = self._arrays
        query = analyse_query(text, extra_words, book, self._similarity)
        upstream = None
        if query_vector is not None and self._upstream is not None:
            upstream = self._upstream.closeness(query_vector, language_of(query.text))
        evidence = gather_evidence(query, book, upstream)
        score = total_score(evidence, query, book)
        # With a reserve, so that a newer fact just below the limit can still move before an older one.
        wanted = limit + RESERVE
        found = score[places]
        count = wanted * 4 + 20 if book.window.has_neighbours else wanted
        best = places[best_places(found, count)]
        if threshold:
            threshold_score = min_score(query, evidence, found, best, book)
            best = best[score[best] >= threshold_score]
            if strict:
                best = np.concatenate([best, _below(threshold_score, strict, score)])
        order = spread_over_sessions(best, score, book, wanted) if book.window.has_neighbours else best.tolist()
        order = newest_first(order[:wanted], query, self.entries, book, self._terms_of)
        order = _with_strict(order[:limit], strict, limit)
        explain = partial(ranked_reasons, query, evidence, self.entries, book, self._terms_of)
        scores = np.minimum.accumulate(score[order]).tolist()
        return [
            Hit(self.entries[at].number, round(value, 4), partial(explain, at))
            for at, value in zip(order, scores, strict=True)
        ]


def _below(threshold_score: np.float32, strict: list[int], score: Floats) -> Ints:
    """Return the strict matches whose score is too low, best first."""
    places = np.array(strict, dtype=np.int64)
    places = places[score[places] < threshold_score]
    return places[(-score[places]).argsort(kind="stable")]


def _with_strict(order: list[int], strict: list[int], limit: int) -> list[int]:
    """Return the order with all strict matches included, in place of the lowest others; unchanged if they do not all
    fit."""
    if len(strict) > limit:
        return order
    required = set(strict)
    others = [at for at in order if at not in required][: limit - len(strict)]
    kept = required.union(others)
    return [at for at in order if at in kept] + [at for at in strict if at not in order]
