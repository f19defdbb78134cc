"""The job that delivers webhooks. A sweep takes its lease and queues it, so only one runs at a time. It starts the next
delivery of each webhook that is due, with at most MAX_AT_ONCE deliveries in total and MAX_PER_OWNER of one owner, and
continues with a webhook as soon as its outcome is stored. No transaction is open while something is sent.

A webhook stores the number of its last notification, so deliveries keep the order of the outbox: a failed one delays
the later ones. It is retried with growing pauses for about a day; then the webhook is disabled. If a job dies before it
stores an outcome, the notification is sent again with the same `webhook-id`."""

import asyncio
import json
import logging
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import aiohttp
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from gateway.jobs import enqueue, lease_extend, lease_release, lease_take, run_async
from gateway.models import Webhook
from gateway.webhooks.sending import SECONDS, DeliveryOutcome, client, send
from gateway.webhooks.signing import secret_of, signed_headers
from memories.clocks import lease_over
from memories.database.access import in_thread
from memories.messaging.outbox import notification_json
from memories.models import Notification
from memories.open_counts import OpenCounts
from memories.selectors import of_active_accounts

logger = logging.getLogger("daybook.webhooks")

TASK = "gateway.webhooks.delivery.deliver"
LEASE = "webhooks"
LEASE_SECONDS = 60.0
"""The lease of a queued job; a running job renews it for RENEWED_SECONDS each time."""
RENEWED_SECONDS = 20.0
JOB_SECONDS = 30.0
"""The time in which a job starts deliveries; the next sweep queues another job."""
POLL_SECONDS = 0.5
"""The maximum time between two queries for due webhooks while deliveries are under way."""
MAX_AT_ONCE = 50
MAX_PER_OWNER = 5
"""Concurrent deliveries of one owner, so that a few people with slow webhooks do not take all slots."""
MAX_ATTEMPTS = 14
_FIRST_PAUSE, _MAX_PAUSE = timedelta(seconds=30), timedelta(hours=6)
_JITTER = 0.2
_GONE = "It answered 410: it accepts no more deliveries."
_GIVEN_UP = f"{MAX_ATTEMPTS} deliveries failed, over about a day."
_UNSIGNED = "The signing key of its secret is no longer known."


@dataclass(frozen=True, slots=True)
class _Delivery:
    """A notification for a webhook, ready to be sent."""

    webhook: Webhook
    seq: int
    body: bytes
    headers: dict[str, str]


def webhooks_sweep() -> None:
    """Queue the job if a webhook is due and no job runs. Idempotent; safe in several workers."""
    if not _due(timezone.now()).exists():
        return
    if token := lease_take(LEASE, seconds=LEASE_SECONDS):
        enqueue(TASK, token)


def deliver(token: str) -> int:
    """Deliver due webhooks for JOB_SECONDS. Return the number of successful deliveries."""
    lease = UUID(token)
    try:
        return run_async(_work(lease))
    finally:
        lease_release(LEASE, lease)


def message_id(webhook: Webhook, seq: int) -> str:
    """Return the `webhook-id` of a notification, which is the same in each attempt."""
    return f"msg_{webhook.pk.hex}_{seq}"


def pause_after(failures: int) -> timedelta:
    """Return the pause after this number of failed attempts, without jitter."""
    doubled: timedelta = _FIRST_PAUSE * 2 ** (failures - 1)
    return min(doubled, _MAX_PAUSE)


def _due(now: datetime) -> "QuerySet[Webhook]":
    """Return the webhooks of active users with pending notifications whose next attempt is due."""
    waited = Q(next_attempt_at=None) | lease_over("next_attempt_at", now, lease=_MAX_PAUSE)
    rows = Webhook.objects.filter(of_active_accounts(), waited, disabled_at__isnull=True)
    return rows.filter(owner__notification_seq__gt=F("delivered_seq"))


async def _work(lease: UUID) -> int:
    until, delivered = time.monotonic() + JOB_SECONDS, 0
    under_way: dict[asyncio.Task[tuple[DeliveryOutcome, float]], _Delivery] = {}
    durations: dict[UUID, float] = {}  # seconds of each webhook's last delivery
    async with client() as session, asyncio.TaskGroup() as group:
        while True:
            busy = {delivery.webhook.pk: delivery.webhook.owner_id for delivery in under_way.values()}
            found, ready = await in_thread(_ready, lease, busy, durations, until - time.monotonic())
            under_way |= {group.create_task(_timed(session, delivery)): delivery for delivery in ready}
            if under_way:
                done, _ = await asyncio.wait(under_way, timeout=POLL_SECONDS, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    delivery, (outcome, durations[delivery.webhook.pk]) = under_way.pop(task), task.result()
                    delivered += await in_thread(_store_outcome, delivery, outcome)
            elif not found:
                return delivered


def _ready(
    lease: UUID, busy: Mapping[UUID, UUID], durations: dict[UUID, float], left: float
) -> tuple[list[Webhook], list[_Delivery]]:
    """Extend the lease, and return the next webhooks and their deliveries; none if the lease is lost or the job has no
    seconds `left`. `busy` are the owners of the webhooks with a delivery under way. A webhook whose last delivery took
    longer than the remaining time is left to the next job, since the others would have to wait for it."""
    if not lease_extend(LEASE, lease, seconds=RENEWED_SECONDS) or left <= 0:
        return [], []
    now = timezone.now()
    slow = [pk for pk, seconds in durations.items() if seconds > left]
    rows = _due(now).exclude(pk__in=[*busy, *slow])
    if left < SECONDS:
        rows = rows.filter(failures=0)
    taken = OpenCounts(busy.values())
    full = [owner for owner, count in taken.items() if count >= MAX_PER_OWNER]
    rows = rows.exclude(owner__in=full).select_related("owner")
    # More than are taken, since an owner may have more webhooks than slots.
    oldest = rows.order_by(F("attempted_at").asc(nulls_first=True))[: 2 * MAX_AT_ONCE]
    free = MAX_AT_ONCE - len(busy)
    found = [webhook for webhook in oldest if taken.enter(webhook.owner_id, limit=MAX_PER_OWNER)][:free]
    return found, [delivery for webhook in found if (delivery := _next(webhook, now))]


async def _timed(session: aiohttp.ClientSession, delivery: _Delivery) -> tuple[DeliveryOutcome, float]:
    """Send a delivery. Return its outcome and its duration in seconds."""
    began = time.monotonic()
    return await send(session, delivery.webhook.url, delivery.body, delivery.headers), time.monotonic() - began


def _next(webhook: Webhook, now: datetime) -> _Delivery | None:
    """Return the next delivery of a webhook. Return None if it subscribes to none of the new notifications, which are
    then skipped, or if it cannot be signed."""
    later = Notification.objects.filter(owner_id=webhook.owner_id, seq__gt=webhook.delivered_seq)
    row = later.filter(kind__in=webhook.kinds).order_by("seq").first()
    if row is None:
        # The number was read before the rows, so that nothing committed in between is skipped.
        _unchanged(webhook).update(delivered_seq=webhook.owner.notification_seq)
        return None
    secret = secret_of(webhook.pk, webhook.secret_sha256)
    if secret is None:
        _unchanged(webhook).update(disabled_at=now, note=_UNSIGNED)
        logger.warning("webhook %s is disabled: its secret was made with an older DAYBOOK_SECRET_KEY", webhook.pk)
        return None
    shown = notification_json(row)
    body = json.dumps({"type": row.kind, "timestamp": shown["created_at"], "data": shown}).encode()
    return _Delivery(webhook, row.seq, body, signed_headers(secret, message_id(webhook, row.seq), body, now))


def _store_outcome(delivery: _Delivery, outcome: DeliveryOutcome) -> bool:
    """Store the outcome of a delivery. Return True if it was successful."""
    now, webhook = timezone.now(), delivery.webhook
    if not outcome.failure:
        _unchanged(webhook).update(
            delivered_seq=delivery.seq, failures=0, failure="", next_attempt_at=None, attempted_at=now, delivered_at=now
        )
        return True
    failures = webhook.failures + 1
    jitter = random.uniform(1 - _JITTER, 1 + _JITTER)  # noqa: S311 - no secret
    values: dict[str, Any] = {
        "failures": failures,
        "failure": outcome.failure,
        "attempted_at": now,
        "failed_at": now,
        "next_attempt_at": now + max(pause_after(failures) * jitter, timedelta(seconds=outcome.wait)),
    }
    if outcome.gone or failures >= MAX_ATTEMPTS:
        values |= {"disabled_at": now, "note": _GONE if outcome.gone else f"{_GIVEN_UP} {outcome.failure}"}
    _unchanged(webhook).update(**values)
    logger.info("webhook %s failed, attempt %s: %s", webhook.pk, failures, outcome.failure)
    return False


def _unchanged(webhook: Webhook) -> "QuerySet[Webhook]":
    """Return a queryset of the row, which is empty if another job has advanced it or somebody disabled it."""
    return Webhook.objects.filter(pk=webhook.pk, delivered_seq=webhook.delivered_seq, disabled_at__isnull=True)
