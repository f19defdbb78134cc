"""The search over one book: build once, ask many times, from any thread."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from memories.search.analysis import AnalysisCache
from memories.search.arrays import BookArrays, build_arrays
from memories.search.entries import Entry
from memories.search.hits import Hit
from memories.search.keywords import extract_keywords
from memories.search.match_all import fold, holds_all
from memories.search.query import analyse_query
from memories.search.ranking import pick, total_score
from memories.search.signals import gather_evidence
from memories.search.tuning import DEFAULT, Tuning

STRATEGIES = ("ranked", "match_all")


class BookIndex:
    """An immutable index over the entries of one book."""

    def __init__(self, entries: tuple[Entry, ...], arrays: BookArrays, tuning: Tuning = DEFAULT) -> None:
        self.entries = entries
        self._arrays = arrays
        self._tuning = tuning
        self._folded = tuple(fold(entry.content) for entry in entries)
        self.nbytes = arrays.nbytes + sum(len(text) for text in self._folded)

    @classmethod
    def build(
        cls, entries: Sequence[Entry], *, analysis: AnalysisCache | None = None, tuning: Tuning = DEFAULT
    ) -> BookIndex:
        """Index `entries`; what `analysis` has seen before is not analysed again."""
        return cls(tuple(entries), build_arrays(entries, analysis or AnalysisCache()), tuning)

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
    ) -> list[Hit]:
        """Return at most `limit` hits."""
        if strategy not in STRATEGIES:
            raise ValueError(f"strategy must be one of {', '.join(STRATEGIES)}, not {strategy!r}")
        wanted = extract_keywords(query) if keywords is None else [k for k in keywords if k]
        allowed = [
            at
            for at, entry in enumerate(self.entries)
            if (category is None or entry.category == category) and entry.number not in exclude
        ]
        if limit <= 0 or not allowed:
            return []
        folded = [fold(keyword) for keyword in wanted]
        strict = [at for at in allowed if holds_all(self._folded[at], folded)]
        if strategy == "match_all" or not wanted:
            why = "Every keyword occurs in it." if wanted else "All entries: the message gave no keywords."
            return [self._hit(at, 1.0, why) for at in strict[:limit]]
        analysed = analyse_query(query, wanted if keywords is not None else (), self._arrays)
        evidence = gather_evidence(analysed, self._arrays)
        score = total_score(evidence, analysed, self._arrays, self._tuning)
        mask = np.zeros(len(self.entries), dtype=bool)
        mask[allowed] = True
        order = pick(score, mask, self._arrays, limit, self._tuning)
        order = self._with_strict(order, strict, limit)
        return [self._hit(at, float(score[at]), "Close in words or meaning.") for at in order]

    def _with_strict(self, order: list[int], strict: list[int], limit: int) -> list[int]:
        missing = [at for at in strict[:limit] if at not in order]
        return (order[: max(limit - len(missing), 0)] + missing)[:limit]

    def _hit(self, at: int, score: float, why: str) -> Hit:
        return Hit(number=self.entries[at].number, score=score, why=why, reasons=())
