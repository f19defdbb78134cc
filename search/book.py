"""The arrays of one book: postings, vectors and neighbours, built once and never changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from itertools import chain
from typing import Final

import numpy as np
from numpy.typing import NDArray

from search.analysis import KEYWORD_SHARE, Analysis, AnalysisCache, BookKey, Ints
from search.context_window import ContextWindow, context_window_of, smoothed, spread_counts
from search.entries import Entry
from search.postings import Postings, Triples, build_postings, idf_of, merged, term_major
from search.vectors import DIMENSIONS, Floats, StaticVectors, unit

CONTEXT_SATURATION: Final = 0.8
"""k1 for words of the surroundings: that something is talked about counts, not how often."""
SMALL_BOOK: Final = 60
"""Entries below which a book is too small to tell common words from rare ones by itself."""
CENTRE_SHRINK: Final = 10
"""Entries' worth of "no common direction" mixed into the centre, so that a book of two is not torn apart."""

TermsOf = Callable[[int], tuple[frozenset[int], frozenset[int]]]
"""Gives the terms of an entry's content and those of its keywords, by its place."""


@dataclass(frozen=True, slots=True, eq=False)
class EntryFacts:
    """What is known of each entry beside its words; arrays of N."""

    lengths: Floats
    """Terms of the content, with repeats."""
    asks: NDArray[np.bool_]
    says_when: NDArray[np.bool_]
    speakers: tuple[str, ...]
    speaker_of: Ints
    """Place of the speaker in `speakers`, -1 for none."""
    days: Ints
    """Ordinal day on which it was said, 0 if unknown."""
    months: Ints
    """Year * 12 + month - 1, 0 if unknown."""
    languages: tuple[str, ...]

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return 38 * len(self.lengths)


@dataclass(frozen=True, slots=True, eq=False)
class BookArrays:
    """Everything about a book that does not depend on the query. N entries, T terms, P pairs of entry and term."""

    static: StaticVectors
    places: dict[str, int]
    """Place of each of the book's terms (T). The book's own: a view keeps no word of another book alive."""
    named: NDArray[np.bool_]
    """The entries write the term as a name: with a capital inside a sentence, or with a digit (T)."""
    word_vectors: Floats
    """Centred unit vectors of the terms (T, 256)."""
    word_centre: Floats
    entry_starts: Ints
    """Where the terms of each entry begin in the three arrays of pairs (N + 1)."""
    entry_terms: Ints
    """Terms of content and keywords, entry by entry (P)."""
    in_content: NDArray[np.bool_]
    in_keywords: NDArray[np.bool_]
    holding: Postings
    """Over content and keywords; impacts are 1 in the content and `KEYWORD_SHARE` in the keywords alone."""
    content: Postings
    """Over the entries' own words."""
    rarity: Floats
    """Summed rarity of the terms of each entry's content, and of its keywords where there are any (1 or 2, N)."""
    shareable: Floats
    """The largest part of these that is of terms which another entry holds, too (N)."""
    context: Postings
    """Over each entry with fading shares of its neighbours; the same as `content` without neighbours."""
    keywords: Postings
    sessions: Postings | None
    """Documents are sessions; None when no entry has a neighbour."""
    vectors: Floats
    """Centred unit vectors of content, keywords and surroundings (N, 256)."""
    centre: Floats
    around: ContextWindow
    facts: EntryFacts

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        values = [getattr(self, field.name) for field in fields(self)]
        return sum(value.nbytes for value in values if hasattr(value, "nbytes"))

    def places_of(self, terms: Sequence[str]) -> Ints:
        """Return the places of terms among the book's terms, -1 where it lacks them."""
        return np.array([self.places.get(term, -1) for term in terms], dtype=np.int64)

    def idf_of(self, terms: Ints) -> Floats:
        """Return how rare terms are, by their places; what the book lacks (-1) is as rare as can be."""
        unknown = np.float32(np.log1p((max(self.content.size, SMALL_BOOK) + 0.5) / 0.5))
        return np.where(terms >= 0, self.content.idf[terms], unknown) if self.places else np.full(len(terms), unknown)

    def terms_of(self, at: int) -> tuple[frozenset[int], frozenset[int]]:
        """Return the terms of an entry's content and those of its keywords."""
        pairs = slice(self.entry_starts[at], self.entry_starts[at + 1])
        terms = self.entry_terms[pairs]
        if not self.keywords.documents.size:
            return frozenset(terms.tolist()), frozenset()
        in_content, in_keywords = self.in_content[pairs], self.in_keywords[pairs]
        return frozenset(terms[in_content].tolist()), frozenset(terms[in_keywords].tolist())


def build_arrays(entries: Sequence[Entry], cache: AnalysisCache, book: BookKey | None = None) -> BookArrays:
    """Analyse what is new, and lay the book out."""
    vocabulary, analyses = cache.analyse(entries, book)
    pairs = np.concatenate([np.zeros((4, 0), dtype=np.int32), *(one.terms for one in analyses)], axis=1)
    words = list(chain.from_iterable(one.words for one in analyses))
    # In the order of the book: nothing that other books hold may change a sum or decide between equals.
    places = {word: place for place, word in enumerate(dict.fromkeys(words))}
    local = np.fromiter(map(places.__getitem__, words), dtype=np.int64, count=len(words))
    sizes = np.array([one.terms.shape[1] for one in analyses], dtype=np.int64)
    documents = np.repeat(np.arange(len(entries)), sizes)
    in_content, in_keywords, named = pairs[1:] > 0
    own: Triples = (local[in_content], documents[in_content], pairs[1][in_content].astype(np.float32))
    keyword_triples: Triples = (local[in_keywords], documents[in_keywords], pairs[2][in_keywords].astype(np.float32))
    idf = idf_of(np.bincount(local, minlength=len(places)), len(entries), at_least=SMALL_BOOK)
    facts = _entry_facts(entries, analyses)
    around = context_window_of(entries)
    content = build_postings(own, facts.lengths, idf)
    context, sessions = _context_postings(own, facts.lengths, around, content)
    written = (own, keyword_triples) if len(keyword_triples[0]) else (own,)
    rarity, shareable = np.stack([_rarity(one, idf, len(entries)) for one in written], axis=1)
    word_vectors, word_centre = _centred(vocabulary.word_vectors(_spellings(pairs, local, len(places))))
    vectors, centre = _centred(_text_vectors(analyses))
    keyword_lengths = np.array([one.keywords_length for one in analyses], dtype=np.float32)
    return BookArrays(
        static=vocabulary.vectors,
        places=places,
        named=np.bincount(local[named], minlength=len(places)) > 0,
        word_vectors=word_vectors,
        word_centre=word_centre,
        entry_starts=np.concatenate(([0], sizes.cumsum())),
        entry_terms=local,
        in_content=in_content,
        in_keywords=in_keywords,
        holding=term_major((local, documents, np.where(in_content, 1.0, KEYWORD_SHARE)), idf, len(entries)),
        content=content,
        rarity=rarity,
        shareable=(shareable / rarity).max(axis=0),
        context=context,
        keywords=build_postings(keyword_triples, keyword_lengths, idf),
        sessions=sessions,
        vectors=unit(smoothed(vectors, around)) if around.any else vectors,
        centre=centre,
        around=around,
        facts=facts,
    )


def _spellings(pairs: NDArray[np.int32], local: Ints, count: int) -> Ints:
    """Return the number of each term's spelling: the commonest in the book's contents, or else in its keywords."""
    numbers, spellings = pairs[0], np.empty(count, dtype=np.int64)
    often = np.minimum(np.bincount(numbers), 2**16 - 1).astype(np.uint16)
    for times in (pairs[2], pairs[1]):
        there = times.nonzero()[0][::-1]
        # Of several values for one place the last is kept: of the commonest the one that comes first in the book.
        there = there[often[numbers[there]].argsort(kind="stable")]
        spellings[local[there]] = numbers[there]
    return spellings


def _rarity(triples: Triples, idf: Floats, size: int) -> Floats:
    """Return the summed rarity of each document's terms, and of those that another one holds, too (2, `size`)."""
    terms, documents, _ = triples
    often = idf * (np.bincount(terms, minlength=len(idf)) > 1)
    sums = [np.bincount(documents, weights=rarity[terms], minlength=size) for rarity in (idf, often)]
    return np.maximum(sums, 1e-9).astype(np.float32)


def _entry_facts(entries: Sequence[Entry], analyses: Sequence[Analysis]) -> EntryFacts:
    speakers = tuple(dict.fromkeys(entry.speaker for entry in entries if entry.speaker))
    numbered = {speaker: at for at, speaker in enumerate(speakers)}
    said = [entry.said_at for entry in entries]
    return EntryFacts(
        lengths=np.array([one.length for one in analyses], dtype=np.float32),
        asks=np.array([one.asks for one in analyses], dtype=bool),
        says_when=np.array([one.says_when for one in analyses], dtype=bool),
        speakers=speakers,
        speaker_of=np.array([numbered.get(entry.speaker or "", -1) for entry in entries], dtype=np.int64),
        days=np.array([day.toordinal() if day else 0 for day in said], dtype=np.int64),
        months=np.array([day.year * 12 + day.month - 1 if day else 0 for day in said], dtype=np.int64),
        languages=tuple(one.language for one in analyses),
    )


def _text_vectors(analyses: Sequence[Analysis]) -> Floats:
    rows = [one.vector for one in analyses]
    return np.concatenate(rows).reshape(-1, DIMENSIONS) if rows else np.zeros((0, DIMENSIONS), dtype=np.float32)


def _centred(rows: Floats) -> tuple[Floats, Floats]:
    """Return the rows without their common direction, scaled to length one, and that direction: weaker for few rows.

    The rows are changed in place.
    """
    centre = np.asarray(rows.sum(axis=0) / (len(rows) + CENTRE_SHRINK), dtype=np.float32)
    rows -= centre
    rows /= np.maximum(np.sqrt(np.vecdot(rows, rows)), np.float32(1e-9))[:, None]
    return rows, centre


def _context_postings(
    own: Triples, lengths: Floats, around: ContextWindow, content: Postings
) -> tuple[Postings, Postings | None]:
    """Return postings over entries with their surroundings, and over whole sessions."""
    if not around.any:
        return content, None
    spread, spread_lengths = spread_counts(own, lengths, around)
    context = build_postings(merged(spread, len(lengths)), spread_lengths, content.idf, saturation=CONTEXT_SATURATION)
    terms, documents, counts = own
    session = around.session_of[documents]
    inside = session >= 0
    said = merged((terms[inside], session[inside], counts[inside]), around.n_sessions)
    has = around.session_of >= 0
    session_lengths = np.bincount(around.session_of[has], weights=lengths[has], minlength=around.n_sessions)
    idf = idf_of(np.bincount(said[0], minlength=len(content.idf)), around.n_sessions)
    return context, build_postings(said, session_lengths.astype(np.float32), idf)
