"""What a message asks for, worked out once per search."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final, NamedTuple

import numpy as np

from search.book import BookArrays
from search.languages import (
    FIRST_PERSON,
    FIRST_PERSON_PARTS,
    FRAMED,
    FRAMED_PART,
    OTHERS_FAMILY,
    OWN_FAMILY,
    POLITE_FRAMES,
)
from search.term_similarity import AskedWord, TermSimilarity
from search.times import NamedTime, asks_when, named_times
from search.tokens import Token, tokens_of, tokens_of_keyword
from search.vectors import Floats

MOST_WORDS: Final = 64
"""Distinct terms of a message that are searched; the rarest in the book are kept."""
LONGEST: Final = 8000
"""Characters of a message that are searched: half of them from its end, where the question about a text stands."""
_MESSAGES: Final = 16
"""Messages of which the analysis is kept: one and its parts."""
_LEAST: Final = np.float32(1e-9)
_POLITE: Final = re.compile(POLITE_FRAMES)
_SPOKEN: Final = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")


@dataclass(frozen=True, eq=False)
class Query:
    """An analysed message."""

    text: str
    words: Sequence[AskedWord]
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
        held = sorted((-word.weight, word.token.surface, word.term) for word in self.words if word.term >= 0)
        return [(term, surface) for _, surface, term in held]

    @cached_property
    def near(self) -> dict[int, list[tuple[float, int]]]:
        """By a term near words of the message: minus the cosine, and the word's term (or -1)."""
        near: dict[int, list[tuple[float, int]]] = {}
        for word in self.words:
            for term, value in word.nearest:
                near.setdefault(term, []).append((-value, word.term))
        return near


class Message(NamedTuple):
    """What a message says in whichever book it is searched."""

    tokens: Sequence[Token]
    asks_when: bool
    times: tuple[NamedTime, ...]
    is_personal: bool


@lru_cache(maxsize=_MESSAGES)
def message_of(text: str) -> Message:
    """Analyse a message by itself. A turn asks for it in its conversation and in its book, one after the other."""
    return Message(tokens_of(text), asks_when(text), named_times(text), is_personal(text))


def analyse_query(text: str, extra_words: Sequence[str], book: BookArrays, similarity: TermSimilarity) -> Query:
    """Analyse a message against a book; `extra_words` are searched beside its own words."""
    text = searched_part(text)
    message = message_of(text)
    tokens = _distinct([*message.tokens, *(token for word in extra_words for token in tokens_of_keyword(word))])
    speakers, names = named_speakers(message.tokens, book.facts.speakers)
    # Who is named is evidence of its own; as a word, a speaker's name finds those who address them.
    words = [token for token in tokens if token.surface.casefold() not in names] or tokens
    return Query(
        text=text,
        words=similarity.of(_rarest(words, book)),
        vector=_unit(book.static.vector(text.strip() or " ".join(extra_words)) - book.centre),
        speakers=speakers,
        asks_when=message.asks_when,
        times=message.times,
        is_personal=message.is_personal,
    )


def _unit(vector: Floats) -> Floats:
    """Return what `unit` returns for one row."""
    return np.asarray(vector / max(np.sqrt(np.vecdot(vector, vector)), _LEAST), dtype=np.float32)


def searched_part(text: str) -> str:
    """Return a message as far as it is searched: a long one's two ends."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]}\n{text[-LONGEST // 2 :]}"


def _distinct(tokens: Sequence[Token]) -> list[Token]:
    by_term: dict[str, Token] = {}
    for token in tokens:
        by_term.setdefault(token.term, token)
    return list(by_term.values())


def _rarest(words: list[Token], book: BookArrays) -> list[Token]:
    """Return the words that are searched."""
    if len(words) <= MOST_WORDS:
        return words
    terms = book.places_of([word.term for word in words])
    idf = np.where(terms >= 0, book.idf_of(terms), 0)
    return [words[at] for at in np.sort((-idf).argsort(kind="stable")[:MOST_WORDS])]


def forget_words() -> None:
    """Drop the messages that are kept here to save time."""
    message_of.cache_clear()


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
    rest = text.casefold().replace("’", "'")
    spoken, words = _spoken_words(rest)
    if not words.isdisjoint(FRAMED) or FRAMED_PART in rest:
        rest = _POLITE.sub(" ", rest)
        spoken, words = _spoken_words(rest)
    if not words.isdisjoint(FIRST_PERSON) or (not rest.isascii() and any(part in rest for part in FIRST_PERSON_PARTS)):
        return True
    if words.isdisjoint(OWN_FAMILY):
        return False
    before = zip(["", *spoken], spoken, strict=False)
    return any(word.partition("'")[0] in OWN_FAMILY and whose not in OTHERS_FAMILY for whose, word in before)


def _spoken_words(text: str) -> tuple[list[str], set[str]]:
    """Return the words of a text in order, and which they are: those with an apostrophe also without what follows."""
    spoken = _SPOKEN.findall(text)
    words = set(spoken)
    if "'" in text:
        words.update([one.partition("'")[0] for one in spoken])
    return spoken, words
