"""Which words of a book are close to a word of a message in the static embedding, and which entries hold them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from search.analysis import Ints
from search.book import BookArrays
from search.tokens import Token, has_digit
from search.vectors import Floats, unit

CLOSEST_COSINE: Final = 0.3
"""Cosine from which an entry's word counts as somewhat close to a query word."""
NEAR_COSINE: Final = 0.45
"""Cosine from which a word of the book is searched together with a word of the message."""
NEAR_WORDS: Final = 6
"""Words of the book, close to a query word, that are searched with it."""
NEAR_WEIGHT: Final = 0.4
"""Weight of a near word with cosine 1; a shared word weighs 1."""
_MOST_KEPT: Final = 256
"""Words of messages for which a book keeps what is close to them."""


@dataclass(frozen=True, slots=True, eq=False)
class CloseWords:
    """What is close to one word of a message in one book."""

    nearest: tuple[tuple[int, float], ...]
    """Terms from `NEAR_COSINE` with their cosines, closest first, the word itself among them."""
    near: Ints
    """At most `NEAR_WORDS` other terms above `NEAR_COSINE`, closest first."""
    near_weights: Floats
    entries: NDArray[np.int64]
    """Entries that hold any term above `CLOSEST_COSINE`."""
    best: Floats
    """For each of them the cosine of its closest term; terms of the keywords count `KEYWORD_SHARE`."""

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return 100 * len(self.nearest) + 12 * (len(self.near) + len(self.entries))


_NO_PLACES, _NO_VALUES = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32)
_NOTHING = CloseWords((), _NO_PLACES, _NO_VALUES, _NO_PLACES, _NO_VALUES)


class TermSimilarity:
    """Finds close words in one book, and keeps them for the words asked last: messages repeat their words."""

    def __init__(self, book: BookArrays) -> None:
        self._book = book
        self._kept: dict[Token, CloseWords] = {}

    @property
    def nbytes(self) -> int:
        """Bytes of what is kept."""
        return sum(close.nbytes for close in self._kept.values())

    def of(self, words: Sequence[Token], terms: Ints) -> list[CloseWords]:
        """Return what is close to each word; `terms` are their places in the book, -1 where it lacks them."""
        kept = self._kept
        # Numbers and codes are the same or they are not: 4417 has no meaning that 4471 could be near to.
        missing = [
            at
            for at, (word, term) in enumerate(zip(words, terms.tolist(), strict=True))
            if word not in kept and (term >= 0 or not has_digit(word.term))
        ]
        if missing:
            found = self._find([words[at] for at in missing], terms[missing])
            # A new dictionary: another thread may be reading the old one.
            kept = kept | dict(zip([words[at] for at in missing], found, strict=True))
            self._kept = kept if len(kept) <= _MOST_KEPT else dict(list(kept.items())[-_MOST_KEPT // 2 :])
        return [kept.get(word, _NOTHING) for word in words]

    def _find(self, words: Sequence[Token], terms: Ints) -> list[CloseWords]:
        book = self._book
        rows = np.zeros((len(words), book.word_vectors.shape[1]), dtype=np.float32)
        known = terms >= 0
        has_meaning = np.array([not has_digit(word.term) for word in words])
        own = known & has_meaning
        rows[own] = book.word_vectors[terms[own]]
        if (strange := ~known & has_meaning).any():
            spelled = [words[at].surface for at in strange.nonzero()[0]]
            rows[strange] = unit(unit(book.static.embed(spelled)) - book.word_centre)
        # Row by row: a product of matrices rounds a word's row otherwise in other company.
        cosine = np.vecdot(rows[:, None], book.word_vectors)
        cosine[known, terms[known]] = 1.0
        return [self._close(row, term) for row, term in zip(cosine, terms.tolist(), strict=True)]

    def _close(self, cosine: Floats, own_term: int) -> CloseWords:
        terms = (cosine > CLOSEST_COSINE).nonzero()[0]
        close = cosine[terms]
        order = (-close).argsort(kind="stable")
        terms, close = terms[order], close[order]
        near = terms[: int((close > NEAR_COSINE).sum())]
        near = near[near != own_term][:NEAR_WORDS]
        best = self._book.holding.best(terms, close)
        entries = best.nonzero()[0]
        count = int((close >= NEAR_COSINE).sum())
        nearest = tuple(zip(terms[:count].tolist(), close[:count].tolist(), strict=True))
        return CloseWords(nearest, near, NEAR_WEIGHT * cosine[near], entries, best[entries])
