"""How the sessions of a book stand towards a run: which may be read now, which rest until when, which are unchanged.
It says in words why a rebuild finds little or nothing, in the command's answer, the API, the page and the admin."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Exists, F, Min, OuterRef, Q, Subquery
from django.utils import timezone

from gateway.agents.configuration import consolidation_settings
from gateway.agents.settings import ConsolidationSettings
from gateway.models import Run, Session
from memories.models import Book
from memories.viewers import Viewer, zone_of
from reviews.consolidation.selection import FLOOR, OPEN_RUNS, said_by_person, said_in
from reviews.models import Extraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Numbers of a book's sessions in which a person said something. `first_rested` is when the first of the resting
    ones may be read; `text` says it all in sentences, on the owner's clock."""

    ready: int
    resting: int
    first_rested: datetime | None
    in_use: int
    unchanged: int
    given_up: int
    too_old: int
    text: str

    def as_json(self) -> dict[str, Any]:
        """As the API shows it."""
        return {
            "ready": self.ready,
            "resting": self.resting,
            "first_rested_at": self.first_rested,
            "in_use": self.in_use,
            "unchanged": self.unchanged,
            "given_up": self.given_up,
            "too_old": self.too_old,
            "text": self.text,
        }


def standing_of(book: Book, *, force: bool = False) -> Standing:
    """Return how the sessions of a book stand now. `force`: for a run that takes those again whose reading failed.
    Three queries."""
    limits, now = consolidation_settings(), timezone.now()
    idle, oldest = _limits(limits, now)
    said = said_in(OuterRef("pk")).order_by("-seq").values("seq")[:1]
    busy = Run.objects.filter(session=OuterRef("pk"), state__in=OPEN_RUNS)
    rows = Session.objects.filter(owner_id=book.owner_id, agent__book=book.name, temporary=False)
    rows = rows.annotate(floor=FLOOR, said_through=Subquery(said), busy=Exists(busy)).filter(said_by_person())
    news = Q(extraction__isnull=True) | Q(extraction__through_seq__lt=F("said_through"))
    failed = Q(extraction__state=Extraction.State.FAILED)
    changed, given_up = (news | failed, Q(pk=None)) if force else (news, failed & ~news)
    recent, waiting = Q(last_active_at__gte=oldest), changed & Q(last_active_at__gt=idle)
    found = rows.aggregate(
        ready=Count("pk", filter=changed & recent & Q(busy=False, last_active_at__lte=idle)),
        resting=Count("pk", filter=waiting & Q(busy=False)),
        oldest_resting=Min("last_active_at", filter=waiting & Q(busy=False)),
        in_use=Count("pk", filter=changed & recent & Q(busy=True)),
        unchanged=Count("pk", filter=~changed & ~given_up),
        given_up=Count("pk", filter=given_up),
        too_old=Count("pk", filter=changed & ~recent),
    )
    first = found.pop("oldest_resting")
    first = first + timedelta(hours=limits.min_rollout_idle_hours) if first else None
    return Standing(**found, first_rested=first, text=_text(book, limits, first, found))


def _limits(limits: ConsolidationSettings, now: datetime) -> tuple[datetime, datetime]:
    """Sessions that were active after the first moment rest; those that were not since the second are too old."""
    return (
        now - timedelta(hours=limits.min_rollout_idle_hours),
        now - timedelta(days=limits.max_rollout_age_days),
    )


def _text(book: Book, limits: ConsolidationSettings, first: datetime | None, found: dict[str, int]) -> str:
    hours, days = limits.min_rollout_idle_hours, limits.max_rollout_age_days
    sentences = []
    if found["ready"]:
        sentences.append(f"{_sessions(found['ready'])} can be read now.")
    if found["resting"] and first:
        one = found["resting"] == 1
        until = Viewer(book.owner, zone_of(book.owner)).minute(first)
        idle = f"{hours:g} hour{'' if hours == 1 else 's'}"
        sentences.append(
            f"{_sessions(found['resting'])} {'rests' if one else 'rest'} for {idle} after the last message, "
            f"{'' if one else 'the first '}until {until}."
        )
    if found["in_use"]:
        sentences.append(f"{_sessions(found['in_use'])} {'is' if found['in_use'] == 1 else 'are'} in use.")
    if found["unchanged"]:
        one = found["unchanged"] == 1
        was = "is unchanged since it was read" if one else "are unchanged since they were read"
        sentences.append(f"{_sessions(found['unchanged'])} {was}.")
    if found["given_up"]:
        one = found["given_up"] == 1
        waits, left = ("waits", "it changes or a rebuild") if one else ("wait", "they change or a rebuild")
        sentences.append(f"{_sessions(found['given_up'])} could not be read and {waits} until {left} is forced.")
    if found["too_old"]:
        sentences.append(
            f"{_sessions(found['too_old'])} {'is' if found['too_old'] == 1 else 'are'} older than "
            f"{days} day{'' if days == 1 else 's'} and not read."
        )
    return " ".join(sentences) or "The book has no sessions to read."


def _sessions(number: int) -> str:
    return f"{number} session{'' if number == 1 else 's'}"
