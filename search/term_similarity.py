"""Relates a word of a message to a book: the book's words that are close to it in the static embedding, and the entries
that contain it or them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from search.analysis import Ints
from search.book import BookArrays
from search.postings import NO_CONTRIBUTIONS, Contributions
from search.tokens import Token, has_digit
from search.vectors import Floats, unit

CLOSEST_COSINE: Final = 0.3
"""Cosine from which an entry's word counts as close to a query word."""
NEAR_COSINE: Final = 0.45
"""Cosine from which a word of the book is searched along with a word of the message."""
MAX_NEAR_WORDS: Final = 6
"""Maximum number of near words that are searched with a query word."""
NEAR_WEIGHT: Final = 0.4
"""Weight of a near word with cosine 1; a shared word weighs 1."""
HALF_TRUST_ENTRIES: Final = 200
"""Number of entries at which a book's own word frequencies are trusted as much as general word importance."""
_CACHE_SIZE: Final = 256
"""Query words cached per book."""


@dataclass(frozen=True, slots=True, eq=False)
class QueryWord:
    """A word of a message in relation to one book; independent of the rest of the message."""

    token: Token
    term: int
    """Its index among the book's terms, -1 if the book does not contain it."""
    is_named: bool
    """The book writes it as a name or number."""
    weight: np.float32
    """Its weight without idf."""
    idf_weight: np.float32
    """Weight times idf; a word that the book does not contain has the highest idf."""
    nearest: Sequence[tuple[int, float]]
    """Terms with a cosine from `NEAR_COSINE` on and their cosines, closest first, including the word itself."""
    closest: Contributions
    """Entries with a term above `CLOSEST_COSINE`: the cosine of the closest one times `idf_weight`. Terms of the
    keywords count `KEYWORD_SHARE`."""
    context: Contributions
    """BM25 of the word and its near words, at most `MAX_NEAR_WORDS`, over entries with their neighbours."""
    keywords: Contributions
    """The same over the entries' keywords."""
    sessions: Contributions
    """The same over whole sessions."""

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        contributions = (self.closest, self.context, self.keywords, self.sessions)
        return 100 * len(self.nearest) + sum(places.nbytes + values.nbytes for places, values in contributions)


class TermSimilarity:
    """Relates words of messages to one book. The most recent words are cached, since messages repeat words."""

    def __init__(self, book: BookArrays) -> None:
        self._book = book
        self._cache: dict[Token, QueryWord] = {}

    @property
    def nbytes(self) -> int:
        """Bytes of the cache."""
        return sum(word.nbytes for word in self._cache.values())

    def of(self, words: Sequence[Token]) -> list[QueryWord]:
        """Return each word in relation to the book."""
        cache = self._cache
        if missing := [word for word in words if word not in cache]:
            # A new dictionary: another thread may be reading the old one.
            cache = cache | dict(zip(missing, self._find(missing), strict=True))
            self._cache = cache if len(cache) <= _CACHE_SIZE else dict(list(cache.items())[-_CACHE_SIZE // 2 :])
        return [cache[word] for word in words]

    def _find(self, words: Sequence[Token]) -> list[QueryWord]:
        book = self._book
        terms = book.places_of([word.term for word in words])
        # A large book shows by its frequencies which words mean little; a small one needs general word importance.
        trust = np.float32(0.5 * HALF_TRUST_ENTRIES / (HALF_TRUST_ENTRIES + book.content.size))
        weights = book.static.importance([word.surface for word in words]) ** trust
        idf = weights * book.idf_of(terms)
        cosines = self._cosines(words, terms)
        return [self._query_word(*values) for values in zip(words, terms.tolist(), weights, idf, cosines, strict=True)]

    def _cosines(self, words: Sequence[Token], terms: Ints) -> list[Floats | None]:
        """Return each word's cosines with the book's terms, None for a number that the book does not contain."""
        book = self._book
        known = terms >= 0
        # Numbers and codes only match exactly: 4417 and 4471 are not similar in meaning.
        has_meaning = np.array([not has_digit(word.term) for word in words])
        rows = np.zeros((len(words), book.word_vectors.shape[1]), dtype=np.float32)
        own = known & has_meaning
        rows[own] = book.word_vectors[terms[own]]
        if (unknown := ~known & has_meaning).any():
            spelled = [words[at].surface for at in unknown.nonzero()[0]]
            rows[unknown] = unit(unit(book.static.embed(spelled)) - book.word_centre)
        found: list[Floats | None] = [None] * len(words)
        for at in (known | has_meaning).nonzero()[0].tolist():
            # Row by row: the rounding of a matrix product depends on the other rows.
            found[at] = cosine = np.vecdot(book.word_vectors, rows[at])
            if known[at]:
                cosine[terms[at]] = 1.0
        return found

    def _query_word(
        self, token: Token, term: int, weight: np.float32, idf_weight: np.float32, cosine: Floats | None
    ) -> QueryWord:
        book = self._book
        nearest, near, closest = ((), _NO_TERMS, NO_CONTRIBUTIONS) if cosine is None else self._close(cosine, term)
        own = np.array([term] if term >= 0 else [], dtype=np.int64)
        terms = np.concatenate([own, near])
        weights = np.full(len(terms), weight)
        if cosine is not None:
            weights[len(own) :] *= NEAR_WEIGHT * cosine[near]
        return QueryWord(
            token=token,
            term=term,
            is_named=term >= 0 and bool(book.named[term]),
            weight=weight,
            idf_weight=idf_weight,
            nearest=nearest,
            closest=(closest[0], idf_weight * closest[1]),
            context=book.context.contributions(terms, weights),
            keywords=book.keywords.contributions(terms, weights) if book.keywords.documents.size else NO_CONTRIBUTIONS,
            sessions=NO_CONTRIBUTIONS if book.sessions is None else book.sessions.contributions(terms, weights),
        )

    def _close(self, cosine: Floats, own_term: int) -> tuple[Sequence[tuple[int, float]], Ints, Contributions]:
        """Return the terms from `NEAR_COSINE` on with their cosines, those of them that are searched, and the entries
        with a term above `CLOSEST_COSINE` with the cosine of the closest one."""
        terms = (cosine > CLOSEST_COSINE).nonzero()[0]
        close = cosine[terms]
        order = (-close).argsort(kind="stable")
        terms, close = terms[order], close[order]
        near = terms[: int((close > NEAR_COSINE).sum())]
        near = near[near != own_term][:MAX_NEAR_WORDS]
        best = self._book.holding.best(terms, close)
        entries = best.nonzero()[0]
        count = int((close >= NEAR_COSINE).sum())
        nearest = tuple(zip(terms[:count].tolist(), close[:count].tolist(), strict=True))
        return nearest, near, (entries.astype(np.int32), best[entries])


_NO_TERMS: Final[Ints] = np.empty(0, dtype=np.int64)
