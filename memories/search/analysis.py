"""What is worked out once per text and kept: its terms, its vector, and the vectors of words."""

from __future__ import annotations

import hashlib
import re
import threading
from collections import Counter, OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from memories.search.times import says_when
from memories.search.tokens import tokens_of
from memories.search.vectors import DIMENSIONS, Floats, StaticVectors, static_vectors, unit

Ints = NDArray[np.int64]

_MOST_TERMS: Final = 200_000
"""Terms one vocabulary holds (1 KB each with its vector) before the cache starts a new one."""
_QUESTION_END: Final = re.compile(r"[?؟？]\W*$")


class Vocabulary:
    """Numbers for terms and vectors for words; only grows, so readers need no lock."""

    def __init__(self, vectors: StaticVectors) -> None:
        self._vectors = vectors
        self._numbers: dict[str, int] = {}
        self._surfaces: list[str] = []
        self._lock = threading.Lock()
        self._rows: Floats = np.zeros((1024, DIMENSIONS), dtype=np.float32)
        self._filled = 0

    def __len__(self) -> int:
        return len(self._surfaces)

    def number_of(self, term: str) -> int | None:
        """Return the number of a known term."""
        return self._numbers.get(term)

    def surface(self, number: int) -> str:
        """Return the spelling in which the term was first met."""
        return self._surfaces[number]

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
        return np.asarray(rows[numbers], dtype=np.float32)

    def embed(self, texts: Sequence[str]) -> Floats:
        """Return vectors of texts, kept or not, one row each, not normalised."""
        return self._vectors.embed([text.casefold() for text in texts])

    def importance(self, words: Sequence[str]) -> Floats:
        """Return how much each word says in general, 0 to 1."""
        return self._vectors.importance([word.casefold() for word in words])

    def _fill(self) -> None:
        missing = self._surfaces[self._filled :]
        if len(self._surfaces) > len(self._rows):
            grown = np.zeros((len(self._surfaces) * 2, DIMENSIONS), dtype=np.float32)
            grown[: self._filled] = self._rows[: self._filled]
            self._rows = grown
        self._rows[self._filled : len(self._surfaces)] = unit(self._vectors.embed([s.casefold() for s in missing]))
        self._filled = len(self._surfaces)


@dataclass(frozen=True, slots=True, eq=False)
class Analysis:
    """One analysed text. Arrays are read only."""

    vocabulary: Vocabulary
    terms: Ints
    """Numbers of the distinct terms."""
    counts: Floats
    """How often each occurs."""
    names: Ints
    """Numbers of the terms written as names or numbers."""
    length: int
    """Number of terms with repeats."""
    vector: Floats
    """Mean static vector of the folded text, not normalised (256)."""
    asks: bool
    """Ends with a question mark."""
    says_when: bool
    """Holds words or figures of time."""


class AnalysisCache:
    """Analyses by hash of the text, least recently used dropped first; thread-safe."""

    def __init__(self, *, max_texts: int = 50_000) -> None:
        self._max = max_texts
        self._kept: OrderedDict[bytes, Analysis] = OrderedDict()
        self._lock = threading.Lock()
        self._vocabulary: Vocabulary | None = None
        self.misses = 0
        """Texts analysed so far; tests and metrics read it."""

    def __len__(self) -> int:
        return len(self._kept)

    def vocabulary(self) -> Vocabulary:
        """Return the vocabulary in use; a new one when the old has grown too large."""
        with self._lock:
            if self._vocabulary is None or len(self._vocabulary) > _MOST_TERMS:
                self._vocabulary = Vocabulary(static_vectors())
                self._kept.clear()
            return self._vocabulary

    def analyse(self, texts: Sequence[str]) -> tuple[Vocabulary, list[Analysis]]:
        """Return one analysis per text, all over the returned vocabulary."""
        vocabulary = self.vocabulary()
        keys = [hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest() for text in texts]
        found: dict[bytes, Analysis] = {}
        with self._lock:
            for key in keys:
                kept = self._kept.get(key)
                if kept is not None and kept.vocabulary is vocabulary:
                    self._kept.move_to_end(key)
                    found[key] = kept
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
        fresh = dict(zip(missing, analyse_texts(list(missing.values()), vocabulary), strict=True))
        with self._lock:
            self.misses += len(fresh)
            self._kept.update(fresh)
            while len(self._kept) > self._max:
                self._kept.popitem(last=False)
        found.update(fresh)
        return vocabulary, [found[key] for key in keys]


def analyse_texts(texts: Sequence[str], vocabulary: Vocabulary) -> list[Analysis]:
    """Analyse texts without keeping anything but their words."""
    if not texts:
        return []
    vectors = static_vectors().embed([text.casefold() for text in texts])
    return [_analyse(text, vector, vocabulary) for text, vector in zip(texts, vectors, strict=True)]


def _analyse(text: str, vector: Floats, vocabulary: Vocabulary) -> Analysis:
    tokens = tokens_of(text)
    numbers = [vocabulary.add(token.term, token.surface) for token in tokens]
    counted = Counter(numbers)
    names = {number for number, token in zip(numbers, tokens, strict=True) if token.is_name}
    return Analysis(
        vocabulary=vocabulary,
        terms=np.fromiter(counted.keys(), dtype=np.int64, count=len(counted)),
        counts=np.fromiter(counted.values(), dtype=np.float32, count=len(counted)),
        names=np.fromiter(names, dtype=np.int64, count=len(names)),
        length=len(tokens),
        vector=vector,
        asks=bool(_QUESTION_END.search(text)),
        says_when=says_when(text),
    )
