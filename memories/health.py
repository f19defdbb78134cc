"""The health of a book, in figures and in words a person understands: how full it is, what is blocked, and what the
floors above know of it (sessions that are covered, how the last review went), which they tell through a registry."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Count, Q, Sum
from django.db.models.functions import Length
from django.utils import timezone

from memories.caller import UNLIMITED, KeyLimits
from memories.models import Book, Memory, Target
from memories.services import book_limits

# Where a sentence stands in the line.
COVERAGE, FULLNESS, LAST_REVIEW, BLOCKED, WARNING = range(5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What one floor knows of a book: figures for programs, and sentences with their place in the line."""

    figures: Mapping[str, Any] = field(default_factory=dict)
    sentences: tuple[tuple[int, str], ...] = ()


FactsReader = Callable[[Book, datetime], Facts]
_readers: list[FactsReader] = []


def on_health(reader: FactsReader) -> None:
    """Register what another floor knows of a book; called from an AppConfig's ready()."""
    if reader not in _readers:
        _readers.append(reader)


def health_of_books(owner_id: UUID, *, limits: KeyLimits = UNLIMITED) -> list[dict[str, Any]]:
    """The health of each of the owner's books, by name."""
    now = timezone.now()
    books = limits.filter(Book.objects.filter(owner_id=owner_id), book="name")
    return [book_health(book, now) for book in books.order_by("name")]


def book_health(book: Book, now: datetime) -> dict[str, Any]:
    """One book: figures, and `text`, the line for people."""
    facts = [_own_facts(book, now), *(reader(book, now) for reader in _readers)]
    sentences = sorted((pair for known in facts for pair in known.sentences), key=lambda pair: pair[0])
    figures = {name: value for known in facts for name, value in known.figures.items()}
    return {"object": "book_health", "book": book.name, **figures, "text": " ".join(words for _, words in sentences)}


def ago(moment: datetime, now: datetime) -> str:
    """How long ago something was, in words."""
    minutes = int((now - moment).total_seconds() // 60)
    for size, unit in ((60 * 24, "day"), (60, "hour"), (1, "minute")):
        if minutes >= size:
            number = minutes // size
            return f"{number} {unit}{'' if number == 1 else 's'} ago"
    return "just now"


def _own_facts(book: Book, now: datetime) -> Facts:
    rows = Memory.objects.filter(owner_id=book.owner_id, book=book, deleted_at__isnull=True)
    used: dict[str, int] = {
        row["target"]: row["used"] for row in rows.values("target").annotate(used=Sum(Length("content")))
    }
    live = rows.filter(Q(expires_at__isnull=True) | Q(expires_at__gt=now)).aggregate(number=Count("pk"))
    blocked = sum(1 for memory in rows.exclude(scan_rule="") if memory.blocked)
    limits = book_limits(book.name)
    targets = {str(target): {"used": used.get(target, 0), "limit": limits[target]} for target in Target}
    sentences = [
        (FULLNESS, _fullness(Target(name), figures["used"], figures["limit"]))
        for name, figures in targets.items()
        if figures["limit"] and figures["used"]
    ]
    if blocked:
        subject = "1 memory is blocked and stays" if blocked == 1 else f"{blocked} memories are blocked and stay"
        sentences.append((BLOCKED, f"{subject} out of answers."))
    return Facts(
        figures={
            "targets": targets,
            "memories": live["number"],
            "blocked": blocked,
            "last_write_at": book.last_write_at,
        },
        sentences=tuple(sentences),
    )


def _fullness(target: Target, used: int, limit: int) -> str:
    return f"{target.label} {min(100, used * 100 // limit)} % full."
