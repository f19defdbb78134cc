"""How well each entry of a book answers a query, by kind of evidence. Arrays of N floats."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Final

import numpy as np

from search.analysis import KEYWORD_SHARE
from search.book import BookArrays
from search.postings import summed
from search.query import Query
from search.times import NamedTime
from search.upstream import Closeness
from search.vectors import Floats

FIRST_OF_SEVERAL: Final = 0.7
"""Strength of the speaker evidence if several people are named; the first one counts."""
DAYS_AFTER: Final = 10
"""Days after an event during which people still talk about it."""
DAYS_BEFORE: Final = 3
MONTH_MATCH: Final = 0.5


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """All evidence for one query, one value per entry."""

    graded: Floats
    """Rows: BM25 with neighbours and keywords; the closest word to each query word, weighted by idf; the cosine of
    static embeddings; and, if the book has sessions, BM25 of the whole session."""
    shared_words: Floats
    """The first row of `graded`."""
    meaning: Floats
    """The third row of `graded`."""
    speaker: Floats
    """The message names the entry's speaker, 0 to 1."""
    time: Floats
    """The message asks for a time and the entry states one, 0 or 1."""
    date: Floats
    """The entry was said on or near a date in the message, 0 to 1."""
    upstream: Closeness | None
    """Closeness by an embedding model, if there are vectors of the entries and of the message."""


def gather_evidence(query: Query, book: BookArrays, upstream: Closeness | None = None) -> Evidence:
    """Compute every kind of evidence."""
    size = book.content.size
    none = np.zeros(size, dtype=np.float32)
    graded = np.zeros((3 if book.sessions is None else 4, size), dtype=np.float32)
    graded[0] = shared_words(query, book)
    _, near_words, meaning = graded[:3]
    for word in query.words:
        np.add.at(near_words, *word.closest)
    np.vecdot(book.vectors, query.vector, out=meaning)
    if book.sessions is not None:
        graded[3] = session_words(query, book, book.sessions.size)
    return Evidence(
        graded=graded,
        shared_words=graded[0],
        meaning=meaning,
        speaker=said_by_named(query, book) if query.speakers else none,
        time=book.facts.says_when.astype(np.float32) if query.message.asks_when else none,
        date=said_near(query.message.times, book) if query.message.times else none,
        upstream=upstream,
    )


def shared_words(query: Query, book: BookArrays) -> Floats:
    """Return BM25 over content and neighbours plus a share of BM25 over the keywords.

    The keywords count at most as much as that share of one occurrence of every word of the message, so that keyword
    stuffing cannot outrank content.
    """
    found = summed([word.context for word in query.words], book.content.size)
    if book.keywords.documents.size:
        ceiling = np.array([word.idf_weight for word in query.words], dtype=np.float32).sum()
        by_keywords = summed([word.keywords for word in query.words], book.content.size)
        found += KEYWORD_SHARE * np.minimum(by_keywords, ceiling)
    return found


def session_words(query: Query, book: BookArrays, sessions: int) -> Floats:
    """Return the BM25 score of each entry's session, 0 without one."""
    scores = summed([word.sessions for word in query.words], sessions)
    inside = book.window.session_of >= 0
    return np.where(inside, scores[book.window.session_of], np.float32(0))


def said_by_named(query: Query, book: BookArrays) -> Floats:
    """Return 1 for entries by the speaker whom the message names.

    If it names several, only the first counts, with less weight; it is usually who acts ("What did Ann give to Ben?").
    """
    strength = 1.0 if len(query.speakers) == 1 else FIRST_OF_SEVERAL
    return np.where(book.facts.speaker_of == query.speakers[0], strength, 0).astype(np.float32)


def said_near(times: tuple[NamedTime, ...], book: BookArrays) -> Floats:
    """Return 1 on a named day, decreasing to 0 over the following days; 0.5 in a named month."""
    found = np.zeros(book.content.size, dtype=np.float32)
    known = book.facts.days > 0
    for time in times:
        if time.day is not None and time.year is not None:
            gap = book.facts.days - date(time.year, time.month, time.day).toordinal()
            near = np.where(gap >= -DAYS_BEFORE, 1 - np.abs(gap) / DAYS_AFTER, 0)
        else:
            same = book.facts.months % 12 == time.month - 1
            if time.year is not None:
                same &= book.facts.months // 12 == time.year
            near = np.where(same, MONTH_MATCH, 0)
        found = np.maximum(found, np.where(known, near, 0)).astype(np.float32)
    return found
