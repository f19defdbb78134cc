"""The present state: workers, the queue, and runs that have been open too long or whose lease expired. Open runs are
found by partial indexes, so finished runs are not read. `manage.py doctor` checks the rest: disk and upstreams."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import redis
from django.conf import settings
from django.db.models import QuerySet
from django.http import HttpRequest
from django_q.brokers import get_broker
from django_q.models import OrmQ
from django_q.signing import BadSignature, SignedPackage

from gateway.heartbeat import alive_workers
from gateway.models import Run
from memories.admin.columns import viewable_url
from memories.selectors import of_active_accounts
from reviews.models import ConsolidationRun, ReviewRun

MAX_SHOWN = 5
# Runs are listed long before their lease expires. A consolidation reads many sessions, one after the other.
SLOW = timedelta(minutes=1)
SLOW_CONSOLIDATION = timedelta(hours=1)
# A due review is started within seconds, unless no worker is free.
SLOW_START = timedelta(minutes=5)


def now_facts(request: HttpRequest, now: datetime) -> dict[str, Any]:
    """Return the present state: the number of `workers`, the `queue`, the runs that may be stuck as `open`, and whether
    there are `more` of these. Five queries, and those of the queue."""

    def lapsed_or(otherwise: str) -> Callable[[Any], str]:
        return lambda run: "its lease expired" if run.lease_expires_at and run.lease_expires_at < now else otherwise

    turns = Run.objects.filter(state=Run.State.RUNNING, started_at__lt=now - SLOW)
    reviews = ReviewRun.objects.filter(state=ReviewRun.State.RUNNING, started_at__lt=now - SLOW)
    waiting = ReviewRun.objects.filter(state=ReviewRun.State.SCHEDULED, not_before__lt=now - SLOW_START)
    waiting = waiting.filter(of_active_accounts())
    long = ConsolidationRun.objects.filter(state__in=ConsolidationRun.OPEN, created_at__lt=now - SLOW_CONSOLIDATION)
    long = long.filter(of_active_accounts())
    stuck = (
        _stuck_runs(request, turns, "Turn {0.turn} of {0.owner}", lapsed_or("open"), since="started_at"),
        _stuck_runs(request, reviews, "Review for {0.owner}", lapsed_or("running"), since="started_at"),
        _stuck_runs(request, waiting, "Review for {0.owner}", lambda _: "waits for a worker", since="not_before"),
        _stuck_runs(
            request,
            long,
            "Consolidation for {0.owner}",
            lambda run: run.get_state_display().lower(),
            since="created_at",
            order="not_before",
        ),
    )
    return {
        "workers": alive_workers().count(),
        "queue": queue_facts(now),
        "open": [run for runs in stuck for run in runs[:MAX_SHOWN]],
        "more": any(len(runs) > MAX_SHOWN for runs in stuck),
    }


def queue_facts(now: datetime) -> dict[str, Any]:
    """Return the `length` of the queue, and when its oldest waiting job was queued as `oldest`, for either broker. The
    length is None if the queue does not respond."""
    broker = get_broker()
    try:
        length = broker.queue_size() or 0
        oldest = _oldest_on_redis(broker) if settings.REDIS_URL else _oldest_in_the_database(broker, now)
    except redis.RedisError:
        return {"length": None}
    return {"length": length, "oldest": oldest}


def _oldest_in_the_database(broker: Any, now: datetime) -> datetime | None:
    # The lock of a waiting job is the time it was queued; that of a running job is when it would be delivered again.
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
        return None  # from another installation on the same Redis; our workers ignore it too
    return came if isinstance(came, datetime) else None


def _stuck_runs(
    request: HttpRequest, rows: "QuerySet[Any]", what: str, why: Callable[[Any], str], *, since: str, order: str = ""
) -> list[dict[str, Any]]:
    """Return the first of these runs; `link` is empty if the user may not open the run. `since` is the column with the
    start of their present state, `order` the column of their partial index if that is another one."""
    found = rows.select_related("owner__user").order_by(order or since)[: MAX_SHOWN + 1]
    return [
        {
            "what": what.format(run),
            "why": why(run),
            "since": getattr(run, since),
            "link": viewable_url(request, rows.model, "change", run.pk),
        }
        for run in found
    ]
