"""Reviews of a session are claimed oldest first, whichever job runs first"""

from datetime import timedelta

import pytest
from django.utils import timezone

from memories.models import Owner
from reviews.claiming import review_claim
from reviews.models import ReviewRun
from tests.factories import session_make
from tests.reviews.conftest import Unclaimed
from tests.reviews.talk import newest_review, reviewing_agent, say


@pytest.fixture
def reviews(alice: Owner) -> list[ReviewRun]:
    """Three scheduled reviews of one session, interleaved with reviews of another one."""
    agent = reviewing_agent()
    session, other = session_make(alice, agent), session_make(alice, agent)
    found = []
    for number in range(3):
        say(session, f"Message {number}")
        found.append(newest_review())
        say(other, f"Elsewhere {number}")
    return found


def claim(review: ReviewRun) -> ReviewRun | None:
    found = review_claim(review.pk)
    return found.review if found else None


def end(review: ReviewRun) -> None:
    ReviewRun.objects.filter(pk=review.pk).update(state="nothing_to_save", lease_token=None)


def test_the_job_of_the_newest_review_claims_the_oldest(reviews: list[ReviewRun]) -> None:
    assert claim(reviews[2]) == reviews[0]
    states = [ReviewRun.objects.get(pk=review.pk).state for review in reviews]
    assert states == ["running", "scheduled", "scheduled"]


def test_reviews_are_claimed_in_the_order_of_their_turns(reviews: list[ReviewRun]) -> None:
    order = []
    for job in (1, 2, 2):
        claimed = claim(reviews[job])
        assert claimed is not None
        end(claimed)
        order.append(claimed)
    assert order == reviews


def test_no_review_is_claimed_while_another_is_running(reviews: list[ReviewRun]) -> None:
    assert claim(reviews[0]) == reviews[0]
    assert [claim(review) for review in reviews] == [None, None, None]
    assert ReviewRun.objects.filter(state="running").count() == 1


def test_a_review_that_waits_for_a_retry_does_not_block_later_ones(reviews: list[ReviewRun]) -> None:
    ReviewRun.objects.filter(pk=reviews[0].pk).update(not_before=timezone.now() + timedelta(minutes=1))
    assert claim(reviews[2]) == reviews[1]


@pytest.mark.parametrize("state", ["saved", "failed", "cancelled", "awaiting_approval", "undone"])
def test_finished_reviews_are_skipped(reviews: list[ReviewRun], state: str) -> None:
    ReviewRun.objects.filter(pk=reviews[0].pk).update(state=state)
    assert claim(reviews[2]) == reviews[1]


def test_each_session_has_its_own_order(reviews: list[ReviewRun]) -> None:
    others = ReviewRun.objects.exclude(session=reviews[0].session_id).order_by("id")
    assert claim(reviews[2]) == reviews[0]
    assert claim(others[2]) == others[0]
    assert others[0].state == "running"


def test_the_log_names_the_review_that_comes_first(reviews: list[ReviewRun], unclaimed: Unclaimed) -> None:
    assert claim(reviews[2]) == reviews[0]
    assert unclaimed() == [f"review not claimed: id={reviews[2].pk} cause=earlier_first first={reviews[0].pk}"]
