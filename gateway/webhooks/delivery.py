"""The job that delivers webhooks. A sweep takes its lease and queues it; one job at a time goes through what is due, in
rounds: it reads what is next of each webhook, sends all of it at once with no transaction open, and notes what became
of it.

A webhook keeps the number of the last notification that it dealt with, so its deliveries keep the order of the outbox:
one that fails holds up the later ones. It is tried again after growing pauses for about a day; then the webhook is
disabled. A job that dies between sending and noting sends again, under the same `webhook-id`."""

import asyncio
import json
import logging
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import F, Q, QuerySet
from django.utils import timezone

from gateway.jobs import enqueue, lease_extend, lease_release, lease_take, run_async
from gateway.models import Webhook
from gateway.webhooks.sending import Outcome, client, send
from gateway.webhooks.signing import secret_of, signed_headers
from memories.models import Notification
from memories.outbox import current_number, notification_json

logger = logging.getLogger("daybook.webhooks")

TASK = "gateway.webhooks.delivery.deliver"
LEASE = "webhooks"
LEASE_SECONDS = 60.0
JOB_SECONDS = 30.0
"""How long a job goes on; the next sweep queues another."""
AT_ONCE = 50
MOST_ATTEMPTS = 14
_FIRST_PAUSE, _LONGEST_PAUSE = timedelta(seconds=30), timedelta(hours=6)
_JITTER = 0.2
_GONE = "It answered 410: nothing more is wanted there."
_GIVEN_UP = f"{MOST_ATTEMPTS} deliveries failed, over about a day."
_UNSIGNED = "The signing key that made its secret is not known any more."


@dataclass(frozen=True, slots=True)
class _Delivery:
    """A notification that is sent to a webhook."""

    webhook: Webhook
    seq: int
    body: bytes
    headers: dict[str, str]


def webhooks_sweep() -> None:
    """Queue the job where something is due and none is under way. Idempotent; safe in several workers."""
    if not _due(timezone.now()).exists():
        return
    if token := lease_take(LEASE, seconds=LEASE_SECONDS):
        enqueue(TASK, token)


def deliver(token: str) -> int:
    """Deliver what is due, for JOB_SECONDS at most. Returns how many deliveries were taken."""
    lease, until, taken = UUID(token), time.monotonic() + JOB_SECONDS, 0
    try:
        while time.monotonic() < until and lease_extend(LEASE, lease, seconds=LEASE_SECONDS):
            now = timezone.now()
            found = list(_due(now).order_by(F("attempted_at").asc(nulls_first=True))[:AT_ONCE])
            if not found:
                break
            deliveries = [delivery for webhook in found if (delivery := _next(webhook, now))]
            outcomes = run_async(_send_all(deliveries)) if deliveries else []
            for delivery, outcome in zip(deliveries, outcomes, strict=True):
                taken += _note(delivery, outcome)
    finally:
        lease_release(LEASE, lease)
    return taken


def message_id(webhook: Webhook, seq: int) -> str:
    """Return the `webhook-id` of a notification: the same in each attempt."""
    return f"msg_{webhook.pk.hex}_{seq}"


def pause_after(failures: int) -> timedelta:
    """Return how long to wait after so many failed attempts, before the jitter."""
    doubled: timedelta = _FIRST_PAUSE * 2 ** (failures - 1)
    return min(doubled, _LONGEST_PAUSE)


def _due(now: datetime) -> "QuerySet[Webhook]":
    """Webhooks that have something to deliver and may be tried now, of people who may still sign in."""
    active = Q(owner__user__is_active=True) | Q(owner__parent__user__is_active=True)
    waited = Q(next_attempt_at=None) | Q(next_attempt_at__lte=now)
    rows = Webhook.objects.filter(active, waited, disabled_at__isnull=True)
    return rows.filter(owner__notification_seq__gt=F("delivered_seq"))


def _next(webhook: Webhook, now: datetime) -> _Delivery | None:
    """Return what is next for a webhook. None where it wants nothing of what has come, which is passed over, and where
    it cannot be signed."""
    newest = current_number(webhook.owner_id)  # before the rows: what is committed in between comes next time
    later = Notification.objects.filter(owner_id=webhook.owner_id, seq__gt=webhook.delivered_seq)
    row = later.filter(kind__in=webhook.kinds).order_by("seq").first()
    if row is None:
        _same(webhook).update(delivered_seq=newest)
        return None
    secret = secret_of(webhook.pk, webhook.secret_sha256)
    if secret is None:
        _same(webhook).update(disabled_at=now, note=_UNSIGNED)
        return None
    shown = notification_json(row)
    body = json.dumps({"type": row.kind, "timestamp": shown["created_at"], "data": shown}).encode()
    return _Delivery(webhook, row.seq, body, signed_headers(secret, message_id(webhook, row.seq), body, now))


async def _send_all(deliveries: Sequence[_Delivery]) -> list[Outcome]:
    async with client() as session:
        return await asyncio.gather(*(send(session, one.webhook.url, one.body, one.headers) for one in deliveries))


def _note(delivery: _Delivery, outcome: Outcome) -> bool:
    """Store what became of a delivery; True if it was taken."""
    now, webhook = timezone.now(), delivery.webhook
    if not outcome.failure:
        _same(webhook).update(
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
        "next_attempt_at": now + pause_after(failures) * jitter,
    }
    if outcome.gone or failures >= MOST_ATTEMPTS:
        values |= {"disabled_at": now, "note": _GONE if outcome.gone else f"{_GIVEN_UP} {outcome.failure}"}
    _same(webhook).update(**values)
    logger.info("webhook %s failed, attempt %s: %s", webhook.pk, failures, outcome.failure)
    return False


def _same(webhook: Webhook) -> "QuerySet[Webhook]":
    """The row, unless another job has gone on with it, or somebody disabled it."""
    return Webhook.objects.filter(pk=webhook.pk, delivered_seq=webhook.delivered_seq, disabled_at__isnull=True)
