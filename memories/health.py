"""The health of a book, in figures and sentences: how full it is, what is blocked, and the facts that apps of higher
layers register (reviewed sessions, the result of the last review)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import Sum
from django.db.models.functions import Length
from django.utils import timezone

from memories.caller import UNLIMITED, KeyLimits
from memories.models import Book, Memory, Target
from memories.number_words import counted
from memories.recall.vectors import count_vectors
from memories.selectors import blocked_condition, count_by, live_condition
from memories.services import limits_of_books

# The order of the sentences in the health text.
COVERAGE, FULLNESS, LAST_REVIEW, VECTORS, BLOCKED, WARNING = range(6)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What one app reports about a book: figures for programs, and sentences with their position in the text.
    `of_owner`: the facts concern more than the book and are not shown to limited keys."""

    figures: Mapping[str, Any] = field(default_factory=dict)
    sentences: tuple[tuple[int, str], ...] = ()
    of_owner: bool = False


# (books of one owner, now) -> facts by book; the number of queries must not depend on the number of books.
FactsReader = Callable[[Sequence[Book], datetime], Mapping[UUID, Facts]]
_readers: list[FactsReader] = []
register_facts_reader = _readers.append
"""Registers a reader of another app; called from AppConfig.ready()."""


def health_of_books(owner_id: UUID, *, limits: KeyLimits = UNLIMITED) -> list[dict[str, Any]]:
    """Return the health of each of the owner's books within the limits, by name."""
    books = limits.filter(Book.objects.filter(owner_id=owner_id), book="name")
    return _health(list(books.order_by("name")), timezone.now(), limits)


def book_health(book: Book, now: datetime) -> dict[str, Any]:
    """Return the health of one book: figures, and `text` for people."""
    return _health([book], now, UNLIMITED)[0]


def _health(books: Sequence[Book], now: datetime, limits: KeyLimits) -> list[dict[str, Any]]:
    if not books:
        return []
    known = [_own_facts(books, now), *(reader(books, now) for reader in _readers)]
    health: list[dict[str, Any]] = []
    for book in books:
        facts = [found[book.pk] for found in known if book.pk in found and not (limits and found[book.pk].of_owner)]
        sentences = sorted((pair for fact in facts for pair in fact.sentences), key=lambda pair: pair[0])
        figures = {name: value for fact in facts for name, value in fact.figures.items()}
        text = " ".join(words for _, words in sentences)
        health.append({"object": "book_health", "book": book.name, **figures, "text": text})
    return health


def ago(moment: datetime, now: datetime) -> str:
    """Return how long ago a moment was, such as `2 hours ago`."""
    minutes = int((now - moment).total_seconds() // 60)
    for size, unit in ((60 * 24, "day"), (60, "hour"), (1, "minute")):
        if minutes >= size:
            return f"{counted(minutes // size, unit)} ago"
    return "just now"


def _own_facts(books: Sequence[Book], now: datetime) -> dict[UUID, Facts]:
    rows = Memory.objects.filter(live_condition(), owner_id=books[0].owner_id, book__in=books)
    used: dict[tuple[UUID, str], int] = {
        (row["book"], row["target"]): row["used"]
        for row in rows.values("book", "target").annotate(used=Sum(Length("content"))).order_by()
    }
    live = count_by(rows, "book")
    blocked = count_by(rows.filter(blocked_condition()), "book")
    vectors = count_vectors(books[0].owner_id, [book.pk for book in books]) if settings.EMBEDDING_MODEL else None
    limits = limits_of_books([book.name for book in books])
    facts = {}
    for book in books:
        figures: dict[str, Any] = {
            "targets": {
                str(target): {"used": used.get((book.pk, target), 0), "limit": limits[book.name][target]}
                for target in Target
            },
            "memories": live.get(book.pk, 0),
            "blocked": blocked.get(book.pk, 0),
            "last_write_at": book.last_write_at,
        }
        if vectors is not None:
            figures["vectors"] = vectors.get(book.pk, 0)
        facts[book.pk] = Facts(figures=figures, sentences=tuple(_sentences(**figures)))
    return facts


def _sentences(
    *, targets: Mapping[str, dict[str, int]], memories: int, blocked: int, vectors: int | None = None, **_: Any
) -> list[tuple[int, str]]:
    sentences = [
        (FULLNESS, f"{Target(name).label} {min(100, figures['used'] * 100 // figures['limit'])} % full.")
        for name, figures in targets.items()
        if figures["limit"] and figures["used"]
    ]
    if blocked:
        subject = counted(blocked, "memory is blocked and stays", "memories are blocked and stay")
        sentences.append((BLOCKED, f"{subject} out of answers."))
    missing = 0 if vectors is None else max(memories - blocked - vectors, 0)
    if missing:
        subject = "1 memory waits" if missing == 1 else f"{missing} of {memories} memories wait"
        sentences.append((VECTORS, f"{subject} for a vector of {settings.EMBEDDING_MODEL}."))
    return sentences
