"""How the sessions of a book stand towards a run: which may be read now, which rest until when, which are unchanged.
It says in words why a rebuild finds little or nothing, in the command's answer, the API, the page and the admin."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, Min, Q
from django.utils import timezone

from gateway.agents.configuration import consolidation_settings
from gateway.agents.settings import ConsolidationSettings
from memories.models import Book
from memories.number_words import counted
from memories.viewers import Viewer, zone_of
from reviews.consolidation.selection import NEWS, in_use, said_by_person, said_through, sessions_in
from reviews.models import Extraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Numbers of a book's sessions in which a person said something. `first_rested_at` is when the first of the
    resting ones may be read; `text` says it all in sentences, on the owner's clock. The API shows it as it is."""

    ready: int
    resting: int
    first_rested_at: datetime | None
    in_use: int
    unchanged: int
    given_up: int
    too_old: int
    text: str


def standing_of(book: Book, *, force: bool = False) -> Standing:
    """Return how the sessions stand now; with `force`, those whose reading failed are ready, too. Three queries."""
    limits, now = consolidation_settings(), timezone.now()
    rest = timedelta(hours=limits.min_rollout_idle_hours)
    idle, oldest = now - rest, now - timedelta(days=limits.max_rollout_age_days)
    rows = sessions_in(book).annotate(said_through=said_through(), busy=in_use()).filter(said_by_person())
    failed = Q(extraction__state=Extraction.State.FAILED)
    changed, given_up = (NEWS | failed, Q(pk=None)) if force else (NEWS, failed & ~NEWS)
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
    resting = found.pop("oldest_resting")
    first = resting + rest if resting else None
    return Standing(**found, first_rested_at=first, text=_text(book, limits, first, found))


def _text(book: Book, limits: ConsolidationSettings, first: datetime | None, found: dict[str, int]) -> str:
    hours, age = limits.min_rollout_idle_hours, counted(limits.max_rollout_age_days, "day")
    idle = f"for {hours:g} hour{'' if hours == 1 else 's'} after the last message"
    until = f"until {Viewer(book.owner, zone_of(book.owner)).minute(first)}" if first else ""
    words = {
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
        f"{counted(number, 'session')} {one if number == 1 else many}."
        for name, (one, many) in words.items()
        if (number := found[name])
    ]
    return " ".join(sentences) or "The book has no sessions to read."
