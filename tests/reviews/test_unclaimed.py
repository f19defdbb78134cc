"""A review that a worker does not claim: the log says why"""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from gateway.sessions.keeping import session_discard, session_restore
from memories.ids import uuid7
from memories.models import Owner
from reviews import claiming
from reviews.claiming import review_claim
from reviews.models import ReviewRun
from reviews.quotas import usage_today
from tests.factories import review_make
from tests.reviews.conftest import Unclaimed
from tests.reviews.talk import due_review, newest_review, say

MESSAGE = "I am a vegetarian, and my door code is 4711."


@pytest.fixture
def review(alice: Owner) -> ReviewRun:
    return due_review(alice, MESSAGE)


def test_an_unknown_review(db: None, unclaimed: Unclaimed) -> None:
    unknown = uuid7()
    assert review_claim(unknown) is None
    assert unclaimed() == [f"review not claimed: id={unknown} cause=unknown"]


@pytest.mark.parametrize("state", ["running", "saved", "cancelled"])
def test_a_review_that_is_not_scheduled(review: ReviewRun, state: str, unclaimed: Unclaimed) -> None:
    ReviewRun.objects.update(state=state)
    assert review_claim(review.pk) is None
    assert unclaimed() == [f"review not claimed: id={review.pk} cause=not_scheduled state={state}"]


def test_a_review_that_is_not_due(review: ReviewRun, unclaimed: Unclaimed) -> None:
    later = timezone.now() + timedelta(minutes=1)
    ReviewRun.objects.update(not_before=later)
    assert review_claim(review.pk) is None
    assert unclaimed() == [f"review not claimed: id={review.pk} cause=not_due not_before={later.isoformat()}"]


def test_a_review_of_an_inactive_account_stays_scheduled(review: ReviewRun, unclaimed: Unclaimed) -> None:
    User.objects.update(is_active=False)
    assert review_claim(review.pk) is None
    assert unclaimed() == [f"review not claimed: id={review.pk} cause=account_inactive"]
    User.objects.update(is_active=True)
    assert review_claim(review.pk) is not None


def test_a_review_of_a_discarded_session_waits_until_it_is_restored(review: ReviewRun, unclaimed: Unclaimed) -> None:
    assert review.session is not None
    session_discard(review.session)
    assert review_claim(review.pk) is None
    assert unclaimed() == [f"review not claimed: id={review.pk} cause=session_deleted"]
    session_restore(review.owner_id, review.session_id)
    assert review_claim(review.pk) is not None


def test_a_review_of_a_deleted_session(review: ReviewRun, unclaimed: Unclaimed) -> None:
    ReviewRun.objects.update(session=None)
    assert review_claim(review.pk) is None
    assert unclaimed() == [f"review not claimed: id={review.pk} cause=session_deleted"]


def test_a_review_beyond_the_daily_limit(alice: Owner, review: ReviewRun, settings: Any, unclaimed: Unclaimed) -> None:
    settings.REVIEWS_PER_DAY = 1
    review_make(review.book, started_at=timezone.now())
    assert review_claim(review.pk) is None
    assert unclaimed() == [f"review not claimed: id={review.pk} cause=daily_limit"]


def test_a_review_of_a_session_with_a_running_review(review: ReviewRun, unclaimed: Unclaimed) -> None:
    assert review.session is not None
    say(review.session, "And I live in York.")
    second = newest_review()
    assert review_claim(review.pk) is not None
    assert review_claim(second.pk) is None
    assert unclaimed() == [f"review not claimed: id={second.pk} cause=session_busy"]


def test_a_review_that_another_worker_claims_meanwhile(
    review: ReviewRun, monkeypatch: pytest.MonkeyPatch, unclaimed: Unclaimed
) -> None:
    def claim_meanwhile(*args: Any) -> Any:
        ReviewRun.objects.update(state="running")
        return usage_today(*args)

    monkeypatch.setattr(claiming, "usage_today", claim_meanwhile)
    assert review_claim(review.pk) is None
    assert unclaimed() == [f"review not claimed: id={review.pk} cause=taken"]


def test_a_claim_that_succeeds_logs_nothing(review: ReviewRun, unclaimed: Unclaimed) -> None:
    assert review_claim(review.pk) is not None
    assert unclaimed() == []
