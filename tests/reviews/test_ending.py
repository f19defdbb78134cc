"""Every way in which a review can end"""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from django.utils import timezone

from gateway.models import Session
from memories.models import Book, Notification, Owner
from reviews.approvals import forget_orphans
from reviews.claiming import ReviewClaim, review_claim
from reviews.ending import reviews_cancel, reviews_end
from reviews.models import ReviewRun
from reviews.services import ReviewOutcome, expire_leases, review_cancel, review_finish, review_time_out
from reviews.writes import ReviewWrite, WriteState
from tests.reviews.talk import due_review
from tests.unsliced import book_clear, session_delete

State = ReviewRun.State


@pytest.fixture
def claim(alice: Owner) -> ReviewClaim:
    """A review that a worker has claimed."""
    claim = review_claim(due_review(alice).pk)
    assert claim is not None
    return claim


def delete_session(claim: ReviewClaim) -> None:
    session_delete(Session.objects.get(pk=claim.session_id))


def lose_worker(claim: ReviewClaim) -> None:
    ReviewRun.objects.update(attempts=99, lease_expires_at=timezone.now())
    expire_leases(timezone.now())


ENDINGS: dict[str, Callable[[ReviewClaim], object]] = {
    "nothing_to_save": lambda claim: review_finish(claim, ReviewOutcome()),
    "timed_out": lambda claim: review_time_out(claim, ReviewOutcome()),
    "failed": lose_worker,
    "cancelled": lambda claim: review_cancel(claim.review, "Stopped."),
    "cancelled, its session deleted": delete_session,
    "cancelled, its book cleared": lambda claim: book_clear(Book.objects.get(), actor="user:1"),
}


@pytest.mark.every_case
@pytest.mark.parametrize("ending", ENDINGS)
def test_a_finished_review_has_no_lease_but_a_time_and_an_error(ending: str, claim: ReviewClaim) -> None:
    before = timezone.now()
    ENDINGS[ending](claim)
    run = ReviewRun.objects.get()
    assert run.state == ending.split(",")[0]
    assert (run.lease_token, run.lease_expires_at) == (None, None)
    assert run.finished_at is not None
    assert run.finished_at >= before
    assert (run.error is None) == (run.state == "nothing_to_save")


@pytest.mark.any_database
@pytest.mark.every_case
@pytest.mark.parametrize("ending", ENDINGS)
def test_a_finished_review_does_not_end_again_when_its_worker_returns(ending: str, claim: ReviewClaim) -> None:
    ENDINGS[ending](claim)
    ended = ReviewRun.objects.values().get()
    review_finish(claim, ReviewOutcome(model="late"))
    review_time_out(claim, ReviewOutcome(model="late"))
    assert ReviewRun.objects.values().get() == ended


def test_only_reviews_in_the_expected_state_are_ended(claim: ReviewClaim) -> None:
    scheduled = ReviewRun.objects.filter(state=State.SCHEDULED)
    assert reviews_end(scheduled, State.FAILED, error={"code": "x"}) == 0
    assert ReviewRun.objects.get().state == "running"
    running = ReviewRun.objects.filter(state=State.RUNNING)
    at = datetime(2026, 1, 2, tzinfo=UTC)
    assert reviews_end(running, State.FAILED, error={"code": "x"}, finished_at=at) == 1
    assert ReviewRun.objects.get().finished_at == at


def test_the_owner_is_notified_only_if_the_review_was_ended(claim: ReviewClaim) -> None:
    waiting = [ReviewWrite(index=0, key="new1", state=WriteState.WAITING)]
    scheduled = ReviewRun.objects.filter(state=State.SCHEDULED)
    reviews_end(scheduled, State.AWAITING_APPROVAL, notify_for=claim.review, writes=waiting)
    assert not Notification.objects.exists()
    running = ReviewRun.objects.filter(state=State.RUNNING)
    reviews_end(running, State.AWAITING_APPROVAL, notify_for=claim.review, writes=waiting)
    assert Notification.objects.get().text == "A review wants to save 1 memory."


def test_a_review_of_a_deleted_session_is_cancelled_and_its_writes_deleted(claim: ReviewClaim) -> None:
    ReviewRun.objects.update(session=None, state=State.AWAITING_APPROVAL, writes=[{"state": "waiting"}])
    assert forget_orphans() == 1
    run = ReviewRun.objects.get()
    assert (run.state, run.writes, run.error) == (
        "cancelled",
        [],
        {"code": "cancelled", "message": "The session was deleted."},
    )
    assert reviews_cancel(ReviewRun.objects.filter(state=State.RUNNING), "Again.") == 0
