"""/metrics: the counters of this process (gateway.metrics), and figures about all processes from the database.

The database is queried at most every few seconds, and each query is bounded by a partial index or recent keys. Off
unless DAYBOOK_METRICS is set; public like /healthz, and without labels that identify anybody."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import redis
from django.conf import settings
from django.db import Error as DatabaseError
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django_q.brokers import get_broker
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from gateway import heartbeat
from gateway.api.errors import error_response
from gateway.metrics import registry
from gateway.models import Run
from memories.database.access import in_read_thread
from memories.errors import NotFound
from memories.ids import first_id
from memories.models import Revision, WriteOrigin
from reviews.models import ReviewRun

logger = logging.getLogger("daybook.metrics")
State = ReviewRun.State
WINDOW = timedelta(minutes=5)
MAX_ROWS = 10_000  # counted for one figure; larger figures are capped
CACHE_SECONDS = 5.0
DATABASE_SECONDS = 5.0
_OPEN = (State.SCHEDULED, State.RUNNING, State.AWAITING_APPROVAL)

_last: tuple[float, list[Metric]] | None = None


async def metrics(request: HttpRequest) -> HttpResponse:
    """Return the figures in Prometheus' text format; 404 while DAYBOOK_METRICS is off."""
    if not settings.METRICS:
        return error_response(NotFound("Metrics are off; DAYBOOK_METRICS=1 turns them on."), request.path_info)
    collected = _Collected(await _database_metrics())
    body = await in_read_thread(lambda: generate_latest(registry) + generate_latest(collected))
    return HttpResponse(body, content_type=CONTENT_TYPE_LATEST, headers={"Cache-Control": "no-store"})


async def _database_metrics() -> list[Metric]:
    global _last
    if _last is not None and time.monotonic() - _last[0] < CACHE_SECONDS:
        return _last[1]
    try:
        async with asyncio.timeout(DATABASE_SECONDS):
            found = await in_read_thread(lambda: [*database_metrics(), _gauge("database_up", "Whether it answers.", 1)])
    except (TimeoutError, DatabaseError):
        logger.warning("The database did not answer a scrape.", exc_info=True)
        found = [_gauge("database_up", "Whether it answers.", 0)]
    _last = (time.monotonic(), found)
    return found


def database_metrics() -> Iterator[Metric]:
    """Yield figures about all processes; each query is bounded. Synchronous. Raises DatabaseError."""
    try:
        yield _gauge("queue_length", "Jobs that wait in the queue.", get_broker().queue_size() or 0)
    except redis.RedisError:
        logger.warning("Redis did not answer a scrape; the length of the queue is left out.")
    yield _gauge("open_runs", "Turns that are being answered.", _count(Run.objects.filter(state=Run.State.RUNNING)))
    workers = heartbeat.alive_workers().count()
    yield _gauge("workers", "Worker commands with a recent heartbeat.", workers)
    open_reviews = {state.value: _count(ReviewRun.objects.filter(state=state)) for state in _OPEN}
    yield _labelled("open_reviews", "Reviews that are open or wait for approval.", "state", open_reviews)
    recent = list(_recent(ReviewRun, "state", "usage"))
    states = Counter(state for state, _ in recent)
    yield _labelled(
        "recent_reviews",
        "Reviews of the last five minutes, by state.",
        "state",
        {state.value: states[state.value] for state in State},
    )
    tokens = sum(int((usage or {}).get("total_tokens") or 0) for _, usage in recent)
    yield _gauge("recent_review_tokens", "Model tokens of these reviews.", tokens)
    origins = Counter(origin for (origin,) in _recent(Revision, "write_origin"))
    yield _labelled(
        "recent_memory_writes",
        "Changes of memories in the last five minutes, by origin.",
        "origin",
        {origin.value: origins[origin.value] for origin in WriteOrigin},
    )


def _recent(model: type[Model], *fields: str) -> Iterable[tuple[Any, ...]]:
    """Return fields of the rows created in the window, newest first, by their primary keys, which are UUIDv7."""
    first = first_id(timezone.now() - WINDOW)
    return model._default_manager.filter(pk__gte=first).order_by("-pk").values_list(*fields)[:MAX_ROWS]


def _count(rows: "QuerySet[Any]") -> int:
    return rows.order_by()[:MAX_ROWS].count()


def _gauge(name: str, description: str, value: float) -> Metric:
    return GaugeMetricFamily(f"daybook_{name}", description, value=value)


def _labelled(name: str, description: str, label: str, values: dict[str, int]) -> Metric:
    family = GaugeMetricFamily(f"daybook_{name}", description, labels=[label])
    for value, count in values.items():
        family.add_metric([value], count)
    return family


@dataclass(frozen=True, slots=True)
class _Collected(Collector):
    metrics: list[Metric]

    def collect(self) -> list[Metric]:
        return self.metrics
