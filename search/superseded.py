"""Of two facts that say something about the same thing, the newer one comes first.

Nobody marks a fact as outdated; it shows in that a later one shares its subject: nearly the same
words, keywords and meaning. The order is turned round only then, and not for messages about the past
or messages that name what only the older fact holds.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import numpy as np

from search.analysis import Ints
from search.book import BookArrays
from search.entries import Entry
from search.postings import end_to_end
from search.query import Query
from search.vectors import Floats, cosines

SAME_SUBJECT: Final = 1.1
"""Cosine plus shared share of rare words from which two facts are about the same thing (2 = equal)."""
LEAST_COSINE: Final = 0.3
"""Facts below it are never compared further."""
LONGEST_FACT: Final = 60
"""Terms of a text that is still one short fact."""
MOST_COMPARED: Final = 20

_PAST: Final = re.compile(
    r"\b(?:was|were|did|had|used to|before|previous(?:ly)?|former(?:ly)?|earlier|old|back (?:in|then)|originally|"
    r"war|waren|hatte|früher|vorher|damals|ehemalig\w*|était|avait|avant|ancien\w*|era|estaba|tenía|antes|"
    r"был[аио]?|раньше|прежн\w+|прежде|бывш\w+)\b|以前|之前|原来|过去|قبلا|قبلی|سابق"
)
_PRESENT: Final = re.compile(
    r"\b(?:now|current(?:ly)?|present(?:ly)?|latest|newest|final|these days|at the moment|today|nowadays|still|"
    r"this (?:week|month|term|season|year)|jetzt|aktuell\w*|derzeit|momentan|heute|neueste\w*|"
    r"maintenant|actuel\w*|aujourd'hui|ahora|actual\w*|hoy|сейчас|теперь|нынешн\w+|текущ\w+)\b"
    r"|现在|目前|最新|الان|اکنون|فعلی"
)


def asks_about_past(text: str) -> bool:
    """Say whether the message asks how things were, and not how they are."""
    return bool(_PAST.search(text.lower())) and not asks_about_now(text)


def asks_about_now(text: str) -> bool:
    """Say whether the message asks outright how things are now."""
    return bool(_PRESENT.search(text.lower()))


def newest_first(order: list[int], query: Query, entries: Sequence[Entry], book: BookArrays) -> list[int]:
    """Return the order of places with every newer fact moved before the older one it replaces."""
    facts = _facts(np.array(order[:MOST_COMPARED], dtype=np.int64), book)
    if len(facts) < 2:
        return order
    pairs = same_subject(facts, book)
    if not pairs or asks_about_past(query.text):
        return order
    names = set() if asks_about_now(query.text) else {word.term for word in query.words if word.is_named}
    moved = list(order)
    for one, other in pairs:
        older, newer = (one, other) if is_newer(other, one, entries) else (other, one)
        if moved.index(newer) < moved.index(older):
            continue
        if not names or not _holds_only(names, older, newer, book):
            moved.remove(newer)
            moved.insert(moved.index(older), newer)
    return moved


def is_newer(one: int, other: int, entries: Sequence[Entry]) -> bool:
    """Say whether `one` was said later than `other`; by insertion order when a time is missing."""
    when, other_when = entries[one].said_at, entries[other].said_at
    if when is not None and other_when is not None and when != other_when:
        return when > other_when
    return one > other


def same_subject(facts: Ints, book: BookArrays) -> list[tuple[int, int]]:
    """Return the pairs of facts that are about the same thing, in the order given.

    What counts is the cosine (-1 to 1) plus the shared part of rare words (0 to 1). Content is compared
    with content and keywords with keywords, and the better of the two counts: keywords that repeat
    another fact's content make no new version of it.
    """
    rows = book.vectors[facts]
    cosine = cosines(rows, rows)
    cosine.flat[:: len(facts) + 1] = 0
    linked = np.flatnonzero(cosine.max(axis=1) >= LEAST_COSINE)
    if not len(linked):
        return []
    cosine = cosine[linked[:, None], linked]
    same = np.argwhere((cosine >= LEAST_COSINE) & (cosine + _shared_part(facts[linked], book) >= SAME_SUBJECT))
    places = facts[linked].tolist()
    return [(places[one], places[other]) for one, other in same.tolist() if one < other]


def _shared_part(facts: Ints, book: BookArrays) -> Floats:
    """Return the rarity of the terms that two facts share as a part of the smaller one's (F, F)."""
    places, counts = end_to_end(book.entry_starts, facts)
    fact = np.arange(len(facts)).repeat(counts)
    pairs = book.entry_terms[places]
    seen = np.zeros(len(book.places), dtype=bool)
    seen[pairs] = True
    terms = seen.nonzero()[0]
    term = terms.searchsorted(pairs)
    parts = []
    for present in (book.in_content, book.in_keywords) if book.keywords.documents.size else (book.in_content,):
        held = np.zeros((len(facts), len(terms)), dtype=np.float32)
        held[fact, term] = present[places]
        shared = cosines(held * book.content.idf[terms], held)
        whole = np.maximum(shared.diagonal(), np.float32(1e-9))
        parts.append(shared / np.minimum(whole[:, None], whole))
    return np.asarray(np.maximum(parts[0], parts[-1]), dtype=np.float32)


def _facts(places: Ints, book: BookArrays) -> Ints:
    """Return those of the places that hold one short fact that stands for itself."""
    are = book.facts.lengths[places] <= LONGEST_FACT
    if book.around.any:
        are &= (book.around.before[places] < 0) & (book.around.after[places] < 0)
    return places[are]


def _holds_only(names: set[int], older: int, newer: int, book: BookArrays) -> bool:
    """Say whether the older fact holds one of the message's names or numbers that the newer has not."""
    return bool(names & book.terms_of(older)[0] - set().union(*book.terms_of(newer)))
