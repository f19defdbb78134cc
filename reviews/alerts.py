"""Alerts to administrators, by mail or to one address: answers or reviews that fail in a row, quotas that are used up,
and writes that the scan refuses. They hold numbers and our own words only.

The worker looks once a minute, at stretches of primary keys and small tables, and tells of each kind once an hour at
most."""

import json
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import F, Q, Sum
from django.utils import timezone

from gateway.accounts.mails import mail_send
from gateway.jobs import enqueue, lease_take, run_async
from gateway.keys import valid_keys
from gateway.models import Alert, Run, UsageDay
from gateway.webhooks.sending import client, send
from gateway.webhooks.signing import signed_headers
from memories.clocks import long_ago
from memories.ids import first_id, uuid7
from memories.models import ScanDay
from memories.number_words import counted
from reviews.models import ReviewRun
from reviews.quotas import begin_of

logger = logging.getLogger("daybook.alerts")
TASK = "reviews.alerts.alert_send"
LOOK_SECONDS = 60.0
EVERY = timedelta(hours=1)
IN_A_ROW = 5
"""So many failures, and nothing that went well between them."""
BLOCKED = 10
"""So many refused writes since the last alert of the day."""
_MOST_KEYS = 1_000
_ENDED_REVIEWS = (
    ReviewRun.State.SAVED,
    ReviewRun.State.NOTHING_TO_SAVE,
    ReviewRun.State.AWAITING_APPROVAL,
    *ReviewRun.FAILED,
)


@dataclass(frozen=True, slots=True)
class Fact:
    """What administrators should know: its kind, a sentence, and the number in it."""

    kind: str
    said: str
    number: int


def alerts_sweep() -> None:
    """Look, and queue what is to be told. Idempotent; safe in several workers."""
    if not (settings.ALERTS_MAIL or settings.ALERTS_URL) or not lease_take("alerts", seconds=LOOK_SECONDS):
        return
    now = timezone.now()
    for look in _LOOKS:
        for fact in look(now):
            if _claim(fact, now):
                enqueue(TASK, fact.kind, fact.said)


def alert_send(kind: str, said: str) -> int:
    """Send an alert by mail and to the address, if they are configured; called as a job. Returns how many of them
    worked."""
    ways = 0
    if settings.ALERTS_MAIL:
        ways += mail_send(settings.ALERTS_MAIL, "Daybook needs your attention", "alert", said=said)
    if settings.ALERTS_URL:
        # `text` is what chat systems show of what is posted to them.
        now = timezone.now()
        body = json.dumps({"type": "alert", "kind": kind, "text": said, "timestamp": now.isoformat()}).encode()
        secret = settings.ALERTS_SECRET
        headers = signed_headers(secret, f"msg_alert_{uuid7().hex}", body, now) if secret else {}
        failure = run_async(_post(body, headers))
        if failure:
            logger.warning("An alert (%s) was not taken: %s", kind, failure)
        ways += not failure
    return ways


async def _post(body: bytes, headers: dict[str, str]) -> str:
    async with client() as session:
        return (await send(session, settings.ALERTS_URL, body, headers)).failure


def _claim(fact: Fact, now: datetime) -> bool:
    """Return True if this process is to tell it: it was not told within the last hour."""
    told = {"told_at": now, "number": fact.number}
    if Alert.objects.filter(long_ago("told_at", now, age=EVERY), kind=fact.kind).update(**told):
        return True
    try:
        with transaction.atomic():
            Alert(kind=fact.kind, **told).save(force_insert=True)
    except IntegrityError:
        return False
    return True


def _turns(now: datetime) -> Iterator[Fact]:
    ended = Run.objects.filter(pk__gte=first_id(now - EVERY), state__in=(Run.State.COMPLETED, Run.State.FAILED))
    newest = list(ended.order_by("-pk").values_list("state", "error")[:IN_A_ROW])
    if len(newest) == IN_A_ROW and all(state == Run.State.FAILED for state, _ in newest):
        codes = sorted({str((error or {}).get("code", "unknown")) for _, error in newest})
        said = f"The last {IN_A_ROW} answers failed ({', '.join(codes)}). Check the model servers."
        yield Fact("answers_failing", said, IN_A_ROW)


def _reviews(now: datetime) -> Iterator[Fact]:
    ended = ReviewRun.objects.filter(pk__gte=first_id(now - EVERY), state__in=_ENDED_REVIEWS)
    newest = list(ended.order_by("-pk").values_list("state", flat=True)[:IN_A_ROW])
    if len(newest) == IN_A_ROW and set(ReviewRun.FAILED).issuperset(newest):
        yield Fact(
            "reviews_failing", f"The last {IN_A_ROW} reviews failed. Nothing is remembered of conversations.", IN_A_ROW
        )


def _quotas(now: datetime) -> Iterator[Fact]:
    postponed = ReviewRun.objects.filter(state=ReviewRun.State.SCHEDULED, not_before__gt=now, error__code="daily_limit")
    owners = postponed.values("owner_id").distinct().count()
    if owners:
        people = counted(owners, "person", "people")
        yield Fact("reviews_quota", f"Reviews of {people} wait for tomorrow: the daily quota is used up.", owners)
    keys = _keys_used_up(now)
    if keys:
        said = counted(keys, "API key is", "API keys are")
        yield Fact("keys_quota", f"{said} refused until 00:00 UTC: what may be spent today is used up.", keys)


def _keys_used_up(now: datetime) -> int:
    today = now.astimezone(UTC).date()
    limited = valid_keys().filter(Q(tokens_per_day__gt=0) | Q(money_per_day__gt=0), last_used_at__gte=begin_of(today))
    limits = {key: given for key, *given in limited.values_list("pk", "tokens_per_day", "money_per_day")[:_MOST_KEYS]}
    days = UsageDay.objects.filter(key_id__in=list(limits), day=today).values("key_id")
    spent = days.annotate(tokens=Sum(F("input_tokens") + F("output_tokens")), money=Sum("cost"))
    taken = ((limits[row["key_id"]], (row["tokens"], row["money"])) for row in spent)
    return sum(any(most and took >= most for most, took in zip(*pair, strict=True)) for pair in taken)


def _blocked(now: datetime) -> Iterator[Fact]:
    today = now.astimezone(UTC).date()
    number = ScanDay.objects.filter(day=today).aggregate(sum=Sum("number"))["sum"] or 0
    told = Alert.objects.filter(kind="writes_blocked").first()
    before = told.number if told and told.told_at.astimezone(UTC).date() == today else 0
    if number - before >= BLOCKED:
        said = f"The scan refused {number - before} writes to memory. Someone may be attempting prompt injection."
        yield Fact("writes_blocked", said, number)


_LOOKS: tuple[Callable[[datetime], Iterator[Fact]], ...] = (_turns, _reviews, _quotas, _blocked)
