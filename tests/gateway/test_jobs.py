"""gateway.jobs: the common parts of background jobs"""

import asyncio
import math
import multiprocessing
from datetime import timedelta
from multiprocessing.connection import Connection

import pytest
import time_machine
from django.utils import timezone
from django_q.models import Task

from gateway import jobs
from gateway.sweep import runs_sweep
from memories.models import Owner
from reviews import tasks
from reviews.models import ReviewRun
from tests.reviews.talk import reviewed_session, say


async def _loop() -> asyncio.AbstractEventLoop:
    return asyncio.get_running_loop()


def test_all_jobs_of_a_worker_including_reviews_share_one_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "_runner", None)
    used = [jobs.run_async(_loop())]
    monkeypatch.setattr(tasks, "execute", lambda run_id, run_async: used.append(run_async(_loop())))
    tasks.review_execute("01a1f8aa-80e2-7392-995f-1fe475d0fa65")
    assert used[0] is used[1] is jobs.run_async(_loop())


def test_connections_of_the_loop_are_closed_when_a_forked_worker_ends() -> None:
    receiver, sender = multiprocessing.Pipe(duplex=False)
    child = multiprocessing.get_context("fork").Process(target=_work, args=(sender,))
    child.start()
    assert receiver.poll(20)
    assert receiver.recv() == "closed"
    child.join(20)
    assert child.exitcode == 0


def _work(sender: Connection) -> None:
    async def disconnect() -> None:
        sender.send("closed")

    jobs._runner = None
    jobs.disconnect = disconnect  # type: ignore[attr-defined]
    jobs.run_async(_loop())


def test_a_throttle_allows_the_first_check_and_then_one_per_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(jobs.time, "monotonic", lambda: now)  # type: ignore[attr-defined]
    throttle = jobs.Throttle()
    assert throttle.elapsed() == math.inf
    assert [throttle.check(pause=30), throttle.check(pause=30)] == [True, False]
    now = 1029.9
    assert not throttle.check(pause=30)
    now = 1030.0
    assert (throttle.elapsed(), throttle.check(pause=30), throttle.elapsed()) == (30, True, 0)
    throttle.reset()
    assert throttle.check(pause=30)


async def test_work_is_cancelled_when_its_lease_cannot_be_renewed() -> None:
    ended = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")

    renewals = iter([True, False])

    async def renew() -> bool:
        return next(renewals)

    with pytest.raises(jobs.LeaseLost):
        await jobs.work_while_held(work(), renew, seconds=0.003)
    assert ended == ["cancelled"]
    assert next(renewals, "none left") == "none left"


async def test_the_heartbeat_ends_with_the_work() -> None:
    async def renew() -> bool:
        raise AssertionError("no renewal is due")

    async def fail() -> None:
        raise LookupError("the work's own")

    await jobs.work_while_held(asyncio.sleep(0), renew, seconds=60)
    with pytest.raises(LookupError, match="the work's own"):
        await jobs.work_while_held(fail(), renew, seconds=60)
    assert len(asyncio.all_tasks()) == 1


def test_a_row_whose_job_was_lost_is_queued_by_one_worker(alice: Owner) -> None:
    now = timezone.now()
    say(reviewed_session(alice))
    rows = ReviewRun.objects.filter(state="scheduled")
    assert not rows.filter(jobs.without_job(now)).exists()
    rows.update(enqueued_at=now - jobs.LOST_AFTER - timedelta(seconds=1))
    lost = rows.get(jobs.without_job(now))
    assert [jobs.mark_enqueued(rows, lost, now), jobs.mark_enqueued(rows, lost, now)] == [True, False]
    assert not rows.filter(jobs.without_job(now)).exists()
    rows.update(enqueued_at=now + timedelta(hours=1))  # by a clock that was ahead
    assert rows.filter(jobs.without_job(now)).exists()


@pytest.mark.django_db
def test_records_of_failed_jobs_are_deleted_after_a_week() -> None:
    now = timezone.now()
    for days in (6, 8):
        at = now - timedelta(days=days)
        Task.objects.create(id=f"{days}", name="failed", func="x", started=at, stopped=at, success=False, result="said")
    runs_sweep()
    assert list(Task.objects.values_list("id", flat=True)) == ["6"]


@pytest.mark.django_db
@pytest.mark.parametrize(("ahead", "taken"), [(timedelta(), False), (timedelta(hours=2), True)])
def test_a_lease_from_a_clock_that_was_ahead_blocks_nobody(ahead: timedelta, taken: bool) -> None:
    with time_machine.travel(timezone.now() + ahead, tick=False):
        assert jobs.lease_take("webhooks", seconds=60)
    assert jobs.lease_is_held("webhooks", seconds=60) is not taken
    assert bool(jobs.lease_take("webhooks", seconds=60)) is taken
