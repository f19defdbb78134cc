"""Alerts to administrators, by mail or webhook: consecutive failures of turns or reviews, exhausted quotas, and writes
refused by the scan. An alert contains numbers and fixed sentences only, never personal text.

The worker checks once a minute, by primary key ranges and small tables, and sends each kind of alert at most once an
hour."""

import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import F, Q, Sum
from django.utils import timezone

from gateway.accounts.mails import Outcome, mail_try
from gateway.jobs import enqueue_again, enqueue_kept, lease_take, run_async
from gateway.keys import valid_keys
from gateway.models import Alert, Run, UsageDay
from gateway.webhooks.sending import DeliveryOutcome, client, send
from gateway.webhooks.signing import signed_headers
from memories.clocks import long_ago
from memories.ids import recent_ids, uuid7
from memories.models import ScanDay
from memories.number_words import counted
from reviews.models import ReviewRun
from reviews.quotas import day_start

logger = logging.getLogger("daybook.alerts")
TASK = "reviews.alerts.alert_send"
CHECK_SECONDS = 60.0
MIN_INTERVAL = timedelta(hours=1)
CONSECUTIVE_FAILURES = 5
BLOCKED_WRITES = 10
"""How many refused writes since the day's last alert cause another one."""
_MAX_KEYS = 1_000
_ENDED_REVIEWS = (
    ReviewRun.State.SAVED,
    ReviewRun.State.NOTHING_TO_SAVE,
    ReviewRun.State.AWAITING_APPROVAL,
    *ReviewRun.FAILED,
)


@dataclass(frozen=True, slots=True)
class Problem:
    """A condition that administrators should know about: its kind, a sentence, and the number in that sentence."""

    kind: str
    text: str
    number: int


def alerts_sweep() -> None:
    """Run all checks and queue the alerts that are due. Idempotent; safe in several workers."""
    if not (settings.ALERTS_MAIL or settings.ALERTS_URL) or not lease_take("alerts", seconds=CHECK_SECONDS):
        return
    now = timezone.now()
    for check in _CHECKS:
        for problem in check(now):
            if _claim(problem, now):
                enqueue_kept(TASK, problem.kind, problem.text)


def alert_send(kind: str, text: str, left: str = "", attempt: str = "0") -> int:
    """Job: send an alert by mail and to the webhook, where configured, and return the number of successful deliveries.
    Those that may succeed later are repeated: `left` names them (`_recipients`)."""
    recipients = left.split(",") if left else _recipients()
    outcomes = {recipient: _deliver(recipient, kind, text) for recipient in recipients}
    if later := [recipient for recipient, outcome in outcomes.items() if outcome is Outcome.LATER]:
        enqueue_again(TASK, kind, text, ",".join(later), attempt=attempt)
    return list(outcomes.values()).count(Outcome.SENT)


def _recipients() -> list[str]:
    """Return a name for each recipient, since the queue contains no addresses: the number of a mail address, or the id
    of the message that is posted, which stays the same in all attempts."""
    mails = [str(number) for number in range(len(settings.ALERTS_MAIL))]
    return [*mails, f"msg_alert_{uuid7().hex}"] if settings.ALERTS_URL else mails


def _deliver(recipient: str, kind: str, text: str) -> Outcome:
    if not recipient.isdecimal():
        return _post(recipient, kind, text) if settings.ALERTS_URL else Outcome.REFUSED
    if int(recipient) >= len(settings.ALERTS_MAIL):  # removed since the first attempt
        return Outcome.REFUSED
    return mail_try(settings.ALERTS_MAIL[int(recipient)], "Daybook needs your attention", "alert", said=text)


def _post(message_id: str, kind: str, text: str) -> Outcome:
    now = timezone.now()
    # Chat systems display the field `text`.
    body = json.dumps({"type": "alert", "kind": kind, "text": text, "timestamp": now.isoformat()}).encode()
    secret = settings.ALERTS_SECRET
    outcome = run_async(_request(body, signed_headers(secret, message_id, body, now) if secret else {}))
    if not outcome.failure:
        return Outcome.SENT
    logger.warning("An alert (%s) was not delivered: %s", kind, outcome.failure)
    return Outcome.REFUSED if outcome.gone else Outcome.LATER


async def _request(body: bytes, headers: dict[str, str]) -> DeliveryOutcome:
    async with client() as session:
        return await send(session, settings.ALERTS_URL, body, headers)


def _claim(problem: Problem, now: datetime) -> bool:
    """Return True if this process should send the alert, because none of its kind was sent within the last hour."""
    values = {"told_at": now, "number": problem.number}
    if Alert.objects.filter(long_ago("told_at", now, age=MIN_INTERVAL), kind=problem.kind).update(**values):
        return True
    try:
        with transaction.atomic():
            Alert(kind=problem.kind, **values).save(force_insert=True)
    except IntegrityError:
        return False
    return True


def _check_turns(now: datetime) -> Iterator[Problem]:
    runs = Run.objects.filter(pk__range=recent_ids(now, MIN_INTERVAL))
    ended = runs.filter(state__in=(Run.State.COMPLETED, Run.State.FAILED))
    newest = list(ended.order_by("-pk").values_list("state", "error")[:CONSECUTIVE_FAILURES])
    if len(newest) == CONSECUTIVE_FAILURES and all(state == Run.State.FAILED for state, _ in newest):
        codes = sorted({str((error or {}).get("code", "unknown")) for _, error in newest})
        text = f"The last {CONSECUTIVE_FAILURES} answers failed ({', '.join(codes)}). Check the model servers."
        yield Problem("answers_failing", text, CONSECUTIVE_FAILURES)


def _check_reviews(now: datetime) -> Iterator[Problem]:
    ended = ReviewRun.objects.filter(pk__range=recent_ids(now, MIN_INTERVAL), state__in=_ENDED_REVIEWS)
    newest = list(ended.order_by("-pk").values_list("state", flat=True)[:CONSECUTIVE_FAILURES])
    if len(newest) == CONSECUTIVE_FAILURES and set(ReviewRun.FAILED).issuperset(newest):
        text = f"The last {CONSECUTIVE_FAILURES} reviews failed. Nothing from conversations is being saved."
        yield Problem("reviews_failing", text, CONSECUTIVE_FAILURES)


def _check_quotas(now: datetime) -> Iterator[Problem]:
    postponed = ReviewRun.objects.filter(state=ReviewRun.State.SCHEDULED, not_before__gt=now, error__code="daily_limit")
    owners = postponed.values("owner_id").distinct().count()
    if owners:
        people = counted(owners, "person", "people")
        yield Problem("reviews_quota", f"Reviews of {people} wait for tomorrow: the daily quota is used up.", owners)
    keys = _exhausted_keys(now)
    if keys:
        subject = counted(keys, "API key is", "API keys are")
        yield Problem("keys_quota", f"{subject} refused until 00:00 UTC: the daily limit is used up.", keys)


def _exhausted_keys(now: datetime) -> int:
    """Return how many API keys have spent their tokens or money of the day."""
    today = now.astimezone(UTC).date()
    limited = valid_keys().filter(Q(tokens_per_day__gt=0) | Q(money_per_day__gt=0), last_used_at__gte=day_start(today))
    limits = {key: both for key, *both in limited.values_list("pk", "tokens_per_day", "money_per_day")[:_MAX_KEYS]}
    days = UsageDay.objects.filter(key_id__in=list(limits), day=today).values("key_id")
    usage = days.annotate(tokens=Sum(F("input_tokens") + F("output_tokens")), money=Sum("cost"))
    pairs = (zip(limits[row["key_id"]], (row["tokens"], row["money"]), strict=True) for row in usage)
    return sum(any(limit and spent >= limit for limit, spent in pair) for pair in pairs)


def _check_blocked(now: datetime) -> Iterator[Problem]:
    today = now.astimezone(UTC).date()
    number = ScanDay.objects.filter(day=today).aggregate(sum=Sum("number"))["sum"] or 0
    last = Alert.objects.filter(kind="writes_blocked").first()
    before = last.number if last and last.told_at.astimezone(UTC).date() == today else 0
    if number - before >= BLOCKED_WRITES:
        text = f"The scan refused {number - before} writes to memory. Someone may be attempting prompt injection."
        yield Problem("writes_blocked", text, number)


_CHECKS = (_check_turns, _check_reviews, _check_quotas, _check_blocked)
