"""The arrays of one book: postings, vectors and neighbours, built once and never changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from memories.search.analysis import Analysis, AnalysisCache, Ints, Vocabulary
from memories.search.entries import Entry
from memories.search.neighbours import Neighbours, neighbours_of, smoothed, spread_counts
from memories.search.postings import Postings, build_postings
from memories.search.vectors import DIMENSIONS, Floats, unit

CONTEXT_SATURATION: Final = 0.8
"""k1 for words of the surroundings: that something is talked about counts, not how often."""


@dataclass(frozen=True, slots=True, eq=False)
class BookArrays:
    """Everything about a book that does not depend on the query. N entries, T terms."""

    vocabulary: Vocabulary
    terms: Ints
    """Vocabulary numbers of the book's terms, ascending (T)."""
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
    entry_starts: Ints
    """The own terms of entry i are `entry_terms[entry_starts[i]:entry_starts[i + 1]]`."""
    entry_terms: Ints
    vectors: Floats
    """Centred unit vectors of content with keywords and surroundings (N, 256)."""
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
        values = (getattr(self, name) for name in self.__slots__)
        return sum(value.nbytes for value in values if isinstance(value, (np.ndarray, Postings, Neighbours)))

    def terms_of(self, entry: int) -> Ints:
        """Return the entry's own terms."""
        return self.entry_terms[self.entry_starts[entry] : self.entry_starts[entry + 1]]


def build_arrays(entries: Sequence[Entry], cache: AnalysisCache) -> BookArrays:
    """Analyse what is new, and lay the book out."""
    texts = [entry.content for entry in entries] + [", ".join(entry.keywords) for entry in entries]
    vocabulary, analyses = cache.analyse(texts)
    content, keywords = analyses[: len(entries)], analyses[len(entries) :]
    terms, own, found_by = _triples(content, keywords)
    around = neighbours_of(entries)
    lengths = _lengths(content)
    own_postings = build_postings(*own, lengths, len(terms))
    context, sessions = _context_postings(own, lengths, around, own_postings)
    words = vocabulary.word_vectors(terms)
    word_centre = words.mean(axis=0) if len(words) else np.zeros(DIMENSIONS, dtype=np.float32)
    raw = text_vectors(content, keywords)
    centre = raw.mean(axis=0) if len(raw) else np.zeros(DIMENSIONS, dtype=np.float32)
    speakers = tuple(dict.fromkeys(entry.speaker for entry in entries if entry.speaker))
    numbered = {speaker: at for at, speaker in enumerate(speakers)}
    said = [entry.said_at for entry in entries]
    return BookArrays(
        vocabulary=vocabulary,
        terms=terms,
        word_vectors=unit(words - word_centre),
        word_centre=word_centre,
        content=own_postings,
        context=context,
        keywords=build_postings(*found_by, _lengths(keywords), len(terms)),
        sessions=sessions,
        entry_starts=np.searchsorted(own[1], np.arange(len(entries) + 1)),
        entry_terms=own[0],
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


def _lengths(analyses: Sequence[Analysis]) -> Floats:
    return np.array([one.length for one in analyses], dtype=np.float32)


def text_vectors(content: Sequence[Analysis], keywords: Sequence[Analysis]) -> Floats:
    """Return one vector per entry: its content with its keywords, by their number of words."""
    if not content:
        return np.zeros((0, DIMENSIONS), dtype=np.float32)
    said = np.stack([one.vector for one in content])
    found_by = np.stack([one.vector for one in keywords])
    n_said = np.maximum(_lengths(content), 1)[:, None]
    n_found_by = _lengths(keywords)[:, None]
    return np.asarray((said * n_said + found_by * n_found_by) / (n_said + n_found_by), dtype=np.float32)


def _context_postings(
    own: Triples, lengths: Floats, around: Neighbours, content: Postings
) -> tuple[Postings, Postings | None]:
    """Return postings over entries with their surroundings, and over whole sessions."""
    if not around.any:
        return content, None
    terms, documents, counts = own
    n_terms = len(content.idf)
    *spread, spread_lengths = spread_counts(terms, documents, counts, lengths, around)
    context = build_postings(
        *spread, spread_lengths, n_terms, saturation=CONTEXT_SATURATION, idf=content.idf
    )
    session = around.session_of[documents]
    inside = session >= 0
    has = around.session_of >= 0
    session_lengths = np.bincount(
        around.session_of[has], weights=lengths[has], minlength=around.n_sessions
    ).astype(np.float32)
    sessions = build_postings(terms[inside], session[inside], counts[inside], session_lengths, n_terms)
    return context, sessions
