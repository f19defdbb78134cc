"""Moves a newer fact before the older fact that it replaces.

Facts are not marked as outdated; a fact counts as replaced if a later one has nearly the same words, keywords and
meaning. The order is not changed for messages about the past, or if the message names something that only the older
fact contains.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from typing import Final

import numpy as np

from search.analysis import Ints
from search.book import BookArrays, TermsOf
from search.entries import Entry
from search.query import Query

SAME_SUBJECT: Final = 1.1
"""Cosine plus share of common rare words from which two facts are about the same subject (2 = equal)."""
MIN_COSINE: Final = 0.3
"""Pairs of facts below this cosine are not compared further."""
MAX_FACT_TERMS: Final = 60
"""A longer text is not a single fact."""
MAX_COMPARED: Final = 20
_PAIRS: Final = ~np.tri(MAX_COMPARED, dtype=bool)
"""Mask of each pair once."""
_ROUNDING: Final = 1e-4

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
    """Return True if the message asks how things were, not how they are."""
    return bool(_PAST.search(text.lower())) and not asks_about_now(text)


def asks_about_now(text: str) -> bool:
    """Return True if the message explicitly asks how things are now."""
    return bool(_PRESENT.search(text.lower()))


def newest_first(
    order: list[int], query: Query, entries: Sequence[Entry], book: BookArrays, terms_of: TermsOf
) -> list[int]:
    """Return the order of entry indexes with every newer fact moved before the older one it replaces."""
    if asks_about_past(query.text):
        return order
    facts = _facts(np.array(order[:MAX_COMPARED], dtype=np.int64), book)
    if not (pairs := _candidate_pairs(facts, book)):
        return order
    moved, places, rarities = list(order), facts.tolist(), book.rarity[:, facts].tolist()
    names: set[int] | None = None
    for first, second, cosine in pairs:
        one, other = places[first], places[second]
        older, newer = (one, other) if is_newer(other, one, entries) else (other, one)
        if moved.index(newer) < moved.index(older):
            continue
        smaller = [min(rarity[first], rarity[second]) for rarity in rarities]
        if cosine + _overlap(terms_of(one), terms_of(other), smaller, book) < SAME_SUBJECT:
            continue
        if names is None:
            now = asks_about_now(query.text)
            names = set() if now else {word.term for word in query.words if word.is_named}
        if not names & terms_of(older)[0] - set().union(*terms_of(newer)):
            moved.remove(newer)
            moved.insert(moved.index(older), newer)
    return moved


def is_newer(one: int, other: int, entries: Sequence[Entry]) -> bool:
    """Return True if `one` was said later than `other`, or inserted later if a time is missing."""
    when, other_when = entries[one].said_at, entries[other].said_at
    if when is not None and other_when is not None and when != other_when:
        return when > other_when
    return one > other


def _candidate_pairs(facts: Ints, book: BookArrays) -> list[tuple[int, int, float]]:
    """Return the pairs of facts that may be about the same subject, as positions in `facts`, with their cosine.

    The measure is the cosine (-1 to 1) plus the share of common rare words (0 to 1). Content is compared with content
    and keywords with keywords, and the better of the two counts: keywords that repeat another fact's content do not
    make a new version of it.
    """
    rows = book.vectors.take(facts, axis=0)
    cosine = rows @ rows.T
    # A fact can share at most the terms that other entries contain.
    shareable = book.shareable[facts]
    candidates = _PAIRS[: len(facts), : len(facts)] & (cosine >= MIN_COSINE)
    candidates &= cosine + np.maximum(shareable[:, None], shareable) >= SAME_SUBJECT - _ROUNDING
    ones, others = candidates.nonzero()
    return list(zip(ones.tolist(), others.tolist(), cosine[candidates].tolist(), strict=True))


def _overlap(one: Sequence[Set[int]], other: Sequence[Set[int]], smaller: Sequence[float], book: BookArrays) -> float:
    """Return the summed idf of the terms that two facts share, relative to the smaller fact's."""
    idf = book.content.idf.item
    return max(sum(map(idf, terms & others)) / total for terms, others, total in zip(one, other, smaller, strict=False))


def _facts(places: Ints, book: BookArrays) -> Ints:
    """Return the indexes of entries that are a single short fact without neighbours."""
    is_fact = book.facts.lengths[places] <= MAX_FACT_TERMS
    if book.window.has_neighbours:
        is_fact &= (book.window.before[places] < 0) & (book.window.after[places] < 0)
    return places[is_fact]
