"""Alerts to administrators: when they are sent, how often, how, and that they contain no text of users"""

import base64
import json
import smtplib
from collections.abc import Generator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.core import mail
from django.utils import timezone
from django_q.models import Schedule
from standardwebhooks import Webhook as StandardWebhook

from config.processes.worker import SWEEPS
from gateway.models import Alert, ApiKey, Run, Session, UsageDay
from memories.ids import uuid7_after
from memories.models import Lease, Owner, ScanDay
from memories.services import book_get_or_create
from reviews import alerts
from reviews.alerts import BLOCKED_WRITES, CONSECUTIVE_FAILURES, alert_send, alerts_sweep
from tests.factories import key_make, review_make
from tests.gateway.receivers import Receiver
from tests.gateway.test_mails import queued_later
from tests.gateway.test_password_reset import SERVER

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def queued(settings: Any, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    settings.MAIL, settings.ALERTS_MAIL = SERVER, ["root@example.org"]
    found: list[tuple[str, str]] = []
    monkeypatch.setattr(alerts, "enqueue_kept", lambda task, kind, text: found.append((kind, text)))
    return found


def check() -> None:
    """Run the sweep as if the last check were long ago."""
    Lease.objects.all().delete()
    alerts_sweep()


def add_turns(session: Session, *states: str) -> None:
    for state in states:
        turn = Run.objects.count() + 1
        error = {"code": "upstream_error", "message": "Alice's words"} if state == "failed" else None
        Run.objects.create(
            owner=session.owner, session=session, turn=turn, state=state, error=error, request_id=f"r{turn}"
        )


def add_reviews(session: Session, *states: str, **fields: Any) -> None:
    book = book_get_or_create(session.owner.pk, "main")
    for state in states:
        review_make(book, state, session=session, **fields)


def test_consecutive_failed_answers_are_reported_once_an_hour(session: Session, queued: list[tuple[str, str]]) -> None:
    add_turns(session, *["failed"] * (CONSECUTIVE_FAILURES - 1))
    check()
    assert queued == []
    add_turns(session, "failed")
    check()
    check()
    assert queued == [("answers_failing", "The last 5 answers failed (upstream_error). Check the model servers.")]
    for minutes, expected in ((59, 1), (61, 2)):
        Alert.objects.update(told_at=timezone.now() - timedelta(minutes=minutes))
        check()
        assert len(queued) == expected


def test_a_successful_answer_resets_the_count(session: Session, queued: list[tuple[str, str]]) -> None:
    add_turns(session, *["failed"] * CONSECUTIVE_FAILURES, "completed")
    check()
    assert queued == []


def test_consecutive_failed_reviews_are_reported(session: Session, queued: list[tuple[str, str]]) -> None:
    add_reviews(session, "saved", *["failed", "timed_out", "failed", "failed"])
    check()
    assert queued == []
    add_reviews(session, "failed")
    check()
    assert queued == [("reviews_failing", "The last 5 reviews failed. Nothing from conversations is being saved.")]


def test_people_who_used_up_their_daily_review_quota_are_counted(
    session: Session, queued: list[tuple[str, str]]
) -> None:
    tomorrow = timezone.now() + timedelta(hours=3)
    add_reviews(session, "scheduled", "scheduled", not_before=tomorrow, error={"code": "daily_limit", "message": "m"})
    add_reviews(session, "scheduled", not_before=tomorrow)
    check()
    text = "Reviews of 1 person wait for tomorrow: the daily quota is used up."
    assert queued == [("reviews_quota", text)]


def test_keys_that_used_up_their_daily_limit_are_reported(alice: Owner, queued: list[tuple[str, str]]) -> None:
    day = timezone.now().date()
    for limit, spent in ((100, 100), (100, 99), (0, 10_000)):
        key, _ = key_make(alice, tokens_per_day=limit)
        ApiKey.objects.filter(pk=key.pk).update(last_used_at=timezone.now())
        UsageDay.objects.create(owner=alice, day=day, key_id=key.pk, input_tokens=spent - 9, output_tokens=9)
    check()
    text = "1 API key is refused until 00:00 UTC: the daily limit is used up."
    assert queued == [("keys_quota", text)]


def test_refused_writes_are_reported_again_only_for_new_ones(queued: list[tuple[str, str]]) -> None:
    noon = datetime(2030, 1, 1, 12, tzinfo=UTC)
    row = ScanDay.objects.create(day=noon.date(), rule="instruction_override", kind="injection", number=4)
    with time_machine.travel(noon):
        check()
        assert queued == []
        ScanDay.objects.filter(pk=row.pk).update(number=BLOCKED_WRITES + 2)
        check()
    assert [kind for kind, _ in queued] == ["writes_blocked"]
    assert "refused 12 writes" in queued[0][1]
    with time_machine.travel(noon + timedelta(hours=2)):
        check()
        assert len(queued) == 1, "there are no new ones"
        ScanDay.objects.filter(pk=row.pk).update(number=2 * BLOCKED_WRITES + 2)
        check()
        assert "refused 10 writes" in queued[1][1]


def test_several_workers_check_once_a_minute(session: Session, queued: list[tuple[str, str]]) -> None:
    check()
    add_turns(session, *["failed"] * CONSECUTIVE_FAILURES)
    alerts_sweep()
    assert queued == []


def test_nothing_is_checked_without_recipients(session: Session, settings: Any, queued: list[object]) -> None:
    settings.ALERTS_MAIL = []
    add_turns(session, *["failed"] * CONSECUTIVE_FAILURES)
    check()
    assert queued == []
    assert not Lease.objects.exists()


def test_an_alert_sent_while_the_clock_was_ahead_is_sent_again(session: Session, queued: list[tuple[str, str]]) -> None:
    add_turns(session, *["failed"] * CONSECUTIVE_FAILURES)
    Alert.objects.create(kind="answers_failing", told_at=timezone.now() + timedelta(hours=5), number=5)
    check()
    assert [kind for kind, _ in queued] == ["answers_failing"]


def test_turns_of_a_clock_that_was_ahead_hide_no_failures(session: Session, queued: list[tuple[str, str]]) -> None:
    ahead = timezone.now() + timedelta(days=400)
    add_turns(session, "completed")
    Run.objects.update(id=uuid7_after(ahead), started_at=ahead)
    add_turns(session, *["failed"] * CONSECUTIVE_FAILURES)
    check()
    assert [kind for kind, _ in queued] == ["answers_failing"]


def test_an_alert_is_mailed_without_any_text_of_users(session: Session, queued: list[tuple[str, str]]) -> None:
    add_turns(session, *["failed"] * CONSECUTIVE_FAILURES)
    check()
    assert alert_send(*queued[0]) == 1
    [message] = mail.outbox
    assert message.to == ["root@example.org"]
    assert "The last 5 answers failed (upstream_error)." in message.body
    assert "Alice" not in message.body


def test_a_refused_mail_address_does_not_affect_the_others(
    settings: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    settings.ALERTS_MAIL = ["gone@example.org", "root@example.org"]
    send = mail.EmailMessage.send

    def refuse_gone(message: mail.EmailMessage) -> int:
        if message.to == ["gone@example.org"]:
            raise smtplib.SMTPRecipientsRefused({"gone@example.org": (550, b"No such user")})
        return send(message)

    monkeypatch.setattr(mail.EmailMessage, "send", refuse_gone)
    assert alert_send("reviews_failing", "The last 5 reviews failed.") == 1
    assert not Schedule.objects.exists(), "a refusal is final"
    assert [message.to for message in mail.outbox] == [["root@example.org"]]
    assert "A mail (alert) was not sent: SMTPRecipientsRefused." in caplog.text
    assert "gone@example.org" not in caplog.text


@pytest.fixture
def receiver(settings: Any) -> Generator[Receiver]:
    settings.WEBHOOKS_PRIVATE = True
    server = Receiver()
    settings.ALERTS_MAIL, settings.ALERTS_URL = [], server.url
    yield server
    server.close()


def test_an_alert_is_posted_to_a_url(receiver: Receiver) -> None:
    assert alert_send("reviews_failing", "The last 5 reviews failed.") == 1
    [(headers, body)] = receiver.received
    alert = json.loads(body)
    assert headers["content-type"] == "application/json"
    assert (alert["type"], alert["kind"], alert["text"]) == ("alert", "reviews_failing", "The last 5 reviews failed.")
    assert not [name for name in headers if name.startswith("webhook-")], "there is no secret"


def test_with_a_secret_an_alert_is_signed_like_webhooks(receiver: Receiver, settings: Any) -> None:
    settings.ALERTS_SECRET = "whsec_" + base64.b64encode(b"0123456789" * 3).decode()
    for _ in range(2):
        assert alert_send("reviews_failing", "The last 5 reviews failed.") == 1
    for headers, body in receiver.received:
        assert StandardWebhook(settings.ALERTS_SECRET).verify(body, headers)
    assert len({headers["webhook-id"] for headers, _ in receiver.received}) == 2


def test_a_failed_delivery_is_logged_without_the_url(receiver: Receiver, caplog: pytest.LogCaptureFixture) -> None:
    receiver.answers.append((500, {}))
    assert alert_send("reviews_failing", "The last 5 reviews failed.") == 0
    assert "An alert (reviews_failing) was not delivered: It answered 500." in caplog.text
    assert "hidden" not in caplog.text


def test_an_alert_is_mailed_again_to_those_who_did_not_get_it(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.ALERTS_MAIL = ["busy@example.org", "root@example.org"]
    send, refusals = mail.EmailMessage.send, ["busy@example.org"]

    def refuse_once(message: mail.EmailMessage) -> int:
        if message.to[0] in refusals:
            refusals.remove(message.to[0])
            raise smtplib.SMTPServerDisconnected
        return send(message)

    monkeypatch.setattr(mail.EmailMessage, "send", refuse_once)
    assert alert_send("reviews_failing", "The last 5 reviews failed.") == 1
    assert alert_send(*queued_later()) == 1
    assert [message.to for message in mail.outbox] == [["root@example.org"], ["busy@example.org"]]
    assert not Schedule.objects.exists()


def test_an_alert_is_posted_again_under_its_id_until_it_is_given_up(receiver: Receiver, settings: Any) -> None:
    settings.ALERTS_SECRET = "whsec_" + base64.b64encode(b"0123456789" * 3).decode()
    receiver.answers += [(503, {})] * 5
    job = ["reviews_failing", "The last 5 reviews failed."]
    for _ in range(4):
        assert alert_send(*job) == 0
        job = queued_later()
    assert alert_send(*job) == 0
    assert not Schedule.objects.exists(), "it is given up"
    assert len(receiver.received) == 5
    assert len({headers["webhook-id"] for headers, _ in receiver.received}) == 1


def test_an_alert_is_not_posted_again_to_an_address_that_is_gone(receiver: Receiver) -> None:
    receiver.answers.append((410, {}))
    assert alert_send("reviews_failing", "The last 5 reviews failed.") == 0
    assert not Schedule.objects.exists()


def test_the_check_is_one_of_the_workers_sweeps() -> None:
    assert alerts_sweep in SWEEPS
