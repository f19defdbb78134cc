"""/admin/reviews/reviewrun/: what each review was given, did and cost"""

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from gateway.models import Session
from reviews.models import ReviewRun
from tests.admin_rows import book_make, owner_make, session_make, staff_client

pytestmark = pytest.mark.django_db
LIST = "/admin/reviews/reviewrun/"


@pytest.fixture
def root() -> Client:
    return staff_client(superuser=True)


def review_make(session: Session | None = None, **fields: Any) -> ReviewRun:
    session = session or session_make(turns=2)
    values = {
        "state": "saved",
        "trigger": "interval",
        "first_seq": 1,
        "last_seq": 2,
        "agent_name": "assistant",
        "book_epoch": 1,
        "writes": [{"action": "add", "content": "Prefers <b>tea</b>."}],
        "usage": {"total_tokens": 1480},
        **fields,
    }
    return ReviewRun.objects.create(
        owner=session.owner, book=book_make(session.owner), session=session, **values
    )


def listed(client: Client, **query: str) -> list[ReviewRun]:
    answer = client.get(LIST, query)
    assert answer.status_code == 200
    return list(answer.context["cl"].result_list)


def test_the_list_shows_state_trigger_session_writes_usage_and_times(root: Client) -> None:
    review_make()
    page = root.get(LIST).content.decode()
    assert all(
        word in page for word in ("Saved", "After every few turns", "Tea", "alice", "1,480", "assistant")
    )


def test_reviews_are_found_by_state_trigger_session_and_title(root: Client) -> None:
    saved = review_make()
    failed = review_make(
        session_make(owner_make("charlie"), title="Trip"),
        state="failed",
        trigger="idle",
        error={"code": "upstream_error"},
    )
    assert listed(root, state="failed") == [failed]
    assert listed(root, trigger="interval") == [saved]
    assert listed(root, session=str(saved.session_id)) == [saved]
    assert listed(root, owner__id__exact=str(failed.owner_id)) == [failed]
    assert listed(root, q="trip") == [failed]
    assert listed(root, q=str(saved.pk)) == [saved]
    assert listed(root, q=str(failed.session_id)) == [failed]


def test_the_page_shows_writes_error_and_the_frozen_conversation(root: Client) -> None:
    review = review_make(
        error={"code": "upstream_error", "message": "It answered with an error."}, dropped_calls={"shell": 2}
    )
    page = root.get(reverse("admin:reviews_reviewrun_change", args=[review.pk])).content.decode()
    assert "Prefers &lt;b&gt;tea&lt;/b&gt;." in page
    assert "It answered with an error." in page
    assert "shell" in page
    assert "Question 1" in page
    assert "Question 2" not in page


def test_a_review_outlives_its_session(root: Client) -> None:
    review = review_make()
    ReviewRun.objects.filter(pk=review.pk).update(session=None)
    assert root.get(reverse("admin:reviews_reviewrun_change", args=[review.pk])).status_code == 200
    assert "Deleted" in root.get(LIST).content.decode()


def test_review_runs_cannot_be_changed_here(root: Client) -> None:
    review = review_make()
    page = reverse("admin:reviews_reviewrun_change", args=[review.pk])
    assert root.post(page, {"state": "failed"}).status_code == 403
    assert (
        root.post(reverse("admin:reviews_reviewrun_delete", args=[review.pk]), {"post": "yes"}).status_code
        == 403
    )
    review.refresh_from_db()
    assert review.state == "saved"


def test_a_longer_list_costs_no_more_queries_and_counts_nothing(root: Client) -> None:
    def queries() -> int:
        root.get(LIST)
        with CaptureQueriesContext(connection) as captured:
            root.get(LIST)
        assert not [q for q in captured if "COUNT(" in q["sql"].upper()]
        return len(captured)

    for number in range(3):
        review_make(session_make(owner_make(f"first{number}")))
    few = queries()
    for number in range(27):
        review_make(session_make(owner_make(f"second{number}")))
    assert queries() == few
