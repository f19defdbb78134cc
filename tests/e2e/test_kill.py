"""SIGKILL for whoever executes a review, at random instants: no partial write, no double write, and every run ends.
On the database of the test run, which the killed processes share: SQLite, or PostgreSQL and Redis."""

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.utils import timezone

from memories.models import ChangeSet, Memory, Notification, Owner, Revision
from reviews.models import ReviewRun
from reviews.services import expire_leases
from tests import warm_process
from tests.e2e.running import AS_SHIPPED, MANAGE, children_of, environment, none_left
from tests.factories import session_make
from tests.reviews.talk import newest_review, reviewing_agent, say
from tests.upstream_server import UpstreamServer
from tests.waiting import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]

KILLS = 24  # on each database
WRITES = 4
ENDED = {"saved", "failed"}
SEED = 20261120


@pytest.fixture
def execute(home: Path, shared: dict[str, str]) -> Iterator[Callable[[ReviewRun], int]]:
    """Begin to execute a review in a process of its own; returns the process id."""
    process = warm_process.start(
        ["-m", "tests.e2e.review_forks"],
        env=environment(home, shared) | AS_SHIPPED,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None

    def begin(review: ReviewRun) -> int:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"{review.pk}\n")
        process.stdin.flush()
        return int(process.stdout.readline())

    yield begin
    process.stdin.close()
    process.wait(10)
    process.stdout.close()


def test_a_review_that_is_killed_at_random_instants_is_written_whole_or_not_at_all(
    alice: Owner, execute: Callable[[ReviewRun], int], upstream: UpstreamServer
) -> None:
    chance = random.Random(SEED)  # noqa: S311 - no secret
    # The first one also waits for its processes to start.
    usual = min([_time_of_a_whole_review(alice, execute, upstream) for _ in range(3)])
    kills, seen_running, deadline = 0, 0, time.monotonic() + 200
    reviews = list(ReviewRun.objects.all())
    survived = False  # a review that was killed in an attempt and saved in a later one
    while kills < KILLS or not survived:
        assert time.monotonic() < deadline, f"only {kills} kills in time"
        review = _scheduled_review(alice)
        reviews.append(review)
        for _ in range(settings.REVIEW_ATTEMPTS):
            _script(upstream, review)
            child = execute(review)
            if not _ends_within(child, chance.uniform(0.0, 1.1 * usual)):
                os.kill(child, signal.SIGKILL)
                kills += 1
                eventually(lambda child=child: not _alive(child), within=10)
            review.refresh_from_db()
            seen_running += review.state == "running"
            _check_whole_or_nothing(review)
            if review.state in ENDED:
                break
            _let_the_lease_run_out(review)
        review.refresh_from_db()
        if review.state == "scheduled":  # killed before it was claimed: its attempts are not used up
            assert not _ends_in_time(execute, review, upstream)
            review.refresh_from_db()
        survived = survived or (review.attempts > 1 and review.state == "saved")
    for review in reviews:
        review.refresh_from_db()
        _check_whole_or_nothing(review)
    assert {review.state for review in reviews} <= ENDED
    assert seen_running > KILLS // 4, "too few kills came in the middle of a review"


def test_the_real_worker_is_killed_and_takes_up_everything_again(
    alice: Owner, shared: dict[str, str], upstream: UpstreamServer, home: Path
) -> None:
    reviews = [_scheduled_review(alice, number) for number in range(6)]
    chance = random.Random(SEED)  # noqa: S311 - no secret
    for _ in range(3):
        upstream.reset()
        for review in reviews:
            _script(upstream, review, reset=False)
        with _working(environment(home, shared), home) as worker:
            eventually(lambda: upstream.requests(), within=30, description="A review's request")
            _ends_within(worker.pid, chance.uniform(0.0, 0.3))
            worker.kill()
            worker.wait(10)
            none_left(home)
        for review in reviews:
            review.refresh_from_db()
            _check_whole_or_nothing(review)
            _let_the_lease_run_out(review, sweep=False)
    upstream.reset()
    for review in reviews:
        _script(upstream, review, reset=False)
    with _working(environment(home, shared), home):
        eventually(
            lambda: {run.state for run in ReviewRun.objects.all()} <= ENDED,
            within=60,
            description="The end of every review",
        )
    for review in reviews:
        review.refresh_from_db()
        _check_whole_or_nothing(review)
    assert any(review.state == "saved" for review in reviews)


def test_any_process_of_the_queue_is_killed_and_the_others_go_on(
    alice: Owner, shared: dict[str, str], upstream: UpstreamServer, home: Path
) -> None:
    with _working(environment(home, shared), home, own_interpreter=True) as worker:
        (guard,) = eventually(lambda: children_of(worker.pid), within=30, description="The guard of the queue")
        first = eventually(lambda: _when_full(children_of(guard)), within=30, description="The processes of the queue")
        _is_done(_scheduled_review(alice, 1), upstream)  # now they wait for the next job
        for pid in first:
            os.kill(pid, signal.SIGKILL)
        _is_done(_scheduled_review(alice, 2), upstream)
        assert set(first).isdisjoint(children_of(guard))


def test_two_workers_that_are_given_the_same_review_apply_it_once(
    alice: Owner, execute: Callable[[ReviewRun], int], upstream: UpstreamServer
) -> None:
    for _ in range(5):
        review = _scheduled_review(alice)
        _script(upstream, review)
        for child in [execute(review) for _ in range(3)]:
            assert _ends_within(child, 20)
        review.refresh_from_db()
        assert (review.state, review.attempts, len(upstream.requests())) == ("saved", 1, 2)
        _check_whole_or_nothing(review)


def test_a_worker_that_comes_back_after_its_lease_writes_nothing_twice(
    alice: Owner, execute: Callable[[ReviewRun], int], upstream: UpstreamServer
) -> None:
    review = _scheduled_review(alice)
    upstream.reset()
    late, quick = (_adds(review) | {"chunk_seconds": seconds} for seconds in (0.4, 0.0))
    upstream.script(late, quick, {"text": "Nothing to save."}, {"text": "Nothing to save."})
    first = execute(review)
    eventually(lambda: len(upstream.requests()) == 1, within=10)
    _let_the_lease_run_out(review)
    second = execute(review)
    assert _ends_within(second, 20)
    assert _ends_within(first, 20)
    review.refresh_from_db()
    assert (review.state, review.attempts) == ("saved", 2)
    _check_whole_or_nothing(review)


def _time_of_a_whole_review(owner: Owner, execute: Callable[[ReviewRun], int], upstream: UpstreamServer) -> float:
    """Seconds from the fork to the end, of a review that nobody disturbs."""
    review = _scheduled_review(owner)
    _script(upstream, review)
    began = time.monotonic()
    assert _ends_within(execute(review), 30)
    review.refresh_from_db()
    assert review.state == "saved"
    return time.monotonic() - began


def _when_full(processes: list[int]) -> list[int]:
    """The processes of a queue with two workers, beside which one reads jobs and one notes what is done."""
    return processes if len(processes) == 4 else []


def _is_done(review: ReviewRun, upstream: UpstreamServer) -> None:
    """Wait until the worker has done a scheduled review, which has a job."""
    _script(upstream, review)
    saved = ReviewRun.objects.filter(pk=review.pk, state="saved")
    eventually(saved.exists, within=20, description=f"The end of review {review.pk}")


def _ends_in_time(execute: Callable[[ReviewRun], int], review: ReviewRun, upstream: UpstreamServer) -> str:
    """Execute it undisturbed; what is wrong then, "" when nothing is."""
    _script(upstream, review)
    if not _ends_within(execute(review), 30):
        return "it did not end"
    review.refresh_from_db()
    return "" if review.state == "saved" else str(review.state)


def _scheduled_review(owner: Owner, number: int = 0) -> ReviewRun:
    agent = reviewing_agent(memory_review_model=f"reviewer-{number}", user_char_limit=0)
    say(session_make(owner, agent), f"I have {number} goats.")
    return newest_review()


def _script(upstream: UpstreamServer, review: ReviewRun, *, reset: bool = True) -> None:
    """What the review's model answers: some writes, then an end."""
    if reset:
        upstream.reset()
    model = review.settings["memory_review_model"]
    upstream.script(_adds(review) | {"chunk_seconds": 0.02}, {"model": model, "text": "Nothing to save."})


def _adds(review: ReviewRun) -> dict[str, object]:
    words = [f"Fact {n} of {review.pk}." for n in range(WRITES)]
    calls = [{"name": "add_memory", "arguments": {"content": text, "target": "user"}} for text in words]
    return {"model": review.settings["memory_review_model"], "calls": calls}


def _check_whole_or_nothing(review: ReviewRun) -> None:
    """All writes of a saved review are there exactly once, with everything that belongs to them; else none is."""
    saved = review.state == "saved"
    memories = Memory.objects.filter(review_id=review.pk)
    revisions = Revision.objects.filter(change_set__review_id=review.pk)
    sets = ChangeSet.objects.filter(review_id=review.pk)
    told = Notification.objects.filter(review_id=review.pk).values_list("kind", flat=True)
    assert (memories.count(), revisions.count(), sets.count(), sorted(told)) == (
        (WRITES, WRITES, 1, ["memory.changed", "review.saved"]) if saved else (0, 0, 0, [])
    ), f"{review.state} after {review.attempts} attempts"
    assert review.session is not None
    review.session.refresh_from_db()
    assert review.session.reviewed_through == (review.last_seq if saved else 0)


def _let_the_lease_run_out(review: ReviewRun, *, sweep: bool = True) -> None:
    """What time would do; the process that held it, or had its job, is dead or late."""
    past = timezone.now() - timedelta(minutes=2)
    ReviewRun.objects.filter(pk=review.pk, state="running").update(lease_expires_at=past)
    ReviewRun.objects.filter(pk=review.pk, state="scheduled").update(enqueued_at=past)
    if sweep:
        expire_leases(timezone.now())
    review.refresh_from_db()


def _alive(pid: int) -> bool:
    with suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False


def _ends_within(pid: int, seconds: float) -> bool:
    """Whether the process ends by itself in that time."""
    try:
        return eventually(lambda: not _alive(pid), within=seconds)
    except AssertionError:
        return False


class _working:
    """The real worker command, as long as the block lasts; `own_interpreter`: with an interpreter of its own."""

    def __init__(self, env: dict[str, str], home: Path, *, own_interpreter: bool = False) -> None:
        self.env, self.home, self.own_interpreter = env, home, own_interpreter

    def __enter__(self) -> warm_process.Program:
        with self.home.with_name("worker.log").open("ab") as log:
            self.process = warm_process.start(
                [str(MANAGE), "worker"],
                env=self.env,
                stdout=log.fileno(),
                stderr=log.fileno(),
                own_interpreter=self.own_interpreter,
            )
        return self.process

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait(10)
        none_left(self.home)
