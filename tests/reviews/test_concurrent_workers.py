"""Several workers at the same time, each with its own database connection"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection

from memories.models import Memory, Notification, Owner
from reviews.claiming import review_claim
from reviews.models import ReviewRun
from reviews.runner import execute
from tests.factories import session_make
from tests.reviews.talk import DONE, adds, due_review, newest_review, reviewed_session, reviewing_agent, say
from tests.scripted_model import ScriptedModel

pytestmark = pytest.mark.django_db(transaction=True)
WORKERS = 8


def in_threads(work: Callable[[int], Any]) -> list[Any]:
    """Run `work` in several threads that start at the same time."""
    barrier = threading.Barrier(WORKERS)

    def run(number: int) -> Any:
        barrier.wait(10)
        try:
            return work(number)
        finally:
            connection.close()

    with ThreadPoolExecutor(WORKERS) as pool:
        return list(pool.map(run, range(WORKERS)))


def test_only_one_worker_claims_a_review(alice: Owner) -> None:
    review = due_review(alice)
    claims = in_threads(lambda _: review_claim(review.pk))
    assert sum(claim is not None for claim in claims) == 1
    review.refresh_from_db()
    assert review.attempts == 1


def test_only_one_review_of_a_session_runs(alice: Owner) -> None:
    session = reviewed_session(alice)
    reviews = []
    for number in range(WORKERS):
        say(session, f"Message {number}")
        reviews.append(newest_review())
    claims = in_threads(lambda number: review_claim(reviews[number].pk))
    assert sum(claim is not None for claim in claims) == 1
    assert ReviewRun.objects.filter(state="running").count() == 1


def test_a_review_delivered_to_all_workers_is_applied_once(alice: Owner, model: ScriptedModel) -> None:
    review = due_review(alice)
    model.script(adds("Likes tea.", "Is vegetarian."), DONE)

    def work(_: int) -> None:
        with asyncio.Runner() as runner:
            execute(review.pk, runner.run)

    in_threads(work)
    review.refresh_from_db()
    assert (review.state, review.attempts, Memory.objects.count()) == ("saved", 1, 2)
    assert Notification.objects.filter(kind="review.saved").count() == 1


def test_reviews_of_one_book_do_not_interleave_their_writes(
    alice: Owner, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = reviewing_agent()
    reviews = []
    for number in range(WORKERS):
        say(session_make(alice, agent), f"Message {number}")
        reviews.append(newest_review())
    first_calls = iter([adds(*(f"Fact {n} of {name}." for n in range(3))) for name in range(WORKERS)])
    model.script(*first_calls, *[DONE] * WORKERS)
    answered: set[str] = set()
    take = model._next

    def next_for(request: Any) -> Any:
        """Answer the first request of each review with its writes, and the second one with its end."""
        if request.request_id in answered:
            model._steps.rotate(-next(i for i, step in enumerate(model._steps) if not step.calls))
        else:
            model._steps.rotate(-next(i for i, step in enumerate(model._steps) if step.calls))
        answered.add(request.request_id)
        return take(request)

    lock = threading.Lock()

    def locked(request: Any) -> Any:
        with lock:
            return next_for(request)

    monkeypatch.setattr(model, "_next", locked)

    def work(number: int) -> None:
        with asyncio.Runner() as runner:
            execute(reviews[number].pk, runner.run)

    in_threads(work)
    assert set(ReviewRun.objects.values_list("state", flat=True)) == {"saved"}
    order = list(Memory.objects.order_by("number").values_list("review_id", flat=True))
    assert len(order) == 3 * WORKERS
    assert all(len(set(order[at : at + 3])) == 1 for at in range(0, len(order), 3))
