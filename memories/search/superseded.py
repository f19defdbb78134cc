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

from memories.search.arrays import BookArrays
from memories.search.entries import Entry
from memories.search.query import Query
from memories.search.vectors import cosines

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
    r"был[аио]?|раньше|прежн\w+|прежде|бывш\w+)\b|以前|之前|原来|过去|قبلا|قبلی|سابق",
    re.IGNORECASE,
)
_PRESENT: Final = re.compile(
    r"\b(?:now|current(?:ly)?|present(?:ly)?|latest|newest|final|these days|at the moment|today|nowadays|still|"
    r"this (?:week|month|term|season|year)|jetzt|aktuell\w*|derzeit|momentan|heute|neueste\w*|"
    r"maintenant|actuel\w*|aujourd'hui|ahora|actual\w*|hoy|сейчас|теперь|нынешн\w+|текущ\w+)\b"
    r"|现在|目前|最新|الان|اکنون|فعلی",
    re.IGNORECASE,
)


def asks_about_past(text: str) -> bool:
    """Say whether the message asks how things were, and not how they are."""
    return bool(_PAST.search(text)) and not _PRESENT.search(text)


def newest_first(order: list[int], query: Query, entries: Sequence[Entry], book: BookArrays) -> list[int]:
    """Return the order of places with every newer fact moved before the older one it replaces."""
    facts = [at for at in order[:MOST_COMPARED] if _is_fact(at, book)]
    if len(facts) < 2 or asks_about_past(query.text):
        return order
    asks_now = bool(_PRESENT.search(query.text))
    rows = book.vectors[facts]
    close = cosines(rows, rows) >= LEAST_COSINE
    moved = list(order)
    for first, second in zip(*np.nonzero(np.triu(close, 1)), strict=True):
        one, other = facts[first], facts[second]
        older, newer = (one, other) if is_newer(other, one, entries) else (other, one)
        if moved.index(newer) < moved.index(older) or same_subject(older, newer, book) < SAME_SUBJECT:
            continue
        if asks_now or not _names_only(query, older, newer, book):
            moved.remove(newer)
            moved.insert(moved.index(older), newer)
    return moved


def is_newer(one: int, other: int, entries: Sequence[Entry]) -> bool:
    """Say whether `one` was said later than `other`; by insertion order when a time is missing."""
    when, other_when = entries[one].said_at, entries[other].said_at
    if when is not None and other_when is not None and when != other_when:
        return when > other_when
    return one > other


def same_subject(one: int, other: int, book: BookArrays) -> float:
    """Return cosine (-1 to 1) plus the shared part of rare words (0 to 1).

    Content is compared with content and keywords with keywords, and the better of the two counts:
    keywords that repeat another fact's content make no new version of it.
    """
    cosine = float(book.vectors[one] @ book.vectors[other])
    parts = (book.own_terms, book.found_by_terms)
    return cosine + max(_shared_part(set(p[one].tolist()), set(p[other].tolist()), book) for p in parts)


def _shared_part(terms: set[int], others: set[int], book: BookArrays) -> float:
    """Return the rarity of the shared terms as a part of the smaller set's."""
    shared = terms & others
    if not shared:
        return 0.0
    return _rarity(shared, book) / min(_rarity(terms, book), _rarity(others, book))


def _is_fact(at: int, book: BookArrays) -> bool:
    alone = book.around.before[at] < 0 and book.around.after[at] < 0
    return bool(alone and book.lengths[at] <= LONGEST_FACT)


def _terms(at: int, book: BookArrays) -> set[int]:
    return {*book.own_terms[at].tolist(), *book.found_by_terms[at].tolist()}


def _rarity(terms: set[int], book: BookArrays) -> float:
    return float(book.content.idf[list(terms)].sum())


def _names_only(query: Query, older: int, newer: int, book: BookArrays) -> bool:
    """Say whether the message holds a name or number that the older fact has and the newer has not."""
    asked = {term for term in query.terms.tolist() if term >= 0 and book.named[term]}
    return bool(asked & set(book.own_terms[older].tolist()) - _terms(newer, book))
