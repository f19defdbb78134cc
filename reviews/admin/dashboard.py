"""The first page of the admin: how the last days went, and what needs a look. Numbers only, of all floors.
Each look is a stretch of keys: ids are UUIDv7, so rows since a moment are found without another index."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import Count, FloatField, Sum
from django.db.models.fields.json import KT
from django.db.models.functions import Cast, TruncDate
from django.http import HttpRequest
from django.utils import timezone
from django_q.models import OrmQ

from gateway.admin.operations import SILENT
from gateway.models import Run, Worker
from memories.admin.marks import ORIGINS
from memories.models import Revision
from reviews.models import ReviewRun

DAYS = 7
SHOWN = 5
# A run that is open this long is worth a look, long before its lease runs out.
SLOW = timedelta(minutes=1)
_HEIGHT = 96


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One day of turns: how many, how many of them failed, tokens; and the bar's measures in the picture."""

    day: date
    turns: int
    failed: int
    tokens: int
    x: int
    y: int
    height: int
    failed_y: int
    failed_height: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """A number with its word."""

    word: str
    number: int


def dashboard(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Fill the index page's context, for those who may see runs."""
    if not request.user.has_perm("gateway.view_run"):
        return context
    now = timezone.now()
    since = now - timedelta(days=DAYS - 1)
    days = turns_by_day(since, now)
    return context | {
        "title": "Daybook",
        "days": days,
        "turns_total": sum(day.turns for day in days),
        "failed_total": sum(day.failed for day in days),
        "tokens_total": sum(day.tokens for day in days),
        "reviews": reviews_by_state(since),
        "writes": writes_by_origin(since),
        "slow_runs": slow_runs(now),
        "workers": workers(now),
        "queued": None if settings.REDIS_URL else OrmQ.objects.count(),
    }


def turns_by_day(since: datetime, now: datetime) -> list[Bar]:
    """A bar for each day from `since` to `now`, in the current time zone."""
    first = timezone.localdate(since)
    rows = (
        Run.objects.filter(pk__gte=first_id(_midnight(first)), started_at__gte=_midnight(first))
        .annotate(day=TruncDate("started_at"))
        .values("day", "state")
        .annotate(number=Count("pk"), tokens=Sum(Cast(KT("usage__total_tokens"), FloatField())))
        .order_by("day")
    )
    turns: Counter[date] = Counter()
    failed: Counter[date] = Counter()
    tokens: Counter[date] = Counter()
    for row in rows:
        turns[row["day"]] += row["number"]
        tokens[row["day"]] += int(row["tokens"] or 0)
        failed[row["day"]] += row["number"] if row["state"] == Run.State.FAILED else 0
    dates = [first + timedelta(days=n) for n in range((timezone.localdate(now) - first).days + 1)]
    most = max(turns.values(), default=0) or 1
    return [_bar(place, day, turns[day], failed[day], tokens[day], most) for place, day in enumerate(dates)]


def reviews_by_state(since: datetime) -> list[Tally]:
    """Reviews since then by state, most first."""
    rows = ReviewRun.objects.filter(pk__gte=first_id(since)).values("state").annotate(number=Count("pk"))
    return _tallies(dict(ReviewRun.State.choices), rows.values_list("state", "number"))


def writes_by_origin(since: datetime) -> list[Tally]:
    """Revisions since then by who wrote, most first."""
    words = {origin: word for origin, (_, word) in ORIGINS.items()}
    rows = Revision.objects.filter(pk__gte=first_id(since)).values("write_origin").annotate(number=Count("pk"))
    return _tallies(words, rows.values_list("write_origin", "number"))


def slow_runs(now: datetime) -> Sequence[Run]:
    """The runs that have been open for longest, if that is long."""
    open_runs = Run.objects.filter(state=Run.State.RUNNING, started_at__lt=now - SLOW)
    return list(open_runs.select_related("session").order_by("started_at")[:SHOWN])


def workers(now: datetime) -> Tally:
    """How many workers have a heartbeat."""
    alive = Worker.objects.filter(beat_at__gt=now - SILENT).count()
    return Tally(word="worker" if alive == 1 else "workers", number=alive)


def first_id(moment: datetime) -> UUID:
    """The smallest UUIDv7 of that millisecond."""
    return UUID(int=(int(moment.timestamp() * 1000) << 80) | (7 << 76) | (2 << 62))


def _midnight(day: date) -> datetime:
    return timezone.make_aware(datetime.combine(day, datetime.min.time()))


def _tallies(words: dict[str, str], rows: Any) -> list[Tally]:
    counted = sorted(rows, key=lambda row: (-row[1], row[0]))
    return [Tally(word=words.get(name, name), number=number) for name, number in counted]


def _bar(place: int, day: date, turns: int, failed: int, tokens: int, most: int) -> Bar:
    height, failed_height = turns * _HEIGHT // most, failed * _HEIGHT // most
    return Bar(
        day=day,
        turns=turns,
        failed=failed,
        tokens=tokens,
        x=place * 40,
        y=_HEIGHT - height,
        height=height,
        failed_y=_HEIGHT - failed_height,
        failed_height=failed_height,
    )
