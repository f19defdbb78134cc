"""What a message asks for, worked out once per search."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from memories.search.analysis import Ints
from memories.search.arrays import BookArrays
from memories.search.languages import FIRST_PERSON, FIRST_PERSON_PARTS, POLITE_FRAMES, QUESTION_FRAMES
from memories.search.times import NamedTime, asks_when, named_times
from memories.search.tokens import Token, has_digit, tokens_of
from memories.search.vectors import Floats, cosines, unit

NEAR_COSINE: Final = 0.45
"""Cosine from which a word of the book is searched together with a word of the message."""
FRAME_WEIGHT: Final = 0.5
LEARNT_BY: Final = 200
"""Entries at which a book's own word counts are trusted as much as general knowledge of words."""
MOST_WORDS: Final = 64
"""Distinct terms of a message that are searched; the rarest in the book are kept."""
LONGEST: Final = 8000
"""Characters of a message that are searched."""
_POLITE: Final = re.compile(POLITE_FRAMES)
_SPOKEN: Final = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")


@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """An analysed message over W words."""

    text: str
    words: tuple[Token, ...]
    weights: Floats
    """How much each word counts, without rarity (W)."""
    terms: Ints
    """Place of each word among the book's terms, -1 if the book does not hold it (W)."""
    spelling: dict[int, tuple[float, str]]
    """By the place of a held term: minus its weight, and the word as the message spells it."""
    near: dict[int, list[tuple[float, int]]]
    """By the place of a term close to words of the message: minus the cosine, and the word's term (or -1)."""
    cosine: Floats
    """Of each word to each term of the book (W, T)."""
    vector: Floats
    """Centred unit vector (256)."""
    speakers: tuple[int, ...]
    """Speakers of the book whom the message names, first named first."""
    asks_when: bool
    times: tuple[NamedTime, ...]
    is_personal: bool
    """Speaks of its writer (I, my, our …)."""


def analyse_query(text: str, extra_words: Sequence[str], book: BookArrays) -> Query:
    """Analyse a message against a book; `extra_words` are searched beside its own words."""
    text = text[:LONGEST]
    said = tokens_of(text)
    tokens = _distinct([*said, *(token for word in extra_words for token in tokens_of(word))])
    speakers, names = named_speakers(said, book.speakers)
    # Who is named is evidence of its own; as a word, a speaker's name finds those who address them.
    words = [token for token in tokens if token.surface.casefold() not in names] or tokens
    terms = np.array([local_term(token.term, book) for token in words], dtype=np.int64)
    if len(words) > MOST_WORDS:
        rarity = np.where(terms >= 0, book.content.idf[terms], 0) if len(book.terms) else np.zeros(len(terms))
        kept = np.sort(np.argsort(-rarity, kind="stable")[:MOST_WORDS])
        words, terms = [words[at] for at in kept], terms[kept]
    weights = [FRAME_WEIGHT if token.surface.casefold() in QUESTION_FRAMES else 1.0 for token in words]
    # A large book shows by itself which words say little; a small one has to be told.
    trust = 0.5 * LEARNT_BY / (LEARNT_BY + book.content.size)
    importance = book.vocabulary.importance([token.surface for token in words]) ** np.float32(trust)
    raw = book.vocabulary.embed([text.strip() or " ".join(extra_words)])[0]
    weight = np.array(weights, dtype=np.float32) * importance
    cosine = _cosines(words, terms, book)
    spelled = zip(terms.tolist(), weight.tolist(), words, strict=True)
    return Query(
        text=text,
        words=tuple(words),
        weights=weight,
        terms=terms,
        spelling={term: (-value, token.surface) for term, value, token in spelled if term >= 0},
        near=_near(cosine, terms),
        cosine=cosine,
        vector=unit(raw - book.centre),
        speakers=speakers,
        asks_when=asks_when(text),
        times=named_times(text),
        is_personal=is_personal(text),
    )


def _distinct(tokens: Sequence[Token]) -> list[Token]:
    by_term: dict[str, Token] = {}
    for token in tokens:
        by_term.setdefault(token.term, token)
    return list(by_term.values())


def _cosines(words: Sequence[Token], terms: Ints, book: BookArrays) -> Floats:
    if not words or not len(book.terms):
        return np.zeros((len(words), len(book.terms)), dtype=np.float32)
    rows = np.empty((len(words), book.word_vectors.shape[1]), dtype=np.float32)
    known = terms >= 0
    rows[known] = book.word_vectors[terms[known]]
    if not known.all():
        strange = [token.surface for token, there in zip(words, known, strict=True) if not there]
        rows[~known] = unit(unit(book.vocabulary.embed(strange)) - book.word_centre)
    cosine = cosines(rows, book.word_vectors)
    # Numbers and codes are the same or they are not: 4417 has no meaning that 4471 could be near to.
    cosine[[has_digit(token.term) for token in words]] = 0.0
    cosine[known, terms[known]] = 1.0
    return cosine


def _near(cosine: Floats, terms: Ints) -> dict[int, list[tuple[float, int]]]:
    rows, places = np.nonzero(cosine >= NEAR_COSINE)
    near: dict[int, list[tuple[float, int]]] = {}
    for row, place, value in zip(rows.tolist(), places.tolist(), cosine[rows, places].tolist(), strict=True):
        near.setdefault(place, []).append((-value, int(terms[row])))
    return near


def local_term(term: str, book: BookArrays) -> int:
    """Return the place of a term among the book's terms, -1 if it is not there."""
    number = book.vocabulary.number_of(term)
    if number is None:
        return -1
    at = int(np.searchsorted(book.terms, number))
    return at if at < len(book.terms) and book.terms[at] == number else -1


def named_speakers(tokens: Sequence[Token], speakers: Sequence[str]) -> tuple[tuple[int, ...], frozenset[str]]:
    """Return the places of the speakers whom the message names, first named first, and all their names' parts."""
    parts = [{part.casefold() for part in name.split() if len(part) > 1} for name in speakers]
    said = [token.surface.casefold() for token in tokens]
    first = [min((at for at, word in enumerate(said) if word in names), default=-1) for names in parts]
    named = sorted((at, speaker) for speaker, at in enumerate(first) if at >= 0)
    return tuple(speaker for _, speaker in named), frozenset().union(*parts) if parts else frozenset()


def is_personal(text: str) -> bool:
    """Say whether the message speaks of its writer or of what is theirs, more than "tell me" does."""
    rest = _POLITE.sub(" ", text.casefold().replace("’", "'"))
    words = {word for spoken in _SPOKEN.findall(rest) for word in (spoken, spoken.partition("'")[0])}
    return bool(words & FIRST_PERSON) or any(part in rest for part in FIRST_PERSON_PARTS)
