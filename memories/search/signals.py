"""How well each entry of a book answers a query, one kind of evidence at a time. Arrays of N floats."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Final

import numpy as np

from memories.search.analysis import Ints
from memories.search.arrays import KEYWORD_SHARE, SMALL_BOOK, BookArrays
from memories.search.query import NEAR_COSINE, Query
from memories.search.times import NamedTime
from memories.search.vectors import Floats, cosine

NEAR_WORDS: Final = 6
"""Words of the book, close to a query word, that are searched with it."""
NEAR_WEIGHT: Final = 0.4
"""Weight of a near word with cosine 1; a shared word weighs 1."""
CLOSEST_COSINE: Final = 0.3
"""Cosine from which an entry's word counts as somewhat close to a query word."""
FIRST_OF_SEVERAL: Final = 0.4
"""Strength of having said it for the first of several people named."""
DAYS_AFTER: Final = 10
"""Days for which people talk about what happened on a day."""
DAYS_BEFORE: Final = 3
MONTH_MATCH: Final = 0.5


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """All kinds of evidence for one query, one value per entry."""

    words: Floats
    """Shared words by rarity, with surroundings and keywords."""
    near_words: Floats
    """Each query word's closest word in the entry, by rarity."""
    meaning: Floats
    """Cosine of static embeddings."""
    names: Floats
    """Sum of the query's words that the entry holds and that the book writes as names or numbers."""
    session: Floats
    speaker: Floats
    time: Floats
    date: Floats


def gather_evidence(query: Query, book: BookArrays) -> Evidence:
    """Work out every kind of evidence."""
    terms, weights = searched_terms(query)
    return Evidence(
        words=shared_words(query, book, terms, weights),
        near_words=closest_words(query, book),
        meaning=cosine(query.vector, book.vectors),
        names=shared_names(query, book),
        session=session_words(book, terms, weights),
        speaker=said_by_named(query, book),
        time=(book.says_when & query.asks_when).astype(np.float32),
        date=said_near(query.times, book),
    )


def searched_terms(query: Query) -> tuple[Ints, Floats]:
    """Return the book's terms that are searched: the query's own and words near them, with weights."""
    own = query.terms >= 0
    rows, places = np.nonzero(query.cosine > NEAR_COSINE)
    other = places != query.terms[rows]
    rows, places = rows[other], places[other]
    closeness = query.cosine[rows, places]
    order = np.lexsort((-closeness, rows))
    rows, places, closeness = rows[order], places[order], closeness[order]
    rank = np.arange(len(rows)) - np.searchsorted(rows, rows)
    kept = rank < NEAR_WORDS
    rows, places, closeness = rows[kept], places[kept], closeness[kept]
    weight = NEAR_WEIGHT * closeness * query.weights[rows]
    all_terms = np.concatenate([query.terms[own], places])
    all_weights = np.concatenate([query.weights[own], weight])
    terms, place = np.unique(all_terms, return_inverse=True)
    summed = np.bincount(place, weights=all_weights, minlength=len(terms)).astype(np.float32)
    return terms.astype(np.int64), summed


def shared_words(query: Query, book: BookArrays, terms: Ints, weights: Floats) -> Floats:
    """Return BM25 over content and surroundings plus a share of BM25 over the keywords.

    The keywords' part never passes that share of one plain occurrence of every word of the message, so
    that stuffed keywords can't beat a content that says the same.
    """
    found = book.context.score(terms, weights)
    if not book.keywords.documents.size:
        return found
    ceiling = float(word_rarity(query, book).sum())
    return np.asarray(
        found + KEYWORD_SHARE * np.minimum(book.keywords.score(terms, weights), ceiling), dtype=np.float32
    )


def shared_names(query: Query, book: BookArrays) -> Floats:
    """Return, summed over query words that are names in this book and held by the entry, what they say."""
    terms = query.terms[query.terms >= 0]
    weights = query.weights[query.terms >= 0]
    named = book.named[terms]
    documents, _, weight = book.content.gather(terms[named], weights[named])
    return np.bincount(documents, weights=weight, minlength=book.content.size).astype(np.float32)


def word_rarity(query: Query, book: BookArrays) -> Floats:
    """Return weight times rarity of every query word; a word the book lacks is as rare as can be."""
    unknown = np.float32(np.log1p((max(book.content.size, SMALL_BOOK) + 0.5) / 0.5))
    if not len(book.terms):
        return query.weights * unknown
    return np.asarray(
        query.weights * np.where(query.terms >= 0, book.content.idf[query.terms], unknown), dtype=np.float32
    )


def closest_words(query: Query, book: BookArrays) -> Floats:
    """Return, summed over query words by rarity, the cosine of each entry's own closest word."""
    total = np.zeros(book.content.size, dtype=np.float32)
    for closeness, rarity in zip(query.cosine, word_rarity(query, book), strict=True):
        close = np.flatnonzero(closeness > CLOSEST_COSINE)
        if close.size:
            own = book.content.best(close, closeness[close])
            if book.keywords.documents.size:
                own = np.maximum(own, KEYWORD_SHARE * book.keywords.best(close, closeness[close]))
            total += rarity * own
    return total


def session_words(book: BookArrays, terms: Ints, weights: Floats) -> Floats:
    """Return the BM25 score of each entry's whole session, 0 without one."""
    if book.sessions is None:
        return np.zeros(book.content.size, dtype=np.float32)
    scores = book.sessions.score(terms, weights)
    inside = book.around.session_of >= 0
    return np.where(inside, scores[book.around.session_of], 0).astype(np.float32)


def said_by_named(query: Query, book: BookArrays) -> Floats:
    """Return 1 for entries by the one speaker whom the message names.

    Of several, the first named is more often the one who acts ("What did Ann give to Ben?").
    """
    if not query.speakers:
        return np.zeros(book.content.size, dtype=np.float32)
    strength = 1.0 if len(query.speakers) == 1 else FIRST_OF_SEVERAL
    return np.where(book.speaker_of == query.speakers[0], strength, 0).astype(np.float32)


def said_near(times: tuple[NamedTime, ...], book: BookArrays) -> Floats:
    """Return 1 on a named day, falling to 0 over the days after it; 0.5 in a named month."""
    found = np.zeros(book.content.size, dtype=np.float32)
    known = book.days > 0
    for time in times:
        if time.day is not None and time.year is not None:
            gap = book.days - date(time.year, time.month, time.day).toordinal()
            near = np.where(gap >= -DAYS_BEFORE, 1 - np.abs(gap) / DAYS_AFTER, 0)
        else:
            same = book.months % 12 == time.month - 1
            if time.year is not None:
                same &= book.months // 12 == time.year
            near = np.where(same, MONTH_MATCH, 0)
        found = np.maximum(found, np.where(known, near, 0)).astype(np.float32)
    return found
