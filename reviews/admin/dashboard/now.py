"""What goes on at this moment: workers, the queue, and runs that are open too long or whose lease ran out. Open runs
are found by partial indexes: finished ones are not looked at. `manage.py doctor` asks the rest, disk and upstreams."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import redis
from django.conf import settings
from django.contrib import admin
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django_q.brokers import get_broker
from django_q.models import OrmQ
from django_q.signing import BadSignature, SignedPackage

from gateway.admin.operations import HEARTBEAT_TIMEOUT
from gateway.models import Run, Worker
from reviews.models import ConsolidationRun, ReviewRun

SHOWN = 5
# Worth a look, long before a lease runs out. A consolidation reads many sessions, one after the other.
SLOW = timedelta(minutes=1)
SLOW_CONSOLIDATION = timedelta(hours=1)
# A scheduled review whose time has come is taken up within seconds, unless no worker is free.
WAITED = timedelta(minutes=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """A run that needs a look. `link` is empty for those who may not open it."""

    what: str
    why: str
    since: datetime | None
    link: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """How many jobs wait, and since when the oldest does. `length` is None where the queue does not answer."""

    length: int | None
    oldest: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NowFacts:
    """Everything of this moment; `more`: there are more open runs than are shown."""

    workers: int
    queue: Queue
    open: list[Open]
    more: bool


def now_facts(request: HttpRequest, now: datetime) -> NowFacts:
    """Return what is going on now. Five queries, and those of the queue."""

    def lapsed_or(otherwise: str) -> Callable[[Any], str]:
        return lambda run: "its lease ran out" if run.lease_expires_at and run.lease_expires_at < now else otherwise

    turns = Run.objects.filter(state=Run.State.RUNNING, started_at__lt=now - SLOW)
    reviews = ReviewRun.objects.filter(state=ReviewRun.State.RUNNING, started_at__lt=now - SLOW)
    waiting = ReviewRun.objects.filter(state=ReviewRun.State.SCHEDULED, not_before__lt=now - WAITED)
    long = ConsolidationRun.objects.filter(state__in=ConsolidationRun.OPEN, created_at__lt=now - SLOW_CONSOLIDATION)
    looks = (
        _look(request, turns, "Turn {0.turn} of {0.owner}", lapsed_or("open"), since="started_at"),
        _look(request, reviews, "Review for {0.owner}", lapsed_or("running"), since="started_at"),
        _look(request, waiting, "Review for {0.owner}", lambda _: "waits for a worker", since="not_before"),
        _look(request, long, "Consolidation for {0.owner}", _state_words, since="created_at", order="not_before"),
    )
    return NowFacts(
        workers=Worker.objects.filter(beat_at__gt=now - HEARTBEAT_TIMEOUT).count(),
        queue=queue_facts(now),
        open=[found for look in looks for found in look[:SHOWN]],
        more=any(len(look) > SHOWN for look in looks),
    )


def queue_facts(now: datetime) -> Queue:
    """Return the length and age of the queue, for either broker."""
    broker = get_broker()
    try:
        length = broker.queue_size() or 0
        oldest = _oldest_on_redis(broker) if settings.REDIS_URL else _oldest_in_the_database(broker, now)
    except redis.RedisError:
        return Queue(length=None)
    return Queue(length=length, oldest=oldest)


def _oldest_in_the_database(broker: Any, now: datetime) -> datetime | None:
    # A waiting job is locked until the moment it came; one at work until it would be given again.
    waiting = OrmQ.objects.filter(key=broker.list_key, lock__lte=now).order_by("lock")
    oldest: datetime | None = waiting.values_list("lock", flat=True).first()
    return oldest


def _oldest_on_redis(broker: Any) -> datetime | None:
    job = broker.connection.lindex(broker.list_key, 0)
    if job is None:
        return None
    try:
        came = SignedPackage.loads(job.decode()).get("started")
    except BadSignature:
        return None  # of another installation on the same Redis, which no worker of ours takes either
    return came if isinstance(came, datetime) else None


def _look(
    request: HttpRequest, rows: "QuerySet[Any]", what: str, why: Callable[[Any], str], *, since: str, order: str = ""
) -> list[Open]:
    """Return the first of these runs, which are as they are since the moment in that column. `order`: the column of
    their partial index, where it is another one."""
    found = rows.select_related("owner__user").order_by(order or since)[: SHOWN + 1]
    return [
        Open(what=what.format(run), why=why(run), since=getattr(run, since), link=_link(request, run)) for run in found
    ]


def _state_words(run: ConsolidationRun) -> str:
    return run.get_state_display().lower()


def _link(request: HttpRequest, row: Model) -> str:
    model = type(row)
    if not admin.site.is_registered(model) or not admin.site.get_model_admin(model).has_view_permission(request):
        return ""
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_change", args=[row.pk])
