"""What is worked out once per entry and kept: its terms, its vector, and the vectors of words."""

from __future__ import annotations

import hashlib
import re
import threading
from collections import Counter, OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from memories.search.entries import Entry
from memories.search.times import says_when
from memories.search.tokens import Token, tokens_of
from memories.search.vectors import DIMENSIONS, Floats, StaticVectors, static_vectors, unit

Ints = NDArray[np.int64]

KEYWORD_SHARE: Final = 0.8
"""Most that keywords count beside the same match in the content, in every kind of evidence."""
_MOST_TERMS: Final = 200_000
"""Terms one vocabulary holds (1 KB each with its vector) before the cache starts a new one."""
_QUESTION_END: Final = re.compile(r"[?؟？]\W*$")


class Vocabulary:
    """Numbers for terms and vectors for words; only grows, so readers need no lock."""

    def __init__(self, vectors: StaticVectors) -> None:
        self.vectors = vectors
        self._numbers: dict[str, int] = {}
        self._surfaces: list[str] = []
        self._lock = threading.Lock()
        self._rows: Floats = np.zeros((1024, DIMENSIONS), dtype=np.float32)
        self._filled = 0

    def __len__(self) -> int:
        return len(self._surfaces)

    def number_of(self, term: str) -> int:
        """Return the number of a term, -1 if it is not known."""
        return self._numbers.get(term, -1)

    def add(self, term: str, surface: str) -> int:
        """Return the number of a term, giving it the next one if it is new."""
        known = self._numbers.get(term)
        if known is not None:
            return known
        with self._lock:
            known = self._numbers.get(term)
            if known is None:
                known = len(self._surfaces)
                self._surfaces.append(surface)
                self._numbers[term] = known
        return known

    def word_vectors(self, numbers: Ints) -> Floats:
        """Return unit vectors of the terms, one row each."""
        with self._lock:
            if self._filled < len(self._surfaces):
                self._fill()
            rows = self._rows
        return rows[numbers]

    def _fill(self) -> None:
        missing = self._surfaces[self._filled :]
        if len(self._surfaces) > len(self._rows):
            grown = np.zeros((len(self._surfaces) * 2, DIMENSIONS), dtype=np.float32)
            grown[: self._filled] = self._rows[: self._filled]
            self._rows = grown
        self._rows[self._filled : len(self._surfaces)] = unit(self.vectors.embed(missing))
        self._filled = len(self._surfaces)


@dataclass(frozen=True, slots=True, eq=False)
class Analysis:
    """One analysed entry. Arrays are read only."""

    vocabulary: Vocabulary
    terms: NDArray[np.int32]
    """One column per distinct term: its number, how often it occurs in the content and in the keywords, and whether
    the content writes it as a name or number (4, K)."""
    length: int
    """Terms of the content, with repeats."""
    keywords_length: int
    vector: Floats
    """Mean static vector of the content with a share of the keywords', not normalised (256)."""
    asks: bool
    """The content ends with a question mark."""
    says_when: bool
    """The content holds words or figures of time."""


class AnalysisCache:
    """Analyses by hash of content and keywords, least recently used dropped first; thread-safe."""

    def __init__(self, *, max_texts: int = 50_000) -> None:
        self._max = max_texts
        self._kept: OrderedDict[bytes, Analysis] = OrderedDict()
        self._lock = threading.Lock()
        self._vocabulary: Vocabulary | None = None
        self.misses = 0
        """Entries analysed so far; tests and metrics read it."""

    def __len__(self) -> int:
        return len(self._kept)

    def vocabulary(self) -> Vocabulary:
        """Return the vocabulary in use; a new one when the old has grown too large."""
        with self._lock:
            if self._vocabulary is None or len(self._vocabulary) > _MOST_TERMS:
                self._vocabulary = Vocabulary(static_vectors())
                self._kept.clear()
            return self._vocabulary

    def analyse(self, entries: Sequence[Entry]) -> tuple[Vocabulary, list[Analysis]]:
        """Return one analysis per entry, all over the returned vocabulary."""
        vocabulary = self.vocabulary()
        texts = [(entry.content, ", ".join(entry.keywords)) for entry in entries]
        keys = [_key(*text) for text in texts]
        with self._lock:
            found = {key: self._kept[key] for key in keys if key in self._kept}
            found = {key: kept for key, kept in found.items() if kept.vocabulary is vocabulary}
            for key in found:
                self._kept.move_to_end(key)
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
        fresh = dict(zip(missing, _analyse(list(missing.values()), vocabulary), strict=True))
        with self._lock:
            self.misses += len(fresh)
            self._kept.update(fresh)
            while len(self._kept) > self._max:
                self._kept.popitem(last=False)
        found.update(fresh)
        return vocabulary, [found[key] for key in keys]


PROCESS_CACHE: Final = AnalysisCache()
"""What every index of the process shares unless it is told otherwise."""


def _key(content: str, keywords: str) -> bytes:
    # A hash, so that a forgotten text is not kept alive here.
    text = f"{len(content)} {content}{keywords}"
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _analyse(texts: Sequence[tuple[str, str]], vocabulary: Vocabulary) -> list[Analysis]:
    """Analyse pairs of content and keywords; contents first, so that theirs are the spellings that terms keep."""
    if not texts:
        return []
    contents, keywords = [content for content, _ in texts], [found_by for _, found_by in texts]
    said = [tokens_of(text) for text in contents]
    numbers = [_numbered(tokens, vocabulary) for tokens in said]
    found_by = [_numbered(tokens_of(text), vocabulary) for text in keywords]
    embed = vocabulary.vectors.embed
    vectors = unit(embed(contents)) + np.float32(KEYWORD_SHARE) * unit(embed(keywords))
    return [
        Analysis(
            vocabulary=vocabulary,
            terms=_columns(numbers[at], said[at], found_by[at]),
            length=len(numbers[at]),
            keywords_length=len(found_by[at]),
            vector=vectors[at].copy(),
            asks=bool(_QUESTION_END.search(content)),
            says_when=says_when(content),
        )
        for at, content in enumerate(contents)
    ]


def _numbered(tokens: Iterable[Token], vocabulary: Vocabulary) -> list[int]:
    return [vocabulary.add(token.term, token.surface) for token in tokens]


def _columns(numbers: Sequence[int], tokens: Sequence[Token], found_by: Sequence[int]) -> NDArray[np.int32]:
    said, found = Counter(numbers), Counter(found_by)
    names = {number for number, token in zip(numbers, tokens, strict=True) if token.is_name}
    every = list(said.keys() | found.keys()) if found else list(said)
    rows = [every, [said[one] for one in every], [found[one] for one in every], [one in names for one in every]]
    return np.array(rows, dtype=np.int32)
