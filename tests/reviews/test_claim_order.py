"""Reviews of one session are claimed oldest first, whichever job came first"""

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
    """Three scheduled reviews of one session, and between them one of another session."""
    agent = reviewing_agent()
    session, other = session_make(alice, agent), session_make(alice, agent)
    found = []
    for number in range(3):
        say(session, f"Message {number}")
        found.append(newest_review())
        say(other, f"Elsewhere {number}")
    return found


def claimed(review: ReviewRun) -> ReviewRun | None:
    claim = review_claim(review.pk)
    return claim.review if claim else None


def end(review: ReviewRun) -> None:
    ReviewRun.objects.filter(pk=review.pk).update(state="nothing_to_save", lease_token=None)


def test_the_job_of_the_newest_takes_the_oldest(reviews: list[ReviewRun]) -> None:
    assert claimed(reviews[2]) == reviews[0]
    states = [ReviewRun.objects.get(pk=review.pk).state for review in reviews]
    assert states == ["running", "scheduled", "scheduled"]


def test_any_order_of_jobs_gives_the_order_of_the_turns(reviews: list[ReviewRun]) -> None:
    order = []
    for job in (1, 2, 2):
        taken = claimed(reviews[job])
        assert taken is not None
        end(taken)
        order.append(taken)
    assert order == reviews


def test_behind_a_running_one_none_is_taken(reviews: list[ReviewRun]) -> None:
    assert claimed(reviews[0]) == reviews[0]
    assert [claimed(review) for review in reviews] == [None, None, None]
    assert ReviewRun.objects.filter(state="running").count() == 1


def test_one_that_waits_for_its_next_attempt_keeps_none_waiting(reviews: list[ReviewRun]) -> None:
    ReviewRun.objects.filter(pk=reviews[0].pk).update(not_before=timezone.now() + timedelta(minutes=1))
    assert claimed(reviews[2]) == reviews[1]


@pytest.mark.parametrize("state", ["saved", "failed", "cancelled", "awaiting_approval", "undone"])
def test_an_older_one_that_is_over_is_passed_by(reviews: list[ReviewRun], state: str) -> None:
    ReviewRun.objects.filter(pk=reviews[0].pk).update(state=state)
    assert claimed(reviews[2]) == reviews[1]


def test_an_older_review_of_another_session_is_left_alone(reviews: list[ReviewRun]) -> None:
    elsewhere = ReviewRun.objects.exclude(session=reviews[0].session_id).order_by("id")
    assert claimed(reviews[2]) == reviews[0]
    assert claimed(elsewhere[2]) == elsewhere[0]
    assert elsewhere[0].state == "running"


def test_the_log_says_which_one_comes_first(reviews: list[ReviewRun], unclaimed: Unclaimed) -> None:
    assert claimed(reviews[2]) == reviews[0]
    assert unclaimed() == [f"review not claimed: id={reviews[2].pk} cause=earlier_first first={reviews[0].pk}"]
