"""Say in a person's words why an entry was found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from memories.search.analysis import Ints
from memories.search.arrays import BookArrays
from memories.search.entries import Entry
from memories.search.hits import Reason
from memories.search.query import Query
from memories.search.signals import Evidence

MOST_WORDS: Final = 4
"""Words named per reason."""
CLEAR_MEANING: Final = 0.3
"""Cosine from which the whole text is called close in meaning."""
NEIGHBOUR_REACH: Final = 2

ALL_KEYWORDS: Final = Reason(kind="all_keywords")
NO_KEYWORDS: Final = Reason(kind="no_keywords")


def reasons_for(
    at: int, query: Query, evidence: Evidence, entries: Sequence[Entry], book: BookArrays
) -> tuple[Reason, ...]:
    """Return what speaks for the entry, strongest kinds first; never empty."""
    own, found_by = _spelled(query, book.own_terms[at]), _spelled(query, book.found_by_terms[at])
    near = _near(at, query, book)
    reasons = [
        Reason(kind="words", words=own),
        Reason(kind="keywords", words=tuple(word for word in found_by if word not in own)),
        Reason(kind="near_words", words=near),
        _neighbour(at, query, entries, book, own),
    ]
    found = [reason for reason in reasons if reason is not None and reason.words]
    if evidence.meaning[at] >= CLEAR_MEANING:
        found.append(Reason(kind="meaning"))
    if evidence.speaker[at] > 0:
        found.append(Reason(kind="speaker", words=(entries[at].speaker or "",)))
    said_at = entries[at].said_at
    if evidence.date[at] > 0 and said_at is not None:
        found.append(Reason(kind="date", words=(f"{said_at.day} {said_at:%B %Y}",)))
    if evidence.time[at] > 0:
        found.append(Reason(kind="time"))
    return tuple(found) or (Reason(kind="meaning" if evidence.meaning[at] > 0 else "rest"),)


def sentence(reasons: Sequence[Reason]) -> str:
    """Return the reasons as one sentence."""
    joined = "; ".join(_clause(reason) for reason in reasons)
    return joined[:1].upper() + joined[1:] + "."


def _clause(reason: Reason) -> str:
    words = _listed(reason.words)
    clauses = {
        "words": f"shares the {_plural('word', reason.words)} {words}",
        "keywords": f"written to be found by {words}",
        "near_words": f"{words} in it {'is' if len(reason.words) == 1 else 'are'} close to words of the message",
        "neighbour": f"what was said right {reason.side} it mentions {words}",
        "meaning": "close to the message in meaning",
        "speaker": f"said by {reason.words[0] if reason.words else ''}",
        "date": f"said on {reason.words[0] if reason.words else ''}, near the day asked about",
        "time": "says when",
        "all_keywords": "holds every keyword of the message",
        "no_keywords": "listed because the message gave no keywords",
        "rest": "the next best in this book",
    }
    return clauses[reason.kind]


def _plural(word: str, words: Sequence[str]) -> str:
    return word if len(words) == 1 else f"{word}s"


def _listed(words: Sequence[str]) -> str:
    quoted = [f"“{word}”" for word in words[:MOST_WORDS]]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} and {quoted[-1]}" if quoted else ""


def _spelled(query: Query, terms: Ints) -> tuple[str, ...]:
    """Return the message's words that are among the terms, as the message spells them, weightiest first."""
    met = sorted(query.spelling[term] for term in terms.tolist() if term in query.spelling)
    return tuple(dict.fromkeys(surface for _, surface in met))


def _near(at: int, query: Query, book: BookArrays) -> tuple[str, ...]:
    """Return the entry's words that are close to words of the message which it lacks, closest first."""
    terms = [*book.own_terms[at].tolist(), *book.found_by_terms[at].tolist()]
    close = [(*found, term) for term in terms if term in query.near for found in query.near[term]]
    if not close:
        return ()
    held = set(terms)
    lacking = sorted((value, term) for value, asked, term in close if asked not in held)
    return tuple(dict.fromkeys(book.vocabulary.surface(int(book.terms[term])) for _, term in lacking))


def _neighbour(
    at: int, query: Query, entries: Sequence[Entry], book: BookArrays, own: tuple[str, ...]
) -> Reason | None:
    """Return the nearest entry around this one that holds words of the message which it lacks."""
    for side, towards in (("before", book.around.before), ("after", book.around.after)):
        place = at
        for _ in range(NEIGHBOUR_REACH):
            place = int(towards[place])
            if place < 0:
                break
            words = tuple(word for word in _spelled(query, book.own_terms[place]) if word not in own)
            if words:
                return Reason(kind="neighbour", words=words, number=entries[place].number, side=side)
    return None
