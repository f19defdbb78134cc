"""The worker's sweep: lost jobs, full queues, and deleted sessions"""

from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.conf import settings as django_settings
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django_q.brokers import get_broker
from redis import RedisError

from gateway import jobs as gateway_jobs
from gateway.models import Session
from gateway.sessions.keeping import session_discard
from memories.errors import RateLimited
from memories.ids import uuid7
from memories.models import Owner
from reviews import schedule, sweep
from reviews.claiming import review_claim
from reviews.models import ReviewRun
from reviews.schedule import review_session
from reviews.services import expire_leases
from reviews.sweep import enqueue_lost, reviews_sweep
from tests.factories import session_make
from tests.reviews.talk import due_review, newest_review, reviewed_session, reviewing_agent, run_review, say
from tests.scripted_model import ScriptedModel
from tests.sweeps import pass_time
from tests.unsliced import session_delete


@pytest.fixture(autouse=True)
def jobs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ids of the enqueued reviews."""
    enqueued: list[str] = []
    for module in (schedule, sweep):
        monkeypatch.setattr(module, "enqueue", lambda run: enqueued.append(str(run.pk)))
    return enqueued


def later(seconds: float) -> Any:
    return time_machine.travel(timezone.now() + timedelta(seconds=seconds), tick=False)


def test_a_lost_job_is_enqueued_again_after_a_minute(alice: Owner, jobs: list[str]) -> None:
    say(reviewed_session(alice))
    jobs.clear()
    with later(59):
        assert enqueue_lost() == 0
    with later(61):
        assert (enqueue_lost(), jobs) == (1, [str(newest_review().pk)])
        assert enqueue_lost() == 0
    with later(122):
        assert enqueue_lost() == 1


def test_reviews_of_an_inactive_account_wait_until_it_is_active_again(alice: Owner, jobs: list[str]) -> None:
    agent = reviewing_agent(memory_review_idle_minutes=1)
    end_user = Owner.objects.create(parent=alice, namespace="shop", external_id="customer")
    for owner in (alice, end_user):
        say(session_make(owner, agent))
    scheduled = sorted(jobs)
    idle = [session_make(owner, agent) for owner in (alice, end_user)]
    for session in idle:
        say(session)
    ReviewRun.objects.filter(session__in=idle).delete()
    jobs.clear()
    User.objects.update(is_active=False)
    with later(120):
        assert (enqueue_lost(), sweep.review_idle_sessions(), jobs) == (0, 0, [])
        User.objects.update(is_active=True)
        assert (enqueue_lost(), sorted(jobs)) == (2, scheduled)
        assert sweep.review_idle_sessions() == 2


def test_a_session_deleted_meanwhile_does_not_keep_other_idle_ones_waiting(
    alice: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = reviewing_agent(memory_review_idle_minutes=1)
    sessions = [session_make(alice, agent) for _ in range(2)]
    for session in sessions:
        say(session)
    ReviewRun.objects.all().delete()

    def delete_first(*session: Any) -> ReviewRun:
        session_discard(sessions[0])
        return review_session(*session)

    monkeypatch.setattr(sweep, "review_session", delete_first)
    with later(120):
        assert sweep.review_idle_sessions() == 1
    assert newest_review().session_id == sessions[1].pk


def test_a_retry_is_enqueued_when_it_is_due(alice: Owner, jobs: list[str]) -> None:
    say(reviewed_session(alice))
    jobs.clear()
    ReviewRun.objects.update(not_before=timezone.now() + timedelta(seconds=30), enqueued_at=None)
    with later(29):
        assert enqueue_lost() == 0
    with later(31):
        assert enqueue_lost() == 1


def test_a_review_is_not_enqueued_while_another_is_running(alice: Owner, jobs: list[str]) -> None:
    session = reviewed_session(alice)
    say(session)
    ReviewRun.objects.update(state="running", lease_expires_at=timezone.now() + timedelta(hours=1))
    say(session)
    with later(61):
        assert enqueue_lost() == 0


def test_nothing_is_added_to_a_full_queue(alice: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(3):
        say(reviewed_session(alice))
    broker = type(get_broker())
    with later(61):
        monkeypatch.setattr(broker, "queue_size", lambda _: 100)
        assert enqueue_lost() == 0
        monkeypatch.setattr(broker, "queue_size", lambda _: 98)
        assert enqueue_lost() == 2


def test_a_queue_that_does_not_answer_stops_no_other_step(alice: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    def queue_size(broker: Any) -> int:
        raise RedisError("Timeout reading from socket")

    steps: list[str] = []
    say(reviewed_session(alice))
    monkeypatch.setattr(type(get_broker()), "queue_size", queue_size)
    monkeypatch.setattr(sweep, "review_idle_sessions", lambda: steps.append("idle"))
    with later(61):
        reviews_sweep()
    assert steps == ["idle"]


def test_a_dead_workers_review_is_enqueued_again(alice: Owner, jobs: list[str]) -> None:
    say(reviewed_session(alice))
    jobs.clear()
    lapsed = timezone.now() - timedelta(seconds=1)
    began = lapsed - timedelta(seconds=40)
    ReviewRun.objects.update(state="running", started_at=began, lease_expires_at=lapsed, attempts=1)
    reviews_sweep()
    assert (newest_review().state, jobs) == ("scheduled", [str(newest_review().pk)])


@pytest.mark.parametrize("state", ["scheduled", "running", "awaiting_approval"])
def test_a_review_of_a_deleted_session_is_cancelled(alice: Owner, state: str) -> None:
    say(reviewed_session(alice))
    ReviewRun.objects.update(state=state, writes=[{"index": 0, "after": "Likes tea.", "state": "waiting"}])
    session_delete(Session.objects.get())
    reviews_sweep()
    assert (newest_review().state, newest_review().writes) == ("cancelled", [])


def test_a_second_sweep_changes_nothing(alice: Owner, jobs: list[str]) -> None:
    say(reviewed_session(alice))
    with later(61):
        reviews_sweep()
        before = ReviewRun.objects.values().get()
        jobs.clear()
        reviews_sweep()
    assert (ReviewRun.objects.values().get(), jobs) == (before, [])


def test_a_job_is_enqueued_in_the_turns_transaction_or_after_its_commit(
    alice: Owner, monkeypatch: pytest.MonkeyPatch, django_capture_on_commit_callbacks: Any
) -> None:
    monkeypatch.undo()
    sent: list[tuple[Any, ...]] = []
    monkeypatch.setattr(gateway_jobs, "async_task", lambda *args, **_: sent.append(args))
    session = reviewed_session(alice)
    with django_capture_on_commit_callbacks() as after_commit:
        say(session)
        before_commit = len(sent)
    for callback in after_commit:
        callback()
    assert before_commit == (0 if django_settings.REDIS_URL else 1)
    assert sent == [("reviews.tasks.review_execute", str(newest_review().pk))]


def test_the_lease_of_a_dead_process_expires_early(alice: Owner) -> None:
    claim = review_claim(due_review(alice).pk)
    assert claim
    assert expire_leases(timezone.now()) == 0
    ReviewRun.objects.update(holder=uuid7())  # a process that does not exist
    # With a database server, the process may be on another machine, so the lease has to expire.
    sqlite = connection.vendor == "sqlite"
    assert expire_leases(timezone.now()) == (1 if sqlite else 0)
    assert newest_review().state == ("scheduled" if sqlite else "running")


def test_a_review_keeps_its_lease_when_the_clock_is_set_back_and_no_longer(alice: Owner) -> None:
    assert review_claim(due_review(alice, memory_review_timeout=60).pk)
    back = timezone.now() - timedelta(hours=1)
    assert expire_leases(back) == 0
    assert expire_leases(back + timedelta(seconds=69)) == 0
    assert expire_leases(back + timedelta(seconds=71)) == 1


@pytest.mark.parametrize("claimed", [True, False])
def test_a_review_that_waits_since_the_clock_was_ahead_waits_no_longer_than_intended(
    alice: Owner, model: ScriptedModel, claimed: bool
) -> None:
    with time_machine.travel(timezone.now() + timedelta(hours=5), tick=False):
        review = due_review(alice)
        if claimed:
            model.script(RateLimited("Later.", status=429, retry_after="600"))
            review = run_review(review)
    for _ in range(2):
        reviews_sweep()
        review.refresh_from_db()
        waits = (review.not_before - timezone.now()).total_seconds()
        assert (590 < waits <= 600) if claimed else waits <= 0


def test_a_running_review_is_not_repeated_when_the_clock_is_set_forward(alice: Owner) -> None:
    assert review_claim(due_review(alice, memory_review_timeout=60).pk)
    assert expire_leases(timezone.now()) == 0
    with time_machine.travel(timezone.now() + timedelta(hours=1), tick=False) as clock:
        assert expire_leases(timezone.now()) == 0
        pass_time(clock, timedelta(seconds=69))
        assert expire_leases(timezone.now()) == 0
        pass_time(clock, timedelta(seconds=2))
        assert expire_leases(timezone.now()) == 1


def test_expired_leases_are_found_in_four_statements_whatever_the_timeouts(alice: Owner) -> None:
    for seconds in (30, 60, 90):
        say(session_make(alice, reviewing_agent(memory_review_timeout=seconds)))
        assert review_claim(newest_review().pk)
    with CaptureQueriesContext(connection) as queries:
        assert expire_leases(timezone.now()) == 0
    assert len(queries) == (5 if connection.vendor == "sqlite" else 4)  # SQLite also looks for ended processes
