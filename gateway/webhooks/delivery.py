"""The job that delivers webhooks. A sweep takes its lease and queues it, so only one runs at a time. It begins the next
delivery of each webhook that is due, AT_ONCE of them at most and OF_OWNER of one owner, and goes on with a webhook as
soon as its outcome is stored, whatever the others do. No transaction is open while something is sent.

A webhook stores the number of its last notification, so deliveries keep the order of the outbox: one that fails delays
the later ones. It is tried again after growing pauses for about a day; then the webhook is disabled. A job that dies
before it stores an outcome sends again, with the same `webhook-id`."""

import asyncio
import json
import logging
import random
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import aiohttp
from django.db.models import F, Q, QuerySet, Window
from django.db.models.functions import RowNumber
from django.utils import timezone

from gateway.jobs import enqueue, lease_extend, lease_release, lease_take, run_async
from gateway.models import Webhook
from gateway.webhooks.sending import SECONDS, Outcome, client, send
from gateway.webhooks.signing import secret_of, signed_headers
from memories.database.access import in_thread
from memories.messaging.outbox import current_number, notification_json
from memories.models import Notification

logger = logging.getLogger("daybook.webhooks")

TASK = "gateway.webhooks.delivery.deliver"
LEASE = "webhooks"
LEASE_SECONDS = 60.0
"""The lease of a job that is queued; one that works holds it for HELD_SECONDS each time."""
HELD_SECONDS = 20.0
JOB_SECONDS = 30.0
"""The time in which a job begins deliveries; the next sweep queues another."""
LOOK_SECONDS = 0.5
"""The longest time until a job looks again for what is due while deliveries are under way."""
AT_ONCE = 50
OF_OWNER = 5
"""Deliveries of one owner at once: a few people with slow webhooks leave places for the others."""
MOST_ATTEMPTS = 14
_FIRST_PAUSE, _LONGEST_PAUSE = timedelta(seconds=30), timedelta(hours=6)
_JITTER = 0.2
_GONE = "It answered 410: nothing more is wanted there."
_GIVEN_UP = f"{MOST_ATTEMPTS} deliveries failed, over about a day."
_UNSIGNED = "The signing key that made its secret is not known any more."


@dataclass(frozen=True, slots=True)
class _Delivery:
    """A notification for a webhook, ready to be sent."""

    webhook: Webhook
    seq: int
    body: bytes
    headers: dict[str, str]


def webhooks_sweep() -> None:
    """Queue the job if something is due and no job runs. Idempotent; safe in several workers."""
    if not _due(timezone.now()).exists():
        return
    if token := lease_take(LEASE, seconds=LEASE_SECONDS):
        enqueue(TASK, token)


def deliver(token: str) -> int:
    """Deliver what is due, for JOB_SECONDS. Return the number of successful deliveries."""
    lease = UUID(token)
    try:
        return run_async(_work(lease))
    finally:
        lease_release(LEASE, lease)


def message_id(webhook: Webhook, seq: int) -> str:
    """Return the `webhook-id` of a notification: the same in each attempt."""
    return f"msg_{webhook.pk.hex}_{seq}"


def pause_after(failures: int) -> timedelta:
    """Return the pause after this number of failed attempts, without the jitter."""
    doubled: timedelta = _FIRST_PAUSE * 2 ** (failures - 1)
    return min(doubled, _LONGEST_PAUSE)


def _due(now: datetime) -> "QuerySet[Webhook]":
    """Return the webhooks of active users that have something to deliver and may be tried now."""
    active = Q(owner__user__is_active=True) | Q(owner__parent__user__is_active=True)
    waited = Q(next_attempt_at=None) | Q(next_attempt_at__lte=now)
    rows = Webhook.objects.filter(active, waited, disabled_at__isnull=True)
    return rows.filter(owner__notification_seq__gt=F("delivered_seq"))


async def _work(lease: UUID) -> int:
    until, taken = time.monotonic() + JOB_SECONDS, 0
    under_way: dict[asyncio.Task[tuple[Outcome, float]], _Delivery] = {}
    took: dict[UUID, float] = {}  # the seconds of a webhook's last delivery
    async with client() as session, asyncio.TaskGroup() as group:
        while True:
            busy = {delivery.webhook.pk: delivery.webhook.owner_id for delivery in under_way.values()}
            found, ready = await in_thread(_ready, lease, busy, took, until - time.monotonic())
            under_way |= {group.create_task(_timed(session, delivery)): delivery for delivery in ready}
            if under_way:
                done, _ = await asyncio.wait(under_way, timeout=LOOK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    delivery, (outcome, took[delivery.webhook.pk]) = under_way.pop(task), task.result()
                    taken += await in_thread(_note, delivery, outcome)
            elif not found:
                return taken


def _ready(
    lease: UUID, busy: Mapping[UUID, UUID], took: dict[UUID, float], left: float
) -> tuple[list[Webhook], list[_Delivery]]:
    """Extend the lease, and return the webhooks to go on with and their deliveries: none if the lease is lost, or if
    the job has no seconds `left`. `busy` are the webhooks with a delivery under way, and their owners. A webhook that
    would probably outlast the job, by its last delivery, is left to the next one: the others would have to wait for
    it."""
    if not lease_extend(LEASE, lease, seconds=HELD_SECONDS) or left <= 0:
        return [], []
    now = timezone.now()
    slow = [pk for pk, seconds in took.items() if seconds > left]
    rows = _due(now).exclude(pk__in=[*busy, *slow])
    if left < SECONDS:
        rows = rows.filter(failures=0)
    room = {owner: OF_OWNER - taken for owner, taken in Counter(busy.values()).items()}
    longest_ago = F("attempted_at").asc(nulls_first=True)
    place = Window(RowNumber(), partition_by="owner", order_by=longest_ago)
    rows = rows.exclude(owner__in=[owner for owner, free in room.items() if free <= 0])
    firsts: QuerySet[Webhook] = rows.alias(place=place).filter(place__lte=OF_OWNER).order_by(longest_ago)
    found = [webhook for webhook in firsts[: AT_ONCE - len(busy)] if _takes_place(room, webhook.owner_id)]
    return found, [delivery for webhook in found if (delivery := _next(webhook, now))]


def _takes_place(room: dict[UUID, int], owner_id: UUID) -> bool:
    """Take one of the places that an owner has left. Return False if there is none."""
    room[owner_id] = room.get(owner_id, OF_OWNER) - 1
    return room[owner_id] >= 0


async def _timed(session: aiohttp.ClientSession, delivery: _Delivery) -> tuple[Outcome, float]:
    """Send a delivery. Return its outcome and the seconds that it took."""
    began = time.monotonic()
    return await send(session, delivery.webhook.url, delivery.body, delivery.headers), time.monotonic() - began


def _next(webhook: Webhook, now: datetime) -> _Delivery | None:
    """Return the next delivery of a webhook. Return None if it does not want any of the new notifications, which are
    then skipped, or if it cannot be signed."""
    newest = current_number(webhook.owner_id)  # read before the rows, so that nothing committed in between is skipped
    later = Notification.objects.filter(owner_id=webhook.owner_id, seq__gt=webhook.delivered_seq)
    row = later.filter(kind__in=webhook.kinds).order_by("seq").first()
    if row is None:
        _unchanged(webhook).update(delivered_seq=newest)
        return None
    secret = secret_of(webhook.pk, webhook.secret_sha256)
    if secret is None:
        _unchanged(webhook).update(disabled_at=now, note=_UNSIGNED)
        logger.warning("webhook %s is disabled: its secret was made with an older DAYBOOK_SECRET_KEY", webhook.pk)
        return None
    shown = notification_json(row)
    body = json.dumps({"type": row.kind, "timestamp": shown["created_at"], "data": shown}).encode()
    return _Delivery(webhook, row.seq, body, signed_headers(secret, message_id(webhook, row.seq), body, now))


def _note(delivery: _Delivery, outcome: Outcome) -> bool:
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
    if outcome.gone or failures >= MOST_ATTEMPTS:
        values |= {"disabled_at": now, "note": _GONE if outcome.gone else f"{_GIVEN_UP} {outcome.failure}"}
    _unchanged(webhook).update(**values)
    logger.info("webhook %s failed, attempt %s: %s", webhook.pk, failures, outcome.failure)
    return False


def _unchanged(webhook: Webhook) -> "QuerySet[Webhook]":
    """Return the row as a query set, empty if another job continued with it or somebody disabled it."""
    return Webhook.objects.filter(pk=webhook.pk, delivered_seq=webhook.delivered_seq, disabled_at__isnull=True)
