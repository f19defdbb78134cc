"""The arrays of one book: postings, vectors and neighbours, built once and never changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Final

import numpy as np
from numpy.typing import NDArray

from memories.search.analysis import Analysis, AnalysisCache, Ints, Vocabulary
from memories.search.entries import Entry
from memories.search.neighbours import Neighbours, neighbours_of, smoothed, spread_counts
from memories.search.postings import Postings, build_postings, rarity
from memories.search.vectors import DIMENSIONS, Floats, unit

CONTEXT_SATURATION: Final = 0.8
"""k1 for words of the surroundings: that something is talked about counts, not how often."""
SMALL_BOOK: Final = 60
"""Entries below which a book is too small to tell common words from rare ones by itself."""
CENTRE_SHRINK: Final = 10
"""Entries' worth of "no common direction" mixed into the centre, so that a book of two is not torn apart."""
KEYWORD_SHARE: Final = 0.8
"""Most that keywords count beside the same match in the content, in every kind of evidence."""


@dataclass(frozen=True, slots=True, eq=False)
class BookArrays:
    """Everything about a book that does not depend on the query. N entries, T terms."""

    vocabulary: Vocabulary
    terms: Ints
    """Vocabulary numbers of the book's terms, ascending (T)."""
    named: NDArray[np.bool_]
    """The entries write the term as a name: with a capital inside a sentence, or with a digit (T)."""
    word_vectors: Floats
    """Centred unit vectors of the terms (T, 256)."""
    word_centre: Floats
    content: Postings
    """Over the entries' own words."""
    context: Postings
    """Over each entry with fading shares of its neighbours; the same as `content` without sessions."""
    keywords: Postings
    sessions: Postings | None
    """Documents are sessions; None when no entry has a neighbour."""
    own_terms: tuple[Ints, ...]
    """Terms of each entry's content."""
    found_by_terms: tuple[Ints, ...]
    """Terms of each entry's keywords."""
    vectors: Floats
    """Centred unit vectors of content, keywords and surroundings (N, 256)."""
    centre: Floats
    around: Neighbours
    lengths: Floats
    asks: NDArray[np.bool_]
    says_when: NDArray[np.bool_]
    speakers: tuple[str, ...]
    speaker_of: Ints
    days: Ints
    """Ordinal day on which it was said, 0 if unknown (N)."""
    months: Ints
    """Year * 12 + month - 1, 0 if unknown (N)."""

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        values = [getattr(self, field.name) for field in fields(self)]
        arrays = [value for value in values if isinstance(value, (np.ndarray, Postings, Neighbours))]
        return sum(array.nbytes for array in (*arrays, *self.own_terms, *self.found_by_terms))


def build_arrays(entries: Sequence[Entry], cache: AnalysisCache) -> BookArrays:
    """Analyse what is new, and lay the book out."""
    texts = [entry.content for entry in entries] + [", ".join(entry.keywords) for entry in entries]
    vocabulary, analyses = cache.analyse(texts)
    content, keywords = analyses[: len(entries)], analyses[len(entries) :]
    terms, own, found_by = _triples(content, keywords)
    idf = rarity(
        np.concatenate([own[0], found_by[0]]), np.concatenate([own[1], found_by[1]]), len(terms), len(entries),
        at_least=SMALL_BOOK,
    )  # fmt: skip
    around = neighbours_of(entries)
    lengths = _lengths(content)
    own_postings = build_postings(*own, lengths, idf)
    context, sessions = _context_postings(own, lengths, around, own_postings)
    words = vocabulary.word_vectors(terms)
    word_centre = _centre(words)
    raw = text_vectors(content, keywords)
    centre = _centre(raw)
    speakers = tuple(dict.fromkeys(entry.speaker for entry in entries if entry.speaker))
    numbered = {speaker: at for at, speaker in enumerate(speakers)}
    said = [entry.said_at for entry in entries]
    return BookArrays(
        vocabulary=vocabulary,
        terms=terms,
        named=_named(terms, content),
        word_vectors=unit(words - word_centre),
        word_centre=word_centre,
        content=own_postings,
        context=context,
        keywords=build_postings(*found_by, _lengths(keywords), idf),
        sessions=sessions,
        own_terms=_per_entry(own, len(entries)),
        found_by_terms=_per_entry(found_by, len(entries)),
        vectors=unit(smoothed(unit(raw - centre), around)),
        centre=centre,
        around=around,
        lengths=lengths,
        asks=np.array([one.asks for one in content], dtype=bool),
        says_when=np.array([one.says_when for one in content], dtype=bool),
        speakers=speakers,
        speaker_of=np.array([numbered.get(entry.speaker or "", -1) for entry in entries], dtype=np.int64),
        days=np.array([day.toordinal() if day else 0 for day in said], dtype=np.int64),
        months=np.array([day.year * 12 + day.month - 1 if day else 0 for day in said], dtype=np.int64),
    )


Triples = tuple[Ints, Ints, Floats]


def _triples(content: Sequence[Analysis], keywords: Sequence[Analysis]) -> tuple[Ints, Triples, Triples]:
    """Return the book's terms and (local term, document, count) triples of content and keywords."""
    none = np.zeros(0, dtype=np.int64)
    every = np.concatenate([none, *(one.terms for one in content), *(one.terms for one in keywords)])
    terms, local = np.unique(every, return_inverse=True)
    laid: list[Triples] = []
    at = 0
    for part in (content, keywords):
        sizes = np.array([len(one.terms) for one in part], dtype=np.int64)
        documents = np.repeat(np.arange(len(part)), sizes)
        counts = np.concatenate([np.zeros(0, dtype=np.float32), *(one.counts for one in part)])
        laid.append((local[at : at + len(documents)], documents, counts))
        at += len(documents)
    return terms, laid[0], laid[1]


def _per_entry(triples: Triples, size: int) -> tuple[Ints, ...]:
    if not size:
        return ()
    return tuple(np.split(triples[0], np.searchsorted(triples[1], np.arange(1, size))))


def _named(terms: Ints, content: Sequence[Analysis]) -> NDArray[np.bool_]:
    names = np.concatenate([np.zeros(0, dtype=np.int64), *(one.names for one in content)])
    return np.isin(terms, names)


def _lengths(analyses: Sequence[Analysis]) -> Floats:
    return np.array([one.length for one in analyses], dtype=np.float32)


def _centre(rows: Floats) -> Floats:
    """Return the common direction of the rows, weaker when they are few."""
    if not len(rows):
        return np.zeros(DIMENSIONS, dtype=np.float32)
    return np.asarray(rows.sum(axis=0) / (len(rows) + CENTRE_SHRINK), dtype=np.float32)


def text_vectors(content: Sequence[Analysis], keywords: Sequence[Analysis]) -> Floats:
    """Return one vector per entry: its content with a share of its keywords, however many they are."""
    if not content:
        return np.zeros((0, DIMENSIONS), dtype=np.float32)
    said = unit(np.stack([one.vector for one in content]))
    found_by = unit(np.stack([one.vector for one in keywords]))
    return np.asarray(said + KEYWORD_SHARE * found_by, dtype=np.float32)


def _context_postings(
    own: Triples, lengths: Floats, around: Neighbours, content: Postings
) -> tuple[Postings, Postings | None]:
    """Return postings over entries with their surroundings, and over whole sessions."""
    if not around.any:
        return content, None
    terms, documents, counts = own
    spread = spread_counts(terms, documents, counts, lengths, around)
    context = build_postings(*spread, content.idf, saturation=CONTEXT_SATURATION)
    session = around.session_of[documents]
    inside = session >= 0
    terms, session, counts = terms[inside], session[inside], counts[inside]
    has = around.session_of >= 0
    session_lengths = np.bincount(around.session_of[has], weights=lengths[has], minlength=around.n_sessions).astype(
        np.float32
    )
    idf = rarity(terms, session, len(content.idf), around.n_sessions)
    return context, build_postings(terms, session, counts, session_lengths, idf)
