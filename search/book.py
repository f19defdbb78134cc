"""The arrays of one book: postings, vectors and neighbours, built once and never changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

import numpy as np
from numpy.typing import NDArray

from search.analysis import KEYWORD_SHARE, Analysis, AnalysisCache, BookKey, Ints, joined_rows
from search.context_window import ContextWindow, context_window_of, smoothed, spread_counts
from search.entries import Entry
from search.postings import Postings, Triples, build_postings, idf_of, merged, term_major
from search.vectors import Floats, Sized, StaticVectors, static_vectors, unit

CONTEXT_SATURATION: Final = 0.8
"""k1 for words of neighbouring entries: whether a word occurs matters more than how often."""
SMALL_BOOK: Final = 60
"""Below this number of entries, a book is too small to tell common words from rare ones."""
CENTRE_SHRINK: Final = 10
"""Number of zero vectors averaged into the centre, so that it means little in very small books."""

TermsOf = Callable[[int], tuple[frozenset[int], frozenset[int]]]
"""Returns the terms of an entry's content and those of its keywords, by its place."""


@dataclass(frozen=True, slots=True, eq=False)
class EntryFacts(Sized):
    """Properties of each entry other than its terms; arrays of length N."""

    lengths: Floats
    """Number of terms in the content, with repeats."""
    is_question: NDArray[np.bool_]
    says_when: NDArray[np.bool_]
    speakers: tuple[str, ...]
    speaker_of: Ints
    """Index of the speaker in `speakers`, -1 for none."""
    days: Ints
    """Ordinal of the day it was said on, 0 if unknown."""
    months: Ints
    """Year * 12 + month - 1, 0 if unknown."""
    languages: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class BookArrays(Sized):
    """Everything about a book that does not depend on the query. N entries, T terms, P (entry, term) pairs."""

    static: StaticVectors
    places: dict[str, int]
    """Index of each of the book's terms (T). Not shared, so that a book keeps no words of another book in memory."""
    named: NDArray[np.bool_]
    """Whether entries write the term as a name: capitalised inside a sentence, or with a digit (T)."""
    word_vectors: Floats
    """Centred unit vectors of the terms (T, 256)."""
    word_centre: Floats
    entry_starts: Ints
    """Start offset of each entry in the three arrays of pairs (N + 1)."""
    entry_terms: Ints
    """Terms of content and keywords, by entry (P)."""
    in_content: NDArray[np.bool_]
    in_keywords: NDArray[np.bool_]
    holding: Postings
    """Over content and keywords; impacts are 1 for terms in the content and `KEYWORD_SHARE` for those only in the
    keywords."""
    content: Postings
    """Over the content."""
    rarity: Floats
    """Summed idf of the terms of each entry's content, and of its keywords if the book has any (1 or 2, N)."""
    shareable: Floats
    """The larger share of these sums that comes from terms which other entries contain, too (N)."""
    context: Postings
    """Over each entry's content with decaying shares of its neighbours'; the same as `content` without neighbours."""
    keywords: Postings
    sessions: Postings | None
    """Over whole sessions; None if no entry has a neighbour."""
    vectors: Floats
    """Centred unit vectors of content, keywords and neighbours (N, 256)."""
    centre: Floats
    window: ContextWindow
    facts: EntryFacts

    def places_of(self, terms: Sequence[str]) -> Ints:
        """Return the indexes of terms, -1 for terms that the book does not contain."""
        return np.array([self.places.get(term, -1) for term in terms], dtype=np.int64)

    def idf_of(self, terms: Ints) -> Floats:
        """Return the idf of terms by index; a term that the book does not contain (-1) has the highest."""
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
    """Analyse new entries and build the arrays of the book."""
    analyses = cache.analyse(entries, book)
    counts = np.concatenate([np.zeros((3, 0), dtype=np.int32), *(analysis.terms for analysis in analyses)], axis=1)
    # In the order of the book, so that the cache's other books can change neither sums nor ties.
    places, local = _numbered([analysis.words for analysis in analyses])
    spellings, numbers = _numbered([analysis.spellings for analysis in analyses])
    sizes = np.array([len(analysis.words) for analysis in analyses], dtype=np.int64)
    documents = np.repeat(np.arange(len(entries)), sizes)
    in_content, in_keywords, named = counts > 0
    content_triples: Triples = (local[in_content], documents[in_content], counts[0][in_content].astype(np.float32))
    keyword_triples: Triples = (local[in_keywords], documents[in_keywords], counts[1][in_keywords].astype(np.float32))
    idf = idf_of(np.bincount(local, minlength=len(places)), len(entries), at_least=SMALL_BOOK)
    facts = _entry_facts(entries, analyses)
    window = context_window_of(entries)
    content = build_postings(content_triples, facts.lengths, idf)
    context, sessions = _context_postings(content_triples, facts.lengths, window, content)
    sources = (content_triples, keyword_triples) if len(keyword_triples[0]) else (content_triples,)
    rarity, shareable = np.stack([_rarity(triples, idf, len(entries)) for triples in sources], axis=1)
    common = _most_common(list(spellings), numbers, local, counts, len(places))
    word_vectors, word_centre = _centred(cache.word_vectors(common, entries))
    vectors, centre = _centred(joined_rows([analysis.vector for analysis in analyses]))
    keyword_lengths = np.array([analysis.keywords_length for analysis in analyses], dtype=np.float32)
    return BookArrays(
        static=static_vectors(),
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
        vectors=unit(smoothed(vectors, window)) if window.has_neighbours else vectors,
        centre=centre,
        window=window,
        facts=facts,
    )


def _numbered(words_by_entry: Sequence[Sequence[str]]) -> tuple[dict[str, int], Ints]:
    """Return the numbers of the distinct words, in their order, and the number of each word of each entry."""
    words = list(chain.from_iterable(words_by_entry))
    numbers = {word: number for number, word in enumerate(dict.fromkeys(words))}
    return numbers, np.fromiter(map(numbers.__getitem__, words), dtype=np.int64, count=len(words))


def _most_common(
    spelled: Sequence[str], spellings: Ints, terms: Ints, counts: NDArray[np.int32], size: int
) -> list[str]:
    """Return each term's most common spelling in the book's contents, or else in its keywords (`size`). `spelled` are
    the spellings by number; the other arguments have a column per pair of entry and term."""
    common = np.empty(size, dtype=np.int64)
    frequencies = np.minimum(np.bincount(spellings), 2**16 - 1).astype(np.uint16)
    for times in (counts[1], counts[0]):
        used = times.nonzero()[0][::-1]
        # The last assignment wins, hence the order: of equally common spellings, the first in the book.
        used = used[frequencies[spellings[used]].argsort(kind="stable")]
        common[terms[used]] = spellings[used]
    return [spelled[number] for number in common.tolist()]


def _rarity(triples: Triples, idf: Floats, size: int) -> Floats:
    """Return the summed idf of each document's terms, and of those that other documents contain, too (2, `size`)."""
    terms, documents, _ = triples
    shared = idf * (np.bincount(terms, minlength=len(idf)) > 1)
    sums = [np.bincount(documents, weights=rarity[terms], minlength=size) for rarity in (idf, shared)]
    return np.maximum(sums, 1e-9).astype(np.float32)


def _entry_facts(entries: Sequence[Entry], analyses: Sequence[Analysis]) -> EntryFacts:
    speakers = tuple(dict.fromkeys(entry.speaker for entry in entries if entry.speaker))
    numbered = {speaker: at for at, speaker in enumerate(speakers)}
    said = [entry.said_at for entry in entries]
    return EntryFacts(
        lengths=np.array([analysis.length for analysis in analyses], dtype=np.float32),
        is_question=np.array([analysis.is_question for analysis in analyses], dtype=bool),
        says_when=np.array([analysis.says_when for analysis in analyses], dtype=bool),
        speakers=speakers,
        speaker_of=np.array([numbered.get(entry.speaker or "", -1) for entry in entries], dtype=np.int64),
        days=np.array([day.toordinal() if day else 0 for day in said], dtype=np.int64),
        months=np.array([day.year * 12 + day.month - 1 if day else 0 for day in said], dtype=np.int64),
        languages=tuple(analysis.language for analysis in analyses),
    )


def _centred(rows: Floats) -> tuple[Floats, Floats]:
    """Subtract the mean (shrunk for few rows) from the rows in place and normalise them. Return rows and mean."""
    centre = np.asarray(rows.sum(axis=0) / (len(rows) + CENTRE_SHRINK), dtype=np.float32)
    rows -= centre
    rows /= np.maximum(np.sqrt(np.vecdot(rows, rows)), np.float32(1e-9))[:, None]
    return rows, centre


def _context_postings(
    content_triples: Triples, lengths: Floats, window: ContextWindow, content: Postings
) -> tuple[Postings, Postings | None]:
    """Return postings over entries with their neighbours, and over whole sessions."""
    if not window.has_neighbours:
        return content, None
    spread, spread_lengths = spread_counts(content_triples, lengths, window)
    context = build_postings(merged(spread), spread_lengths, content.idf, saturation=CONTEXT_SATURATION)
    terms, documents, counts = content_triples
    session = window.session_of[documents]
    in_session = session >= 0
    session_triples = merged((terms[in_session], session[in_session], counts[in_session]))
    in_session_entries = window.session_of >= 0
    session_lengths = np.bincount(
        window.session_of[in_session_entries], weights=lengths[in_session_entries], minlength=window.n_sessions
    )
    idf = idf_of(np.bincount(session_triples[0], minlength=len(content.idf)), window.n_sessions)
    return context, build_postings(session_triples, session_lengths.astype(np.float32), idf)
