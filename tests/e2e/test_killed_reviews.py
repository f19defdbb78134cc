"""SIGKILL at random moments for processes that execute a review: no partial or duplicate writes, and every run ends.

The killed processes share the test database: SQLite, or PostgreSQL and Redis."""

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
from tests.e2e.running import AS_SHIPPED, MANAGE, children_of, environment, wait_until_none_left
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
    """Start executing a review in its own process; return the process id."""
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


def test_a_review_killed_at_random_moments_is_written_completely_or_not_at_all(
    alice: Owner, execute: Callable[[ReviewRun], int], upstream: UpstreamServer
) -> None:
    chance = random.Random(SEED)  # noqa: S311 - not security-relevant
    # The first one also waits for its process to start.
    usual = min([_seconds_of_a_review(alice, execute, upstream) for _ in range(3)])
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
            _check_all_or_nothing(review)
            if review.state in ENDED:
                break
            _expire_lease(review)
        review.refresh_from_db()
        if review.state == "scheduled":  # killed before it was claimed, so it has attempts left
            assert not _execute_undisturbed(execute, review, upstream)
            review.refresh_from_db()
        survived = survived or (review.attempts > 1 and review.state == "saved")
    for review in reviews:
        review.refresh_from_db()
        _check_all_or_nothing(review)
    assert {review.state for review in reviews} <= ENDED
    assert seen_running > KILLS // 4, "too few kills hit a running review"


def test_a_killed_worker_resumes_all_reviews_after_its_restart(
    alice: Owner, shared: dict[str, str], upstream: UpstreamServer, home: Path
) -> None:
    reviews = [_scheduled_review(alice, number) for number in range(6)]
    chance = random.Random(SEED)  # noqa: S311 - not security-relevant
    for _ in range(3):
        upstream.reset()
        for review in reviews:
            _script(upstream, review, reset=False)
        with _RunningWorker(environment(home, shared), home) as worker:
            eventually(lambda: upstream.requests(), within=30, description="a review's request")
            _ends_within(worker.pid, chance.uniform(0.0, 0.3))
            worker.kill()
            worker.wait(10)
            wait_until_none_left(home)
        for review in reviews:
            review.refresh_from_db()
            _check_all_or_nothing(review)
            _expire_lease(review, sweep=False)
    upstream.reset()
    for review in reviews:
        _script(upstream, review, reset=False)
    with _RunningWorker(environment(home, shared), home):
        eventually(
            lambda: {run.state for run in ReviewRun.objects.all()} <= ENDED,
            within=60,
            description="the end of every review",
        )
    for review in reviews:
        review.refresh_from_db()
        _check_all_or_nothing(review)
    assert any(review.state == "saved" for review in reviews)


def test_killed_queue_processes_are_replaced(
    alice: Owner, shared: dict[str, str], upstream: UpstreamServer, home: Path
) -> None:
    with _RunningWorker(environment(home, shared), home, own_interpreter=True) as worker:
        (guard,) = eventually(lambda: children_of(worker.pid), within=30, description="the queue's guard")
        first = eventually(
            lambda: _all_queue_processes(children_of(guard)), within=30, description="the queue's processes"
        )
        _wait_until_saved(_scheduled_review(alice, 1), upstream)  # afterwards they wait for the next job
        for pid in first:
            os.kill(pid, signal.SIGKILL)
        _wait_until_saved(_scheduled_review(alice, 2), upstream)
        # The guard may notice the last of them only in its next round.
        assert eventually(
            lambda: set(first).isdisjoint(children_of(guard)), within=10, description="the end of all of them"
        )


def test_several_workers_given_the_same_review_apply_it_once(
    alice: Owner, execute: Callable[[ReviewRun], int], upstream: UpstreamServer
) -> None:
    for _ in range(5):
        review = _scheduled_review(alice)
        _script(upstream, review)
        for child in [execute(review) for _ in range(3)]:
            assert _ends_within(child, 20)
        review.refresh_from_db()
        assert (review.state, review.attempts, len(upstream.requests())) == ("saved", 1, 2)
        _check_all_or_nothing(review)


def test_a_worker_whose_lease_has_expired_writes_nothing_twice(
    alice: Owner, execute: Callable[[ReviewRun], int], upstream: UpstreamServer
) -> None:
    review = _scheduled_review(alice)
    upstream.reset()
    slow, quick = (_add_step(review) | {"chunk_seconds": seconds} for seconds in (0.4, 0.0))
    upstream.script(slow, quick, {"text": "Nothing to save."}, {"text": "Nothing to save."})
    first = execute(review)
    eventually(lambda: len(upstream.requests()) == 1, within=10)
    _expire_lease(review)
    second = execute(review)
    assert _ends_within(second, 20)
    assert _ends_within(first, 20)
    review.refresh_from_db()
    assert (review.state, review.attempts) == ("saved", 2)
    _check_all_or_nothing(review)


def _seconds_of_a_review(owner: Owner, execute: Callable[[ReviewRun], int], upstream: UpstreamServer) -> float:
    """Return how many seconds an undisturbed review takes from the fork to its end."""
    review = _scheduled_review(owner)
    _script(upstream, review)
    began = time.monotonic()
    assert _ends_within(execute(review), 30)
    review.refresh_from_db()
    assert review.state == "saved"
    return time.monotonic() - began


def _all_queue_processes(processes: list[int]) -> list[int]:
    """Return the processes once there are four: two workers, one that reads jobs and one that records results."""
    return processes if len(processes) == 4 else []


def _wait_until_saved(review: ReviewRun, upstream: UpstreamServer) -> None:
    """Wait until the worker has saved a scheduled review."""
    _script(upstream, review)
    saved = ReviewRun.objects.filter(pk=review.pk, state="saved")
    eventually(saved.exists, within=20, description=f"the end of review {review.pk}")


def _execute_undisturbed(execute: Callable[[ReviewRun], int], review: ReviewRun, upstream: UpstreamServer) -> str:
    """Execute a review undisturbed; return an error, or "" if it was saved."""
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
    """Script the answers of the review's model: some writes, then the end."""
    if reset:
        upstream.reset()
    model = review.settings["memory_review_model"]
    upstream.script(_add_step(review) | {"chunk_seconds": 0.02}, {"model": model, "text": "Nothing to save."})


def _add_step(review: ReviewRun) -> dict[str, object]:
    texts = [f"Fact {n} of {review.pk}." for n in range(WRITES)]
    calls = [{"name": "add_memory", "arguments": {"content": text, "target": "user"}} for text in texts]
    return {"model": review.settings["memory_review_model"], "calls": calls}


def _check_all_or_nothing(review: ReviewRun) -> None:
    """Check that a saved review's writes and their records exist exactly once, and those of any other review not at
    all."""
    saved = review.state == "saved"
    memories = Memory.objects.filter(review_id=review.pk)
    revisions = Revision.objects.filter(change_set__review_id=review.pk)
    sets = ChangeSet.objects.filter(review_id=review.pk)
    notified = Notification.objects.filter(review_id=review.pk).values_list("kind", flat=True)
    assert (memories.count(), revisions.count(), sets.count(), sorted(notified)) == (
        (WRITES, WRITES, 1, ["memory.changed", "review.saved"]) if saved else (0, 0, 0, [])
    ), f"{review.state} after {review.attempts} attempts"
    assert review.session is not None
    review.session.refresh_from_db()
    assert review.session.reviewed_through == (review.last_seq if saved else 0)


def _expire_lease(review: ReviewRun, *, sweep: bool = True) -> None:
    """Let the lease of a review expire, whose process is dead or slow."""
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
    """Return True if the process ends by itself in that time."""
    try:
        return eventually(lambda: not _alive(pid), within=seconds)
    except AssertionError:
        return False


class _RunningWorker:
    """The real worker command, running until the block ends; `own_interpreter` as in tests/warm_process.py."""

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
        wait_until_none_left(self.home)
