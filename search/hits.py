"""Search results, and sentences that explain why an entry was found."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, NamedTuple

from search.book import BookArrays, TermsOf
from search.entries import Entry
from search.evidence import Evidence
from search.query import Query
from search.tokens import tokens_of

MAX_WORDS: Final = 4
"""Words listed per reason."""
CLEAR_MEANING: Final = 0.3
"""Cosine from which a similar meaning is given as a reason."""
NEIGHBOUR_REACH: Final = 2


class Reason(NamedTuple):
    """One reason why an entry was found."""

    kind: str
    """`words`, `keywords`, `near_words`, `neighbour`, `meaning`, `speaker`, `date`, `time`, `all_keywords`,
    `no_keywords` or `rest`."""
    words: tuple[str, ...] = ()
    """The words concerned; for `speaker` the name, for `date` the day."""
    side: str = "before"
    """For `neighbour`: `before` or `after`."""


@dataclass
class Hit:
    """One found entry."""

    number: int
    score: float
    """Only comparable within one search; never increases down the list."""
    explain: Callable[[], tuple[Reason, ...]] = field(repr=False, compare=False)

    @cached_property
    def reasons(self) -> tuple[Reason, ...]:
        """Why the entry was found, strongest kinds first; never empty. Computed when it is first read."""
        return self.explain()

    @property
    def why(self) -> str:
        """The reasons as a sentence for people. It may quote keywords, so it must not be shown to a model."""
        return sentence(self.reasons)


def strict_reasons(has_keywords: bool) -> tuple[Reason, ...]:
    """Explain a hit of the strict search."""
    return (Reason("all_keywords" if has_keywords else "no_keywords"),)


def ranked_reasons(
    query: Query, evidence: Evidence, entries: Sequence[Entry], book: BookArrays, terms_of: TermsOf, at: int
) -> tuple[Reason, ...]:
    """Explain why the ranked search found the entry `at`, strongest kinds first; never empty."""
    content_terms, keyword_terms = terms_of(at)
    shared = _spelled(query, content_terms)
    found: list[Reason] = []
    if shared:
        found.append(Reason("words", shared))
    if keyword_terms and (by_keywords := tuple(word for word in _spelled(query, keyword_terms) if word not in shared)):
        found.append(Reason("keywords", by_keywords))
    if near := _near(content_terms | keyword_terms if keyword_terms else content_terms, query, book, entries[at]):
        found.append(Reason("near_words", near))
    if book.window.has_neighbours and (neighbour := _neighbour(at, query, book, terms_of, shared)):
        found.append(neighbour)
    if evidence.meaning[at] >= CLEAR_MEANING:
        found.append(Reason("meaning"))
    if query.speakers and evidence.speaker[at] > 0:
        found.append(Reason("speaker", (entries[at].speaker or "",)))
    said_at = entries[at].said_at
    if query.message.times and evidence.date[at] > 0 and said_at is not None:
        found.append(Reason("date", (f"{said_at.day} {said_at:%B %Y}",)))
    if query.message.asks_when and evidence.time[at] > 0:
        found.append(Reason("time"))
    return tuple(found) or (Reason("meaning" if evidence.meaning[at] > 0 else "rest"),)


def sentence(reasons: Sequence[Reason]) -> str:
    """Return the reasons as one sentence."""
    joined = "; ".join([_CLAUSES[reason.kind](reason) for reason in reasons])
    return joined[:1].upper() + joined[1:] + "."


_CLAUSES: Final[dict[str, Callable[[Reason], str]]] = {
    "words": lambda r: f"shares the {'word' if len(r.words) == 1 else 'words'} {_listed(r.words)}",
    "keywords": lambda r: f"has the {'keyword' if len(r.words) == 1 else 'keywords'} {_listed(r.words)}",
    "near_words": lambda r: (
        f"{_listed(r.words)} in it {'is' if len(r.words) == 1 else 'are'} close to words of the message"
    ),
    "neighbour": lambda r: f"what was said right {r.side} it mentions {_listed(r.words)}",
    "meaning": lambda r: "similar meaning",
    "speaker": lambda r: f"said by {r.words[0]}",
    "date": lambda r: f"said on {r.words[0]}, near the day asked about",
    "time": lambda r: "states a time",
    "all_keywords": lambda r: "contains every keyword of the message",
    "no_keywords": lambda r: "listed because the message gave no keywords",
    "rest": lambda r: "the next best in this book",
}


def _listed(words: Sequence[str]) -> str:
    quoted = [f"“{word}”" for word in words[:MAX_WORDS]]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} and {quoted[-1]}"


def _spelled(query: Query, terms: Set[int]) -> tuple[str, ...]:
    """Return the message's words that are among the terms, as the message spells them, by descending weight."""
    return tuple(dict.fromkeys([surface for term, surface in query.spelled if term in terms]))


def _near(terms: Set[int], query: Query, book: BookArrays, entry: Entry) -> tuple[str, ...]:
    """Return the entry's words that are close to message words it does not contain, closest first."""
    near = query.near
    missing = [(value, term) for term in terms & near.keys() for value, asked in near[term] if asked not in terms]
    if not missing:
        return ()
    # Terms are stems; show the entry's own spelling.
    tokens = [*tokens_of(entry.content), *tokens_of(", ".join(entry.keywords))]
    surfaces = {token.term: token.surface for token in reversed(tokens)}
    spelled = {book.places.get(term, -1): surface for term, surface in surfaces.items()}
    found = [spelled.get(term) for _, term in sorted(missing)]
    return tuple(dict.fromkeys(word for word in found if word and not word.isdecimal()))


def _neighbour(at: int, query: Query, book: BookArrays, terms_of: TermsOf, shared: tuple[str, ...]) -> Reason | None:
    """Return the nearest neighbour that contains message words which this entry does not."""
    for side, neighbours in (("before", book.window.before), ("after", book.window.after)):
        place = at
        for _ in range(NEIGHBOUR_REACH):
            place = int(neighbours[place])
            if place < 0:
                break
            words = tuple(word for word in _spelled(query, terms_of(place)[0]) if word not in shared)
            if words:
                return Reason("neighbour", words, side)
    return None
