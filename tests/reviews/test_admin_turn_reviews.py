"""/admin/gateway/run/…: the reviews that read a turn, and links from a review to its turns"""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from gateway.models import Run, Session
from reviews.admin.turn_reviews import MAX_REVIEWS, reviews_of_turn
from reviews.models import ReviewRun
from tests.admin_pages import saved_review_make
from tests.admin_rows import book_make, memory_make, row_url, session_make, staff_client

pytestmark = pytest.mark.django_db


@pytest.fixture
def session() -> Session:
    return session_make(turns=3)


def page_of(turn: int) -> str:
    return reverse("admin:gateway_run_change", args=[Run.objects.get(turn=turn).pk])


def review_of_turns(session: Session, *, first: int, last: int) -> ReviewRun:
    review = saved_review_make(session, book_make())
    memory = memory_make("Prefers tea.")
    write = {"action": "add", "after": "Prefers tea.", "state": "applied", "memory_id": str(memory.number)}
    review.first_seq, review.last_seq, review.writes = first, last, [write]
    review.save()
    return review


@pytest.mark.any_database
def test_a_turns_page_shows_the_reviews_that_read_it_and_their_writes(session: Session) -> None:
    review = review_of_turns(session, first=3, last=6)
    client = staff_client(superuser=True)
    for turn in (2, 3):
        page = client.get(page_of(turn))
        (shown,) = page.context["review_parts"]
        assert shown["url"] == row_url(review)
        assert [write.write.after for write in shown["writes"]] == ["Prefers tea."]
        assert "Prefers tea." in page.content.decode()
    first = client.get(page_of(1)).content.decode()
    assert "No review has read this turn." in first
    assert "Prefers tea." not in first


def test_staff_who_may_not_see_reviews_see_none(session: Session) -> None:
    review_of_turns(session, first=1, last=6)
    page = staff_client(may=("gateway.view_run", "gateway.view_session")).get(page_of(2)).content.decode()
    assert "The review that followed" not in page
    assert "Prefers tea." not in page


def test_the_reviews_of_a_turn_are_limited_and_need_two_queries(session: Session) -> None:
    for _ in range(MAX_REVIEWS + 1):
        review_of_turns(session, first=1, last=2)
    run = Run.objects.get(turn=1)
    with CaptureQueriesContext(connection) as queries:
        assert len(reviews_of_turn(run, 1, 2)) == MAX_REVIEWS
    assert len(queries) == 2


@pytest.mark.any_database
def test_a_review_links_to_the_turns_it_read(session: Session) -> None:
    review = review_of_turns(session, first=3, last=6)
    client: Client = staff_client(superuser=True)
    page = client.get(row_url(review)).content.decode()
    assert f'<a class="db-link" href="{page_of(2)}">turns 2 to 3</a>' in page
