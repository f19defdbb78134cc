"""The standing of a book's sessions: how many may be read now, how many are not idle for long enough, unchanged, and so
on. It explains in the command's answer, the API, the page and the admin why a rebuild finds little or nothing."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, Min, Q
from django.utils import timezone

from gateway.agents.configuration import consolidation_settings
from gateway.agents.settings import ConsolidationSettings
from memories.api.answers import Moment
from memories.models import Book
from memories.number_words import counted
from memories.viewers import Viewer, zone_of
from reviews.consolidation.selection import CHANGED, end_seq, has_user_message, in_use, rested, sessions_in
from reviews.models import Extraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How many of a book's sessions with user messages may be read, are resting, or are finished. `first_rested_at` is
    when the first of the resting ones may be read; `text` says it in sentences, in the owner's time zone."""

    ready: int
    resting: int
    first_rested_at: Moment | None
    in_use: int
    unchanged: int
    given_up: int
    too_old: int
    text: str


def standing_of(book: Book, *, force: bool = False) -> Standing:
    """Return the current standing; with `force`, sessions that could not be read are ready, too. Three queries."""
    limits, now = consolidation_settings(), timezone.now()
    rest = timedelta(hours=limits.min_rollout_idle_hours)
    idle, oldest = rested(limits, now), now - timedelta(days=limits.max_rollout_age_days)
    rows = sessions_in(book).annotate(end_seq=end_seq(), busy=in_use()).filter(has_user_message())
    failed = Q(extraction__state=Extraction.State.FAILED)
    changed, given_up = (CHANGED | failed, Q(pk=None)) if force else (CHANGED, failed & ~CHANGED)
    recent, waiting = Q(last_active_at__gte=oldest), changed & ~idle
    counts = rows.aggregate(
        ready=Count("pk", filter=changed & recent & idle & Q(busy=False)),
        resting=Count("pk", filter=waiting & Q(busy=False)),
        oldest_resting=Min("last_active_at", filter=waiting & Q(busy=False)),
        in_use=Count("pk", filter=changed & recent & Q(busy=True)),
        unchanged=Count("pk", filter=~changed & ~given_up),
        given_up=Count("pk", filter=given_up),
        too_old=Count("pk", filter=changed & ~recent),
    )
    resting = counts.pop("oldest_resting")
    first = resting + rest if resting else None
    return Standing(**counts, first_rested_at=first, text=_text(book, limits, first, counts))


def _text(book: Book, limits: ConsolidationSettings, first: datetime | None, counts: dict[str, int]) -> str:
    hours, age = limits.min_rollout_idle_hours, counted(limits.max_rollout_age_days, "day")
    idle = f"for {hours:g} hour{'' if hours == 1 else 's'} after the last message"
    until = f"until {Viewer(book.owner, zone_of(book.owner)).minute(first)}" if first else ""
    predicates = {
        "ready": ("can be read now", "can be read now"),
        "resting": (f"rests {idle}, {until}", f"rest {idle}, the first {until}"),
        "in_use": ("is in use", "are in use"),
        "unchanged": ("is unchanged since it was read", "are unchanged since they were read"),
        "given_up": (
            "could not be read and waits until it changes or a rebuild is forced",
            "could not be read and wait until they change or a rebuild is forced",
        ),
        "too_old": (f"is older than {age} and not read", f"are older than {age} and not read"),
    }
    sentences = [
        f"{counted(number, 'session')} {singular if number == 1 else plural}."
        for name, (singular, plural) in predicates.items()
        if (number := counts[name])
    ]
    return " ".join(sentences) or "The book has no sessions to read."
