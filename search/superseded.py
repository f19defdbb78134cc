"""Of two facts that say something about the same thing, the newer one comes first.

Nobody marks a fact as outdated; it shows in that a later one shares its subject: nearly the same
words, keywords and meaning. The order is turned round only then, and not for messages about the past
or messages that name what only the older fact holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from typing import Final

import numpy as np

from search.analysis import Ints
from search.book import BookArrays, TermsOf
from search.entries import Entry
from search.query import Query

SAME_SUBJECT: Final = 1.1
"""Cosine plus shared share of rare words from which two facts are about the same thing (2 = equal)."""
LEAST_COSINE: Final = 0.3
"""Facts below it are never compared further."""
LONGEST_FACT: Final = 60
"""Terms of a text that is still one short fact."""
MOST_COMPARED: Final = 20
_PAIRS: Final = ~np.tri(MOST_COMPARED, dtype=bool)
"""Each two of them once."""
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
    """Say whether the message asks how things were, and not how they are."""
    return bool(_PAST.search(text.lower())) and not asks_about_now(text)


def asks_about_now(text: str) -> bool:
    """Say whether the message asks outright how things are now."""
    return bool(_PRESENT.search(text.lower()))


def newest_first(
    order: list[int], query: Query, entries: Sequence[Entry], book: BookArrays, terms_of: TermsOf
) -> list[int]:
    """Return the order of places with every newer fact moved before the older one it replaces."""
    if asks_about_past(query.text):
        return order
    moved, names = list(order), None
    facts = _facts(np.array(order[:MOST_COMPARED], dtype=np.int64), book)
    places, rarities = facts.tolist(), book.rarity[:, facts].tolist()
    for first, second, cosine in _may_be_same(facts, book):
        one, other = places[first], places[second]
        older, newer = (one, other) if is_newer(other, one, entries) else (other, one)
        if newer == one if names is None else moved.index(newer) < moved.index(older):
            continue
        least = [min(rarity[first], rarity[second]) for rarity in rarities]
        if cosine + _shared_part(terms_of(one), terms_of(other), least, book) < SAME_SUBJECT:
            continue
        if names is None:
            now = asks_about_now(query.text)
            names = set() if now else {word.term for word in query.words if word.is_named}
        if not names & terms_of(older)[0] - set().union(*terms_of(newer)):
            moved.remove(newer)
            moved.insert(moved.index(older), newer)
    return moved


def is_newer(one: int, other: int, entries: Sequence[Entry]) -> bool:
    """Say whether `one` was said later than `other`; by insertion order when a time is missing."""
    when, other_when = entries[one].said_at, entries[other].said_at
    if when is not None and other_when is not None and when != other_when:
        return when > other_when
    return one > other


def _may_be_same(facts: Ints, book: BookArrays) -> Iterator[tuple[int, int, float]]:
    """Return the pairs of facts that may be about the same thing, by their numbers in the order given, with their
    cosine.

    What counts is the cosine (-1 to 1) plus the shared part of rare words (0 to 1). Content is compared
    with content and keywords with keywords, and the better of the two counts: keywords that repeat
    another fact's content make no new version of it.
    """
    rows = book.vectors.take(facts, axis=0)
    cosine = rows @ rows.T
    # What other entries hold, too, is the most that a fact can share with one that says more.
    part = book.shareable[facts]
    may_be = _PAIRS[: len(facts), : len(facts)] & (cosine >= LEAST_COSINE)
    may_be &= cosine + np.maximum(part[:, None], part) >= SAME_SUBJECT - _ROUNDING
    ones, others = may_be.nonzero()
    return zip(ones.tolist(), others.tolist(), cosine[may_be].tolist(), strict=True)


def _shared_part(one: Sequence[Set[int]], other: Sequence[Set[int]], least: Sequence[float], book: BookArrays) -> float:
    """Return the rarity of the terms that two facts share as a part of the smaller one's."""
    idf = book.content.idf.item
    return max(sum(map(idf, own & its)) / whole for own, its, whole in zip(one, other, least, strict=False))


def _facts(places: Ints, book: BookArrays) -> Ints:
    """Return those of the places that hold one short fact that stands for itself."""
    are = book.facts.lengths[places] <= LONGEST_FACT
    if book.around.any:
        are &= (book.around.before[places] < 0) & (book.around.after[places] < 0)
    return places[are]
