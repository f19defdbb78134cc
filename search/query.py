"""Analysis of the message that is searched for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final, NamedTuple

import numpy as np

from search.book import BookArrays
from search.languages import (
    FIRST_PERSON,
    FIRST_PERSON_PARTS,
    FRAME_PART,
    FRAME_WORDS,
    OTHERS_FAMILY,
    OWN_FAMILY,
    POLITE_FRAMES,
)
from search.term_similarity import QueryWord, TermSimilarity
from search.times import NamedTime, asks_when, named_times
from search.tokens import Token, tokens_of, tokens_of_keyword
from search.vectors import Floats, unit

MAX_TERMS: Final = 64
"""Distinct terms of a message that are searched: the rarest in the book."""
MAX_CHARS: Final = 8000
"""Characters of a message that are searched: half of them from its end, where a question about a text usually is."""
PART_CHARS: Final = 200
"""Minimum size of a part. A message up to this length is only searched as a whole."""
MAX_PARTS: Final = 12
"""Approximate maximum number of parts; longer messages have longer parts."""
_CACHE_SIZE: Final = 16
"""Analysed messages in the cache: enough for one message and its parts."""
_PARAGRAPHS: Final = re.compile(r"\n\s*\n")
_SENTENCES: Final = re.compile(r"\n|(?<=[.!?…])\s+|(?<=[。！？])")
_POLITE: Final = re.compile(POLITE_FRAMES)
_SPOKEN: Final = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")


class Message(NamedTuple):
    """The part of a message's analysis that does not depend on the book."""

    tokens: Sequence[Token]
    asks_when: bool
    times: tuple[NamedTime, ...]
    is_personal: bool
    """Refers to its writer (I, my, our …)."""


@dataclass(frozen=True, eq=False)
class Query:
    """A message, analysed for one book."""

    text: str
    words: Sequence[QueryWord]
    vector: Floats
    """Centred unit vector (256)."""
    speakers: tuple[int, ...]
    """The book's speakers whom the message names, in the order of the message."""
    message: Message

    @cached_property
    def spelled(self) -> list[tuple[int, str]]:
        """The words that the book contains, as (term, spelling in the message), by descending weight."""
        known = sorted((-word.weight, word.token.surface, word.term) for word in self.words if word.term >= 0)
        return [(term, surface) for _, surface, term in known]

    @cached_property
    def near(self) -> dict[int, list[tuple[float, int]]]:
        """Maps each term near words of the message to (negative cosine, the word's term or -1) pairs."""
        near: dict[int, list[tuple[float, int]]] = {}
        for word in self.words:
            for term, value in word.nearest:
                near.setdefault(term, []).append((-value, word.term))
        return near


@lru_cache(maxsize=_CACHE_SIZE)
def message_of(text: str) -> Message:
    """Analyse a message independently of a book. Cached, since a turn searches its conversation and then its book."""
    return Message(tokens_of(text), asks_when(text), named_times(text), is_personal(text))


def analyse_query(text: str, extra_words: Sequence[str], book: BookArrays, similarity: TermSimilarity) -> Query:
    """Analyse a message for a book; `extra_words` are searched in addition to its own words."""
    text = searched_part(text)
    message = message_of(text)
    tokens = _distinct([*message.tokens, *(token for word in extra_words for token in tokens_of_keyword(word))])
    speakers, names = named_speakers(message.tokens, book.facts.speakers)
    # A named speaker is separate evidence. As a search word, the name would find entries addressed to them.
    words = [token for token in tokens if token.surface.casefold() not in names] or tokens
    return Query(
        text=text,
        words=similarity.of(_rarest(words, book)),
        vector=unit(book.static.vector(text.strip() or " ".join(extra_words)) - book.centre),
        speakers=speakers,
        message=message,
    )


def searched_part(text: str) -> str:
    """Return the part of a message that is searched: both ends of a long one."""
    return text if len(text) <= MAX_CHARS else f"{text[: MAX_CHARS // 2]}\n{text[-MAX_CHARS // 2 :]}"


def parts_of(text: str) -> list[str]:
    """Return the parts of a long message, which are searched separately: otherwise, the words of a question would not
    count among those of a long text pasted with it (docs/search.md has the measurements).

    Sentences of a paragraph are combined, a question is a part by itself. If that gives far too many parts,
    neighbouring paragraphs are combined, too, and then questions. Return [] for a short message or a single part."""
    if len(text) <= PART_CHARS:
        return []
    max_chars = max(PART_CHARS, len(text) // MAX_PARTS)
    paragraphs = (filter(None, map(str.strip, _SENTENCES.split(paragraph))) for paragraph in _PARAGRAPHS.split(text))
    parts = [part for sentences in paragraphs for part in _combined(sentences, max_chars, questions_apart=True)]
    for questions_apart in (True, False):
        if len(parts) > 2 * MAX_PARTS:
            parts = list(_combined(parts, max_chars, questions_apart=questions_apart))
    return parts if len(parts) > 1 else []


def _combined(texts: Iterable[str], max_chars: int, *, questions_apart: bool) -> Iterator[str]:
    """Yield consecutive texts, combined up to `max_chars`."""
    part = ""
    for text in texts:
        is_question = questions_apart and text.endswith(("?", "？"))
        if part and (is_question or len(part) + len(text) >= max_chars):
            yield part
            part = ""
        part = f"{part} {text}" if part else text
        if is_question:
            yield part
            part = ""
    if part:
        yield part


def _distinct(tokens: Sequence[Token]) -> list[Token]:
    by_term: dict[str, Token] = {}
    for token in tokens:
        by_term.setdefault(token.term, token)
    return list(by_term.values())


def _rarest(words: list[Token], book: BookArrays) -> list[Token]:
    """Return the MAX_TERMS rarest words, in their order."""
    if len(words) <= MAX_TERMS:
        return words
    terms = book.places_of([word.term for word in words])
    idf = np.where(terms >= 0, book.idf_of(terms), 0)
    return [words[at] for at in np.sort((-idf).argsort(kind="stable")[:MAX_TERMS])]


def named_speakers(tokens: Sequence[Token], speakers: Sequence[str]) -> tuple[tuple[int, ...], frozenset[str]]:
    """Return the indexes of the speakers whom the message names, in its order, and the name parts of all speakers."""
    if not speakers:
        return (), frozenset()
    parts = [{part.casefold() for part in name.split() if len(part) > 1} for name in speakers]
    words = [token.surface.casefold() for token in tokens]
    first = [min((at for at, word in enumerate(words) if word in names), default=-1) for names in parts]
    named = sorted((at, speaker) for speaker, at in enumerate(first) if at >= 0)
    return tuple(speaker for _, speaker in named), frozenset().union(*parts)


def is_personal(text: str) -> bool:
    """Return True if the message refers to its writer or to what is theirs, other than by "tell me"."""
    rest = text.casefold().replace("’", "'")
    spoken, words = _spoken_words(rest)
    if not words.isdisjoint(FRAME_WORDS) or FRAME_PART in rest:
        rest = _POLITE.sub(" ", rest)
        spoken, words = _spoken_words(rest)
    if not words.isdisjoint(FIRST_PERSON) or (not rest.isascii() and any(part in rest for part in FIRST_PERSON_PARTS)):
        return True
    if words.isdisjoint(OWN_FAMILY):
        return False
    before = zip(["", *spoken], spoken, strict=False)
    return any(word.partition("'")[0] in OWN_FAMILY and preceding not in OTHERS_FAMILY for preceding, word in before)


def _spoken_words(text: str) -> tuple[list[str], set[str]]:
    """Return the words of a text in order, and as a set, which also has words without their part after an
    apostrophe."""
    spoken = _SPOKEN.findall(text)
    words = set(spoken)
    if "'" in text:
        words.update([word.partition("'")[0] for word in spoken])
    return spoken, words
