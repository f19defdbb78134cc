"""What a message asks for, worked out once per search."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from search.analysis import Ints
from search.book import SMALL_BOOK, BookArrays
from search.languages import FIRST_PERSON, FIRST_PERSON_PARTS, OTHERS_FAMILY, OWN_FAMILY, POLITE_FRAMES
from search.term_similarity import CloseWords, TermSimilarity
from search.times import NamedTime, asks_when, named_times
from search.tokens import Token, tokens_of, tokens_of_keyword
from search.vectors import Floats, unit

LEARNT_BY: Final = 200
"""Entries at which a book's own word counts are trusted as much as general knowledge of words."""
MOST_WORDS: Final = 64
"""Distinct terms of a message that are searched; the rarest in the book are kept."""
LONGEST: Final = 8000
"""Characters of a message that are searched: half of them from its end, where the question about a text stands."""
_POLITE: Final = re.compile(POLITE_FRAMES)
_SPOKEN: Final = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")


@dataclass(frozen=True, eq=False)
class Query:
    """An analysed message over W words."""

    text: str
    words: tuple[Token, ...]
    weights: Floats
    """How much each word counts, without rarity (W)."""
    idf_weights: Floats
    """Weight times rarity; a word that the book lacks is as rare as can be (W)."""
    terms: Ints
    """Place of each word among the book's terms, -1 if the book does not hold it (W)."""
    close: tuple[CloseWords, ...]
    """What is close to each word (W)."""
    vector: Floats
    """Centred unit vector (256)."""
    speakers: tuple[int, ...]
    """Speakers of the book whom the message names, first named first."""
    asks_when: bool
    times: tuple[NamedTime, ...]
    is_personal: bool
    """Speaks of its writer (I, my, our …)."""

    @cached_property
    def spelled(self) -> list[tuple[int, str]]:
        """The words that the book holds, as terms and as the message spells them, weightiest first."""
        words = zip(self.weights.tolist(), self.words, self.terms.tolist(), strict=True)
        held = sorted((-weight, word.surface, term) for weight, word, term in words if term >= 0)
        return [(term, surface) for _, surface, term in held]

    @cached_property
    def near(self) -> dict[int, list[tuple[float, int]]]:
        """By a term near words of the message: minus the cosine, and the word's term (or -1)."""
        near: dict[int, list[tuple[float, int]]] = {}
        for asked, close in zip(self.terms.tolist(), self.close, strict=True):
            for term, value in close.nearest:
                near.setdefault(term, []).append((-value, asked))
        return near


def analyse_query(text: str, extra_words: Sequence[str], book: BookArrays, similarity: TermSimilarity) -> Query:
    """Analyse a message against a book; `extra_words` are searched beside its own words."""
    text = searched_part(text)
    said = tokens_of(text)
    tokens = _distinct([*said, *(token for word in extra_words for token in tokens_of_keyword(word))])
    speakers, names = named_speakers(said, book.facts.speakers)
    # Who is named is evidence of its own; as a word, a speaker's name finds those who address them.
    words = [token for token in tokens if token.surface.casefold() not in names] or tokens
    words, terms = _rarest(words, book)
    weights = _weights(words, book)
    raw = book.static.embed([text.strip() or " ".join(extra_words)])[0]
    return Query(
        text=text,
        words=tuple(words),
        weights=weights,
        idf_weights=weights * _idf_of(terms, book),
        terms=terms,
        close=tuple(similarity.of(words, terms)),
        vector=unit(raw - book.centre),
        speakers=speakers,
        asks_when=asks_when(text),
        times=named_times(text),
        is_personal=is_personal(text),
    )


def searched_part(text: str) -> str:
    """Return a message as far as it is searched: a long one's two ends."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]}\n{text[-LONGEST // 2 :]}"


def _distinct(tokens: Sequence[Token]) -> list[Token]:
    by_term: dict[str, Token] = {}
    for token in tokens:
        by_term.setdefault(token.term, token)
    return list(by_term.values())


def _rarest(words: list[Token], book: BookArrays) -> tuple[list[Token], Ints]:
    """Return the words that are searched, and their places among the book's terms."""
    terms = book.places_of([word.term for word in words])
    if len(words) <= MOST_WORDS:
        return words, terms
    idf = np.where(terms >= 0, _idf_of(terms, book), 0)
    kept = np.sort((-idf).argsort(kind="stable")[:MOST_WORDS])
    return [words[at] for at in kept], terms[kept]


def _idf_of(terms: Ints, book: BookArrays) -> Floats:
    unknown = np.float32(np.log1p((max(book.content.size, SMALL_BOOK) + 0.5) / 0.5))
    return np.where(terms >= 0, book.content.idf[terms], unknown) if book.places else np.full(len(terms), unknown)


def _weights(words: Sequence[Token], book: BookArrays) -> Floats:
    # A large book shows by itself which words say little; a small one has to be told.
    trust = np.float32(0.5 * LEARNT_BY / (LEARNT_BY + book.content.size))
    importance = book.static.importance([word.surface for word in words])
    return np.asarray(importance**trust, dtype=np.float32)


def named_speakers(tokens: Sequence[Token], speakers: Sequence[str]) -> tuple[tuple[int, ...], frozenset[str]]:
    """Return the places of the speakers whom the message names, first named first, and all their names' parts."""
    if not speakers:
        return (), frozenset()
    parts = [{part.casefold() for part in name.split() if len(part) > 1} for name in speakers]
    said = [token.surface.casefold() for token in tokens]
    first = [min((at for at, word in enumerate(said) if word in names), default=-1) for names in parts]
    named = sorted((at, speaker) for speaker, at in enumerate(first) if at >= 0)
    return tuple(speaker for _, speaker in named), frozenset().union(*parts)


def is_personal(text: str) -> bool:
    """Say whether the message speaks of its writer or of what is theirs, more than "tell me" does."""
    rest = _POLITE.sub(" ", text.casefold().replace("’", "'"))
    spoken = _SPOKEN.findall(rest)
    words = {word for one in spoken for word in (one, one.partition("'")[0])}
    if not words.isdisjoint(FIRST_PERSON) or any(part in rest for part in FIRST_PERSON_PARTS):
        return True
    if words.isdisjoint(OWN_FAMILY):
        return False
    before = zip(["", *spoken], spoken, strict=False)
    return any(word.partition("'")[0] in OWN_FAMILY and whose not in OTHERS_FAMILY for whose, word in before)
