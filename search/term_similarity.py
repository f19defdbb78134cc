"""What a word of a message says about a book: which of the book's words are close to it in the static embedding, and
which entries hold it or them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from search.analysis import Ints
from search.book import BookArrays
from search.postings import NOTHING_SAID, Said
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
LEARNT_BY: Final = 200
"""Entries at which a book's own word counts are trusted as much as general knowledge of words."""
_MOST_KEPT: Final = 256
"""Words of messages for which a book keeps this."""


@dataclass(frozen=True, slots=True, eq=False)
class AskedWord:
    """What one word of a message says about the entries of one book, the same in every message."""

    token: Token
    term: int
    """Its place among the book's terms, -1 if the book does not hold it."""
    is_named: bool
    """The book writes it as a name or number."""
    weight: np.float32
    """How much it counts, without rarity."""
    idf_weight: np.float32
    """Weight times rarity; a word that the book lacks is as rare as can be."""
    nearest: Sequence[tuple[int, float]]
    """Terms from `NEAR_COSINE` with their cosines, closest first, the word itself among them."""
    closest: Said
    """Entries that hold any term above `CLOSEST_COSINE`: the closest one's cosine, times the rarity asked for. Terms of
    the keywords count `KEYWORD_SHARE`."""
    context: Said
    """What the word and those near it, at most `NEAR_WORDS`, say of entries with their surroundings."""
    keywords: Said
    """The same for the entries' keywords."""
    sessions: Said
    """The same for whole sessions."""
    names: Said
    """Entries that hold the word as a name or number."""

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        said = (self.closest, self.context, self.keywords, self.sessions, self.names)
        return 100 * len(self.nearest) + sum(places.nbytes + values.nbytes for places, values in said)


class TermSimilarity:
    """Knows the words of messages in one book, and keeps those asked last: messages repeat their words."""

    def __init__(self, book: BookArrays) -> None:
        self._book = book
        self._kept: dict[Token, AskedWord] = {}

    @property
    def nbytes(self) -> int:
        """Bytes of what is kept."""
        return sum(word.nbytes for word in self._kept.values())

    def of(self, words: Sequence[Token]) -> list[AskedWord]:
        """Return what each word says about the book."""
        kept = self._kept
        if missing := [word for word in words if word not in kept]:
            # A new dictionary: another thread may be reading the old one.
            kept = kept | dict(zip(missing, self._find(missing), strict=True))
            self._kept = kept if len(kept) <= _MOST_KEPT else dict(list(kept.items())[-_MOST_KEPT // 2 :])
        return [kept[word] for word in words]

    def _find(self, words: Sequence[Token]) -> list[AskedWord]:
        book = self._book
        terms = book.places_of([word.term for word in words])
        # A large book shows by itself which words say little; a small one has to be told.
        trust = np.float32(0.5 * LEARNT_BY / (LEARNT_BY + book.content.size))
        weights = book.static.importance([word.surface for word in words]) ** trust
        idf = weights * book.idf_of(terms)
        cosines = self._cosines(words, terms)
        return [self._asked(*one) for one in zip(words, terms.tolist(), weights, idf, cosines, strict=True)]

    def _cosines(self, words: Sequence[Token], terms: Ints) -> list[Floats | None]:
        """Return each word's cosines with the book's terms, None for a number that the book lacks."""
        book = self._book
        known = terms >= 0
        # Numbers and codes are the same or they are not: 4417 has no meaning that 4471 could be near to.
        has_meaning = np.array([not has_digit(word.term) for word in words])
        rows = np.zeros((len(words), book.word_vectors.shape[1]), dtype=np.float32)
        own = known & has_meaning
        rows[own] = book.word_vectors[terms[own]]
        if (strange := ~known & has_meaning).any():
            spelled = [words[at].surface for at in strange.nonzero()[0]]
            rows[strange] = unit(unit(book.static.embed(spelled)) - book.word_centre)
        found: list[Floats | None] = [None] * len(words)
        for at in (known | has_meaning).nonzero()[0].tolist():
            # Row by row: a product of matrices rounds a word's row otherwise in other company.
            found[at] = cosine = np.vecdot(book.word_vectors, rows[at])
            if known[at]:
                cosine[terms[at]] = 1.0
        return found

    def _asked(
        self, token: Token, term: int, weight: np.float32, idf_weight: np.float32, cosine: Floats | None
    ) -> AskedWord:
        book = self._book
        nearest, near, closest = ((), _NO_TERMS, NOTHING_SAID) if cosine is None else self._close(cosine, term)
        own = np.array([term] if term >= 0 else [], dtype=np.int64)
        searched = np.concatenate([own, near])
        weights = np.full(len(searched), weight)
        if cosine is not None:
            weights[len(own) :] *= NEAR_WEIGHT * cosine[near]
        is_named = term >= 0 and bool(book.named[term])
        named = book.content.holding(term) if is_named else None
        return AskedWord(
            token=token,
            term=term,
            is_named=is_named,
            weight=weight,
            idf_weight=idf_weight,
            nearest=nearest,
            closest=(closest[0], idf_weight * closest[1]),
            context=book.context.said(searched, weights),
            keywords=book.keywords.said(searched, weights) if book.keywords.documents.size else NOTHING_SAID,
            sessions=NOTHING_SAID if book.sessions is None else book.sessions.said(searched, weights),
            names=NOTHING_SAID if named is None else (named, np.full(len(named), weight)),
        )

    def _close(self, cosine: Floats, own_term: int) -> tuple[Sequence[tuple[int, float]], Ints, Said]:
        """Return the terms from `NEAR_COSINE`, those of them that are searched, and the entries that hold any term
        above `CLOSEST_COSINE` with the cosine of its closest one."""
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
        return nearest, near, (entries.astype(np.int32), best[entries])


_NO_TERMS: Final[Ints] = np.empty(0, dtype=np.int64)
