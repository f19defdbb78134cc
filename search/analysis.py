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
from search.vectors import DIMENSIONS, Floats, static_vectors, unit

Ints = NDArray[np.int64]

KEYWORD_SHARE: Final = 0.8
"""Maximum weight of a match in the keywords, relative to the same match in the content, in every kind of evidence."""
_MAX_SPELLINGS: Final = 200_000
"""Spellings whose vectors are cached (1 KB each)."""
_QUESTION_END: Final = re.compile(r"[?؟？][^\w?؟？]*+$")  # linear: of many marks only the last one counts


BookKey = tuple[Hashable, Hashable]
"""Identifies the book of a text: (owner, book)."""


@dataclass(frozen=True, slots=True, eq=False)
class Analysis:
    """An analysed entry. Its arrays are read-only."""

    words: tuple[str, ...]
    """The distinct terms, in the order of the columns of `terms`."""
    spellings: tuple[str, ...]
    """The first spelling of each of these terms."""
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
    """An LRU cache of analyses by hash of content and keywords, and the vectors of their spellings, which are the same
    in every book. Thread-safe. Vectors that are missing are computed when they are needed."""

    def __init__(self, *, max_texts: int = 50_000) -> None:
        self._max = max_texts
        self._cache: OrderedDict[bytes, tuple[Analysis, BookKey | None]] = OrderedDict()
        self._word_vectors: dict[str, Floats] = {}
        self._lock = threading.Lock()
        self._forgettings = 0
        self.misses = 0
        """Number of entries analysed so far, for tests and metrics."""

    def __len__(self) -> int:
        return len(self._cache)

    def analyse(self, entries: Sequence[Entry], book: BookKey | None = None) -> list[Analysis]:
        """Return one analysis per entry, and cache them as texts of `book`, unless texts were forgotten meanwhile."""
        keys = [entry.words_key for entry in entries]
        with self._lock:
            forgettings = self._forgettings
            analyses = {key: self._cache[key][0] for key in keys if key in self._cache}
            for key in analyses:
                self._cache.move_to_end(key)
        missing = {key: entry for key, entry in zip(keys, entries, strict=True) if key not in analyses}
        fresh = dict(zip(missing, _analyse(list(missing.values())), strict=True))
        with self._lock:
            self.misses += len(fresh)
            for key, analysis in fresh.items() if forgettings == self._forgettings else ():
                self._cache[key] = analysis, book
            while len(self._cache) > self._max:
                _, (dropped, _) = self._cache.popitem(last=False)
                self._drop_vectors(dropped.spellings)
        analyses |= fresh
        return [analyses[key] for key in keys]

    def word_vectors(self, spellings: Sequence[str], entries: Sequence[Entry]) -> Floats:
        """Return the unit vectors of distinct spellings of these entries, one row each. They are cached unless one of
        the texts has left the cache since it was analysed: nothing would remove its words."""
        with self._lock:
            vectors = {word: self._word_vectors[word] for word in spellings if word in self._word_vectors}
        missing = [word for word in spellings if word not in vectors]
        fresh = {word: row.copy() for word, row in zip(missing, unit(static_vectors().embed(missing)), strict=True)}
        with self._lock:
            if all(entry.words_key in self._cache for entry in entries):
                if len(self._word_vectors) + len(fresh) > _MAX_SPELLINGS:
                    self._word_vectors.clear()
                self._word_vectors |= fresh
        vectors |= fresh
        return joined_rows([vectors[word] for word in spellings])

    def forget(self, matches: Callable[[BookKey | None], bool]) -> None:
        """Drop the texts of the books for which `matches` returns True, with the words that no other text uses. This
        includes texts that another book contains, too: they are analysed again when that book is next built."""
        with self._lock:
            self._forgettings += 1
            forgotten = {book for book in {book for _, book in self._cache.values()} if matches(book)}
            keys = [key for key, (_, book) in self._cache.items() if book in forgotten]
            words = {word for key in keys for word in self._cache.pop(key)[0].spellings}
            for analysis, _ in self._cache.values() if words else ():
                words.difference_update(analysis.spellings)
            self._drop_vectors(words)

    def _drop_vectors(self, words: Iterable[str]) -> None:
        for word in words:
            self._word_vectors.pop(word, None)


PROCESS_CACHE: Final = AnalysisCache()
"""The default cache of every index in the process."""


def joined_rows(rows: Sequence[Floats]) -> Floats:
    """Return static vectors as the rows of one array."""
    return np.concatenate(rows).reshape(-1, DIMENSIONS) if rows else np.zeros((0, DIMENSIONS), dtype=np.float32)


def _analyse(entries: Sequence[Entry]) -> list[Analysis]:
    embed = static_vectors().embed
    vectors = unit(embed([entry.content for entry in entries]))
    vectors += np.float32(KEYWORD_SHARE) * unit(embed([entry.joined_keywords for entry in entries]))
    return [_analysis(entry, vector.copy()) for entry, vector in zip(entries, vectors, strict=True)]


def _analysis(entry: Entry, vector: Floats) -> Analysis:
    content = entry.content
    language = language_of(content)
    content_tokens = tokens_of(content, language if content.isascii() else None)
    keyword_tokens = tokens_of(entry.joined_keywords)
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
