"""Mails over SMTP: an address that cannot be used is logged in one line and does not affect the others"""

from collections.abc import Generator
from datetime import datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from django.utils.module_loading import import_string
from django_q.models import OrmQ, Schedule
from django_q.scheduler import scheduler

from gateway import jobs
from gateway.accounts.invitations import invitation_create, invitation_mail
from gateway.accounts.mails import Outcome, mail_try
from gateway.accounts.password_reset import password_mail
from memories.ids import uuid7
from tests.gateway.mail_server import MailServer, mail_server

INVALID = ["root@internal@example.org", f"root@{'x' * 70}.org", "@", "root@", "root@example.org\nBcc: eve@example.org"]


@pytest.fixture
def server(settings: Any) -> Generator[MailServer]:
    with mail_server() as listening:
        host, port = listening.server_address[:2]
        settings.MAIL = {"EMAIL_HOST": host}
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT, settings.EMAIL_TIMEOUT = host, port, 5
        settings.DEFAULT_FROM_EMAIL = "daybook@example.org"
        yield listening


@pytest.mark.parametrize("address", INVALID)
def test_an_invalid_address_does_not_affect_the_others(
    server: MailServer, caplog: pytest.LogCaptureFixture, address: str
) -> None:
    outcomes = [mail_try(to, "Attention", "alert", said="Five failed.") for to in (address, "root@example.org")]
    assert outcomes == [Outcome.REFUSED, Outcome.SENT]
    assert server.recipients == ["root@example.org"]
    [line] = caplog.messages
    assert line.startswith("A mail (alert) was not sent: ")
    assert address not in line


@pytest.mark.parametrize("address", ["übung@example.org", "root@exämple.org", '"a b"@example.org', "a@[127.0.0.1]"])
def test_international_and_unusual_addresses_are_accepted(server: MailServer, address: str) -> None:
    assert mail_try(address, "Attention", "alert", said="Five failed.") is Outcome.SENT
    assert len(server.recipients) == 1


@pytest.mark.django_db
@pytest.mark.parametrize(("refusal", "again"), [("451 try later", 1), ("421 too busy", 1), ("550 nobody here", 0)])
def test_what_a_server_refuses_for_now_is_tried_again(server: MailServer, refusal: str, again: int) -> None:
    anna = User.objects.create_user("anna", email="anna@example.org")
    server.refusals = [refusal]
    assert password_mail(str(anna.pk), "http://testserver") == 0
    assert Schedule.objects.count() == again
    if again:
        assert password_mail(*queued_later()) == 1
        assert server.recipients == ["anna@example.org"]


@pytest.mark.django_db
def test_a_mail_server_that_is_away_is_asked_again_for_an_hour_and_a_half(settings: Any, server: MailServer) -> None:
    anna = User.objects.create_user("anna", email="anna@example.org")
    there, settings.EMAIL_PORT = settings.EMAIL_PORT, 1
    job = [str(anna.pk), "http://testserver"]
    for _ in range(4):
        assert password_mail(*job) == 0
        job = queued_later()
    assert password_mail(*job) == 0
    assert not Schedule.objects.exists(), "it is given up"
    settings.EMAIL_PORT = there
    assert server.recipients == []


@pytest.mark.django_db
def test_an_invitation_that_is_refused_for_now_is_mailed_later(server: MailServer) -> None:
    root = User.objects.create_superuser("root")
    row, _ = invitation_create(email="anna@example.org", role="user", days=7, by=root, origin="http://testserver")
    OrmQ.objects.all().delete()
    Schedule.objects.all().delete()
    server.refusals = ["451 try later"]
    assert not invitation_mail(str(row.pk), "http://testserver")
    row.refresh_from_db()
    assert row.mailed_at is None
    assert invitation_mail(*queued_later())
    row.refresh_from_db()
    assert row.mailed_at is not None
    assert server.recipients == ["anna@example.org"]


@pytest.mark.django_db
def test_a_mail_is_not_lost_with_a_job_that_redis_does_not_accept(settings: Any, server: MailServer) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    root = User.objects.create_superuser("root", "root@example.org", "a password")
    invitation_create(email="anna@example.org", role="user", days=7, by=root, origin="http://testserver")
    assert invitation_mail(*queued_later())
    assert Client().post("/password/forgotten/", {"email": "root@example.org"}).status_code == 200
    assert password_mail(*queued_later()) == 1
    assert server.recipients == ["anna@example.org", "root@example.org"]


@pytest.mark.django_db
def test_with_redis_a_worker_is_told_to_send_a_mail_at_once(
    settings: Any, monkeypatch: pytest.MonkeyPatch, django_capture_on_commit_callbacks: Any
) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    told: list[str] = []
    monkeypatch.setattr(jobs, "async_task", lambda task, **options: told.append(task))
    with django_capture_on_commit_callbacks(execute=True):
        jobs.enqueue_kept("gateway.tasks.invitation_mail", "1")
        assert not told
    assert [import_string(task) for task in told] == [scheduler]
    assert queued_later() == ["1"]


@pytest.mark.django_db
def test_a_mail_is_sent_again_if_its_worker_died_while_sending(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []
    monkeypatch.setattr("gateway.accounts.password_reset.password_mail", lambda *arguments: sent.append(arguments[0]))
    jobs.enqueue_kept("gateway.accounts.password_reset.password_mail", "1", "http://testserver")
    job = scheduled()
    assert scheduled(after=timedelta()) == [], "it is being executed"
    assert scheduled(after=timedelta(minutes=6)) == job == scheduled(after=timedelta(minutes=12))
    jobs.kept_execute(*job[0])
    jobs.kept_execute(*job[0])
    assert sent == ["1"]
    assert not Schedule.objects.exists()


@pytest.mark.django_db
def test_a_mail_that_ends_its_worker_each_time_is_given_up() -> None:
    jobs.enqueue_kept("gateway.accounts.password_reset.password_mail", "1", "http://testserver")
    assert [len(scheduled(after=timedelta(minutes=6 * count))) for count in range(4)] == [1, 1, 1, 0]
    jobs.jobs_purge(timezone.now() + timedelta(days=2))
    assert not Schedule.objects.exists()


@pytest.mark.django_db
def test_a_mail_is_sent_also_if_the_queue_was_full_for_an_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []
    monkeypatch.setattr("gateway.accounts.password_reset.password_mail", lambda *arguments: sent.append(arguments[0]))
    jobs.enqueue_kept("gateway.accounts.password_reset.password_mail", "1", "http://testserver")
    jobs_of_all = [scheduled(after=timedelta(minutes=6 * count)) for count in range(3)]
    jobs.jobs_purge(timezone.now() + timedelta(hours=1))
    for queued in jobs_of_all:
        jobs.kept_execute(*queued[0])
    assert sent == ["1"]


@pytest.mark.django_db
def test_a_mail_that_was_queued_while_the_clock_was_ahead_is_sent() -> None:
    with time_machine.travel(timezone.now() + timedelta(days=365), tick=False):
        jobs.enqueue_kept("gateway.accounts.password_reset.password_mail", "1", "http://testserver")
    jobs.jobs_purge(now := timezone.now())
    assert Schedule.objects.get().next_run == now
    assert all(job.lock == now for job in OrmQ.objects.all())  # none with Redis, which delivers at once


def queued_later() -> list[str]:
    """The arguments of the mail that waits for its time. It is not executed a second time."""
    (waiting,) = Schedule.objects.all()
    (job,) = scheduled(at=waiting.next_run)
    Schedule.objects.all().delete()
    return job[2:]


def scheduled(*, after: timedelta = timedelta(), at: datetime | None = None) -> list[list[str]]:
    """The arguments of the kept jobs that django-q2's scheduler queues at a time."""
    queued: list[tuple[Any, ...]] = []
    now = (at or timezone.now() + after) + timedelta(seconds=1)
    with pytest.MonkeyPatch.context() as patch, time_machine.travel(now):
        patch.setattr(
            "django_q.scheduler.async_task", lambda *job, **options: queued.append((job, options)) or uuid7().hex
        )
        patch.setattr("django_q.scheduler.close_old_django_connections", lambda: None)
        scheduler(broker=object())
    assert all(options["q_options"]["save"] is False for _, options in queued)
    assert all(import_string(job[0]) is jobs.kept_execute for job, _ in queued)
    return [list(job[1:]) for job, _ in queued]
