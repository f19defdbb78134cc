"""Analysis of entries: their terms and vectors, computed once and cached."""

from __future__ import annotations

import re
import sys
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from search.entries import Entry
from search.times import says_when
from search.tokens import language_of, tokens_of
from search.vectors import Floats, StaticVectors, static_vectors, unit

Ints = NDArray[np.int64]

KEYWORD_SHARE: Final = 0.8
"""Maximum weight of a match in the keywords, relative to the same match in the content, in every kind of evidence."""
_QUESTION_END: Final = re.compile(r"[?؟？]\W*$")


BookKey = tuple[Hashable, Hashable]
"""Identifies the book of a text: (owner, book)."""


@dataclass(frozen=True, slots=True, eq=False)
class Analysis:
    """An analysed entry. Its arrays are read-only."""

    words: tuple[str, ...]
    """The distinct terms, in the order of the columns of `terms`."""
    spellings: tuple[str, ...]
    """The first spelling of each term, case-folded."""
    terms: NDArray[np.int32]
    """One column per distinct term (3, K): its counts in the content and in the keywords, and whether the content
    writes it as a name or number."""
    length: int
    """Number of terms in the content, with repeats."""
    keywords_length: int
    vector: Floats
    """Mean static vector of the content plus a share of the keywords', not normalised (256)."""
    is_question: bool
    """The content ends with a question mark."""
    says_when: bool
    """The content has words or numbers that denote a time."""
    language: str
    """Language of the content, see `language_of`."""


class AnalysisCache:
    """An LRU cache of analyses by hash of content and keywords. Thread-safe."""

    def __init__(self, *, max_texts: int = 50_000) -> None:
        self._max = max_texts
        self._cache: OrderedDict[bytes, tuple[Analysis, BookKey | None]] = OrderedDict()
        self._lock = threading.Lock()
        self.misses = 0
        """Number of entries analysed so far, for tests and metrics."""

    def __len__(self) -> int:
        return len(self._cache)

    def analyse(self, entries: Sequence[Entry], book: BookKey | None = None) -> list[Analysis]:
        """Return one analysis per entry, and cache new ones as texts of `book`."""
        keys = [entry.words_key for entry in entries]
        with self._lock:
            analyses = {key: self._cache[key][0] for key in keys if key in self._cache}
            for key in analyses:
                self._cache.move_to_end(key)
        missing = {key: entry for key, entry in zip(keys, entries, strict=True) if key not in analyses}
        texts = [(entry.content, entry.joined_keywords) for entry in missing.values()]
        fresh = dict(zip(missing, _analyse(texts, static_vectors()), strict=True))
        with self._lock:
            self.misses += len(fresh)
            for key, analysis in fresh.items():
                self._cache.setdefault(key, (analysis, book))  # another thread may have been faster
            while len(self._cache) > self._max:
                self._cache.popitem(last=False)
        analyses.update(fresh)
        return [analyses[key] for key in keys]

    def forget(self, matches: Callable[[BookKey | None], bool]) -> None:
        """Drop the texts of the books for which `matches` returns True. This includes texts that another book contains,
        too: they are analysed again when that book is next built."""
        with self._lock:
            for key in [key for key, (_, book) in self._cache.items() if matches(book)]:
                del self._cache[key]


PROCESS_CACHE: Final = AnalysisCache()
"""The default cache of every index in the process."""


def _analyse(texts: Sequence[tuple[str, str]], static: StaticVectors) -> list[Analysis]:
    """Analyse pairs of content and keywords."""
    vectors = unit(static.embed([content for content, _ in texts]))
    vectors += np.float32(KEYWORD_SHARE) * unit(static.embed([keywords for _, keywords in texts]))
    return [_analysis(*text, vector.copy()) for text, vector in zip(texts, vectors, strict=True)]


def _analysis(content: str, keywords: str, vector: Floats) -> Analysis:
    language = language_of(content)
    content_tokens = tokens_of(content, language if content.isascii() else None)
    keyword_tokens = tokens_of(keywords)
    # The first spelling of a term is used; those of the content take precedence over those of the keywords.
    surfaces = {token.term: token.surface for token in (*reversed(keyword_tokens), *reversed(content_tokens))}
    in_content, in_keywords = (Counter(token.term for token in tokens) for tokens in (content_tokens, keyword_tokens))
    names = {token.term for token in content_tokens if token.is_name}
    columns = [(in_content[term], in_keywords[term], term in names) for term in surfaces]
    return Analysis(
        words=tuple(map(sys.intern, surfaces)),
        spellings=tuple([sys.intern(surface.casefold()) for surface in surfaces.values()]),
        terms=np.array(columns, dtype=np.int32).reshape(-1, 3).T.copy(),
        length=len(content_tokens),
        keywords_length=len(keyword_tokens),
        vector=vector,
        is_question=bool(_QUESTION_END.search(content)),
        says_when=says_when(content),
        language=language,
    )
