"""What is worked out once per entry and kept: its terms, its vector, and the vectors of words."""

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
"""Most that keywords count beside the same match in the content, in every kind of evidence."""
_MOST_SPELLINGS: Final = 200_000
"""Spellings one vocabulary holds (1 KB each with its vector) before the cache starts a new one."""
_QUESTION_END: Final = re.compile(r"[?؟？]\W*$")


BookKey = tuple[Hashable, Hashable]
"""Names the book that a text belongs to: its owner and itself."""


class Vocabulary:
    """Vectors of spellings, by number. A number is never given twice, so readers need no lock; a spelling that no kept
    text uses any longer is erased. What a spelling means is the same in every book, so books may share a vocabulary."""

    def __init__(self, vectors: StaticVectors) -> None:
        self.vectors = vectors
        self._numbers: dict[str, int] = {}
        self._spellings: list[str] = []
        self._uses: list[int] = []
        self._lock = threading.Lock()
        self._rows: Floats = np.zeros((1024, DIMENSIONS), dtype=np.float32)
        self._filled = 0

    def __len__(self) -> int:
        return len(self._spellings)

    def add(self, spelling: str) -> int:
        """Return the number of a spelling, giving it the next one if it is new."""
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
        """Count one more kept text that uses each of these spellings."""
        with self._lock:
            for number in numbers:
                self._uses[number] += 1

    def release(self, numbers: Iterable[int], *, vectors: bool) -> None:
        """Count one text less, and erase the spellings that none uses now; with `vectors` their vectors too."""
        with self._lock:
            for number in numbers:
                self._uses[number] -= 1
                if not self._uses[number]:
                    self._numbers.pop(self._spellings[number], None)
                    self._spellings[number] = ""
                    if vectors and number < self._filled:
                        self._rows[number] = 0

    def fill(self) -> None:
        """Work out the vectors that are missing."""
        with self._lock:
            if self._filled < len(self._spellings):
                self._fill()

    def word_vectors(self, numbers: Ints) -> Floats:
        """Return unit vectors of the spellings, one row each."""
        self.fill()
        return self._rows[numbers]

    def _fill(self) -> None:
        missing = self._spellings[self._filled :]
        if len(self._spellings) > len(self._rows):
            grown = np.zeros((len(self._spellings) * 2, DIMENSIONS), dtype=np.float32)
            grown[: self._filled] = self._rows[: self._filled]
            self._rows = grown
        self._rows[self._filled : len(self._spellings)] = unit(self.vectors.embed(missing))
        self._filled = len(self._spellings)


@dataclass(frozen=True, slots=True, eq=False)
class Analysis:
    """One analysed entry. Arrays are read only."""

    vocabulary: Vocabulary
    words: tuple[str, ...]
    """The distinct terms, in the order of the columns of `terms`."""
    terms: NDArray[np.int32]
    """One column per distinct term: the number of its first spelling, how often it occurs in the content and in the
    keywords, and whether the content writes it as a name or number (4, K)."""
    length: int
    """Terms of the content, with repeats."""
    keywords_length: int
    vector: Floats
    """Mean static vector of the content with a share of the keywords', not normalised (256)."""
    asks: bool
    """The content ends with a question mark."""
    says_when: bool
    """The content holds words or figures of time."""
    language: str
    """Of the content, see `language_of`."""


class AnalysisCache:
    """Analyses by hash of content and keywords, least recently used dropped first; thread-safe."""

    def __init__(self, *, max_texts: int = 50_000) -> None:
        self._max = max_texts
        self._kept: OrderedDict[bytes, Analysis] = OrderedDict()
        self._book_of: dict[bytes, BookKey | None] = {}
        self._lock = threading.Lock()
        self._vocabulary: Vocabulary | None = None
        self._drops = 0
        self.misses = 0
        """Entries analysed so far; tests and metrics read it."""

    def __len__(self) -> int:
        return len(self._kept)

    def vocabulary(self) -> Vocabulary:
        """Return the vocabulary in use; a new one when the old has grown too large."""
        with self._lock:
            if self._vocabulary is None or len(self._vocabulary) > _MOST_SPELLINGS:
                self._vocabulary = Vocabulary(static_vectors())
                self._kept.clear()
                self._book_of.clear()
            return self._vocabulary

    def analyse(self, entries: Sequence[Entry], book: BookKey | None = None) -> tuple[Vocabulary, list[Analysis]]:
        """Return one analysis per entry, all over the returned vocabulary. They are kept as texts of `book`."""
        keys = [entry.words_key for entry in entries]
        while True:
            vocabulary = self.vocabulary()
            with self._lock:
                drops = self._drops
                found = {key: self._kept[key] for key in keys if key in self._kept}
                found = {key: kept for key, kept in found.items() if kept.vocabulary is vocabulary}
                for key in found:
                    self._kept.move_to_end(key)
            missing = {key: entry for key, entry in zip(keys, entries, strict=True) if key not in found}
            texts = [(entry.content, entry.joined_keywords) for entry in missing.values()]
            fresh = dict(zip(missing, _analyse(texts, vocabulary), strict=True))
            vocabulary.fill()
            if self._keep(fresh, book, vocabulary, drops):
                found.update(fresh)
                return vocabulary, [found[key] for key in keys]

    def forget(self, matches: Callable[[BookKey | None], bool]) -> None:
        """Drop the texts of the books that `matches` names, with the words that no other text uses. Also texts that
        another book has come to hold since: they are analysed again when that book is laid out next."""
        with self._lock:
            chosen = {book for book in set(self._book_of.values()) if matches(book)}
            for key in [key for key, book in self._book_of.items() if book in chosen]:
                self._drop(key, self._kept.pop(key), vectors=True)

    def _keep(self, fresh: dict[bytes, Analysis], book: BookKey | None, vocabulary: Vocabulary, drops: int) -> bool:
        """Keep new analyses. False when a text was dropped since they were begun: its words, which they may share, may
        have been erased before these were kept."""
        with self._lock:
            if drops != self._drops or vocabulary is not self._vocabulary:
                return False
            self.misses += len(fresh)
            for key, analysis in fresh.items():
                if key not in self._kept:  # another thread may have been quicker
                    vocabulary.use(analysis.terms[0].tolist())
                    self._kept[key], self._book_of[key] = analysis, book
            while len(self._kept) > self._max:
                # A thread may be laying out a book of these texts right now, with their vectors.
                self._drop(*self._kept.popitem(last=False), vectors=False)
            return True

    def _drop(self, key: bytes, analysis: Analysis, *, vectors: bool) -> None:
        self._drops += 1
        del self._book_of[key]
        analysis.vocabulary.release(analysis.terms[0].tolist(), vectors=vectors)


PROCESS_CACHE: Final = AnalysisCache()
"""What every index of the process shares unless it is told otherwise."""


def _analyse(texts: Sequence[tuple[str, str]], vocabulary: Vocabulary) -> list[Analysis]:
    """Analyse pairs of content and keywords."""
    embed = vocabulary.vectors.embed
    vectors = unit(embed([content for content, _ in texts]))
    vectors += np.float32(KEYWORD_SHARE) * unit(embed([keywords for _, keywords in texts]))
    return [_analysis(*text, vector.copy(), vocabulary) for text, vector in zip(texts, vectors, strict=True)]


def _analysis(content: str, keywords: str, vector: Floats, vocabulary: Vocabulary) -> Analysis:
    language = language_of(content)
    said = tokens_of(content, language if content.isascii() else None)
    written = tokens_of(keywords)
    # The first spelling of a term counts, and one of the content before those of the keywords.
    spelled = {token.term: token.surface for token in (*reversed(written), *reversed(said))}
    in_content, in_keywords = (Counter(token.term for token in tokens) for tokens in (said, written))
    names = {token.term for token in said if token.is_name}
    columns = [
        (vocabulary.add(surface.casefold()), in_content[term], in_keywords[term], term in names)
        for term, surface in spelled.items()
    ]
    return Analysis(
        vocabulary=vocabulary,
        words=tuple(map(sys.intern, spelled)),
        terms=np.array(columns, dtype=np.int32).reshape(-1, 4).T.copy(),
        length=len(said),
        keywords_length=len(written),
        vector=vector,
        asks=bool(_QUESTION_END.search(content)),
        says_when=says_when(content),
        language=language,
    )
