"""Analysis of entries: their terms and vectors, computed once and cached, and the vectors of words."""

from __future__ import annotations

import re
import sys
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from search.entries import Entry
from search.times import says_when
from search.tokens import language_of, tokens_of
from search.vectors import DIMENSIONS, Floats, StaticVectors, static_vectors, unit

Ints = NDArray[np.int64]

KEYWORD_SHARE: Final = 0.8
"""Maximum weight of a match in the keywords, relative to the same match in the content, in every kind of evidence."""
_MAX_SPELLINGS: Final = 200_000
"""Spellings in one vocabulary (1 KB each with its vector) before the cache starts a new one."""
_QUESTION_END: Final = re.compile(r"[?؟？]\W*$")


BookKey = tuple[Hashable, Hashable]
"""Identifies the book of a text: (owner, book)."""


class Vocabulary:
    """Vectors of spellings, by number. Numbers are never reused, so readers need no lock; spellings that no cached text
    uses any more are erased. A spelling has the same vector in every book, so books share a vocabulary."""

    def __init__(self, vectors: StaticVectors) -> None:
        self.vectors = vectors
        self._numbers: dict[str, int] = {}
        self._spellings: list[str] = []
        self._uses: list[int] = []
        self._lock = threading.Lock()
        self._rows: Floats = np.zeros((1024, DIMENSIONS), dtype=np.float32)
        self._computed = 0

    def __len__(self) -> int:
        return len(self._spellings)

    def add(self, spelling: str) -> int:
        """Return the number of a spelling, assigning the next one if it is new."""
        known = self._numbers.get(spelling)
        if known is not None:
            return known
        with self._lock:
            known = self._numbers.get(spelling)
            if known is None:
                known = self._numbers[spelling] = len(self._spellings)
                self._spellings.append(spelling)
                self._uses.append(0)
        return known

    def use(self, numbers: Iterable[int]) -> None:
        """Increment the use counts of these spellings for a newly cached text."""
        with self._lock:
            for number in numbers:
                self._uses[number] += 1

    def release(self, numbers: Iterable[int], *, vectors: bool) -> None:
        """Decrement the use counts and erase unused spellings; with `vectors` their vectors, too."""
        with self._lock:
            for number in numbers:
                self._uses[number] -= 1
                if not self._uses[number]:
                    self._numbers.pop(self._spellings[number], None)
                    self._spellings[number] = ""
                    if vectors and number < self._computed:
                        self._rows[number] = 0

    def compute_missing(self) -> None:
        """Compute the vectors of new spellings."""
        with self._lock:
            if self._computed < len(self._spellings):
                self._compute_missing()

    def word_vectors(self, numbers: Ints) -> Floats:
        """Return the unit vectors of spellings, one row each."""
        self.compute_missing()
        return self._rows[numbers]

    def _compute_missing(self) -> None:
        missing = self._spellings[self._computed :]
        if len(self._spellings) > len(self._rows):
            larger = np.zeros((len(self._spellings) * 2, DIMENSIONS), dtype=np.float32)
            larger[: self._computed] = self._rows[: self._computed]
            self._rows = larger
        self._rows[self._computed : len(self._spellings)] = unit(self.vectors.embed(missing))
        self._computed = len(self._spellings)


@dataclass(frozen=True, slots=True, eq=False)
class Analysis:
    """An analysed entry. Its arrays are read-only."""

    vocabulary: Vocabulary
    words: tuple[str, ...]
    """The distinct terms, in the order of the columns of `terms`."""
    terms: NDArray[np.int32]
    """One column per distinct term (4, K): the number of its first spelling, its counts in the content and in the
    keywords, and whether the content writes it as a name or number."""
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
        self._cache: OrderedDict[bytes, Analysis] = OrderedDict()
        self._book_of: dict[bytes, BookKey | None] = {}
        self._lock = threading.Lock()
        self._vocabulary: Vocabulary | None = None
        self._evictions = 0
        self.misses = 0
        """Number of entries analysed so far, for tests and metrics."""

    def __len__(self) -> int:
        return len(self._cache)

    def vocabulary(self) -> Vocabulary:
        """Return the current vocabulary; start a new one if it has grown too large."""
        with self._lock:
            if self._vocabulary is None or len(self._vocabulary) > _MAX_SPELLINGS:
                self._vocabulary = Vocabulary(static_vectors())
                self._cache.clear()
                self._book_of.clear()
            return self._vocabulary

    def analyse(self, entries: Sequence[Entry], book: BookKey | None = None) -> tuple[Vocabulary, list[Analysis]]:
        """Return one analysis per entry, all over the returned vocabulary, and cache them as texts of `book`."""
        keys = [entry.words_key for entry in entries]
        while True:
            vocabulary = self.vocabulary()
            with self._lock:
                evictions = self._evictions
                analyses = {key: self._cache[key] for key in keys if key in self._cache}
                analyses = {key: analysis for key, analysis in analyses.items() if analysis.vocabulary is vocabulary}
                for key in analyses:
                    self._cache.move_to_end(key)
            missing = {key: entry for key, entry in zip(keys, entries, strict=True) if key not in analyses}
            texts = [(entry.content, entry.joined_keywords) for entry in missing.values()]
            fresh = dict(zip(missing, _analyse(texts, vocabulary), strict=True))
            vocabulary.compute_missing()
            if self._store(fresh, book, vocabulary, evictions):
                analyses.update(fresh)
                return vocabulary, [analyses[key] for key in keys]

    def forget(self, matches: Callable[[BookKey | None], bool]) -> None:
        """Drop the texts of the books for which `matches` returns True, with the words that no other text uses. This
        includes texts that another book contains, too: they are analysed again when that book is next built."""
        with self._lock:
            forgotten = {book for book in set(self._book_of.values()) if matches(book)}
            for key in [key for key, book in self._book_of.items() if book in forgotten]:
                self._evict(key, self._cache.pop(key), vectors=True)

    def _store(
        self, fresh: dict[bytes, Analysis], book: BookKey | None, vocabulary: Vocabulary, evictions: int
    ) -> bool:
        """Cache new analyses. Return False if a text was evicted since they were begun, since spellings that they share
        with it may have been erased."""
        with self._lock:
            if evictions != self._evictions or vocabulary is not self._vocabulary:
                return False
            self.misses += len(fresh)
            for key, analysis in fresh.items():
                if key not in self._cache:  # another thread may have been faster
                    vocabulary.use(analysis.terms[0].tolist())
                    self._cache[key], self._book_of[key] = analysis, book
            while len(self._cache) > self._max:
                # Another thread may be building a book from these texts and need their vectors.
                self._evict(*self._cache.popitem(last=False), vectors=False)
            return True

    def _evict(self, key: bytes, analysis: Analysis, *, vectors: bool) -> None:
        self._evictions += 1
        del self._book_of[key]
        analysis.vocabulary.release(analysis.terms[0].tolist(), vectors=vectors)


PROCESS_CACHE: Final = AnalysisCache()
"""The default cache of every index in the process."""


def _analyse(texts: Sequence[tuple[str, str]], vocabulary: Vocabulary) -> list[Analysis]:
    """Analyse pairs of content and keywords."""
    embed = vocabulary.vectors.embed
    vectors = unit(embed([content for content, _ in texts]))
    vectors += np.float32(KEYWORD_SHARE) * unit(embed([keywords for _, keywords in texts]))
    return [_analysis(*text, vector.copy(), vocabulary) for text, vector in zip(texts, vectors, strict=True)]


def _analysis(content: str, keywords: str, vector: Floats, vocabulary: Vocabulary) -> Analysis:
    language = language_of(content)
    content_tokens = tokens_of(content, language if content.isascii() else None)
    keyword_tokens = tokens_of(keywords)
    # The first spelling of a term is used; those of the content take precedence over those of the keywords.
    surfaces = {token.term: token.surface for token in (*reversed(keyword_tokens), *reversed(content_tokens))}
    in_content, in_keywords = (Counter(token.term for token in tokens) for tokens in (content_tokens, keyword_tokens))
    names = {token.term for token in content_tokens if token.is_name}
    columns = [
        (vocabulary.add(surface.casefold()), in_content[term], in_keywords[term], term in names)
        for term, surface in surfaces.items()
    ]
    return Analysis(
        vocabulary=vocabulary,
        words=tuple(map(sys.intern, surfaces)),
        terms=np.array(columns, dtype=np.int32).reshape(-1, 4).T.copy(),
        length=len(content_tokens),
        keywords_length=len(keyword_tokens),
        vector=vector,
        is_question=bool(_QUESTION_END.search(content)),
        says_when=says_when(content),
        language=language,
    )
