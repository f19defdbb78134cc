"""/admin/: the first page's numbers"""

from datetime import timedelta

import pytest
from django.db import connection
from django.test import RequestFactory
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from gateway.models import Run, Worker
from memories.ids import uuid7
from memories.models import WriteOrigin
from reviews.admin.dashboard import dashboard, first_id
from reviews.models import ReviewRun
from tests.admin_rows import book_make, memory_make, owner_make, session_make, staff_client, user_make

pytestmark = pytest.mark.django_db


def board(*, superuser: bool = True) -> dict[str, object]:
    request = RequestFactory().get("/admin/")
    request.user = user_make(f"staff{superuser}", is_staff=True, is_superuser=superuser)
    return dashboard(request, {"kept": 1})


def test_it_adds_up_turns_failures_and_tokens_by_day() -> None:
    session = session_make(turns=4)
    Run.objects.filter(turn=1).update(state="failed")
    Run.objects.update(usage={"total_tokens": 100})
    Run.objects.filter(turn=4).update(started_at=timezone.now() - timedelta(days=2), usage={})
    session_make(session.owner, title="Old", turns=1)
    Run.objects.filter(session__title="Old").update(started_at=timezone.now() - timedelta(days=30))
    context = board()
    days = context["days"]
    shown = [(day.turns, day.failed, day.tokens) for day in days]
    assert shown == [(0, 0, 0)] * 4 + [
        (1, 0, 0),
        (0, 0, 0),
        (3, 1, 300),
    ]
    assert (context["turns_total"], context["failed_total"], context["tokens_total"]) == (4, 1, 300)
    assert (days[-1].height, days[-1].failed_height, days[0].height) == (96, 32, 0)


def test_it_counts_writes_by_origin_and_reviews_by_state() -> None:
    book = book_make()
    memory_make("Likes tea.", book=book)
    memory_make("Works nights.", book=book)
    memory_make("Is away.", book=book, origin=WriteOrigin.BACKGROUND_REVIEW)
    for state in ("saved", "failed", "failed"):
        ReviewRun.objects.create(
            owner=book.owner,
            book=book,
            state=state,
            trigger="idle",
            first_seq=1,
            last_seq=1,
            agent_name="a",
            book_epoch=1,
        )
    context = board()
    assert [(tally.word, tally.number) for tally in context["writes"]] == [("Agent", 2), ("Review", 1)]
    assert [(tally.word, tally.number) for tally in context["reviews"]] == [("Failed", 2), ("Saved", 1)]


def test_it_names_runs_that_hang_and_counts_workers_that_live() -> None:
    session_make(turns=1)
    Run.objects.update(state="running", started_at=timezone.now() - timedelta(minutes=5))
    Worker.objects.create(host="box", pid=1)
    Worker.objects.create(host="box", pid=2, beat_at=timezone.now() - timedelta(hours=1))
    context = board()
    assert context["slow_runs"] == list(Run.objects.all())
    assert (context["workers"].number, context["workers"].word) == (1, "worker")


def test_who_may_not_see_runs_gets_no_numbers() -> None:
    session_make(turns=1)
    assert board(superuser=False) == {"kept": 1}


def test_it_costs_the_same_however_much_there_is() -> None:
    request = RequestFactory().get("/admin/")
    request.user = user_make("root", is_superuser=True, is_staff=True)
    counts = []
    for name in ("alice", "charlie"):
        memory_make(book=book_make(owner_make(name)))
        session_make(owner_make(name), turns=5)
        with CaptureQueriesContext(connection) as queries:
            dashboard(request, {})
        counts.append(len(queries))
    assert counts[0] == counts[1]


def test_the_first_id_of_a_moment_lies_between_what_came_before_and_after() -> None:
    before = uuid7()
    now = timezone.now()
    assert first_id(now - timedelta(seconds=1)) < before < first_id(now + timedelta(seconds=1))
    assert first_id(now).version == 7


def test_the_first_page_opens_for_every_member_of_staff() -> None:
    session_make(turns=1)
    assert staff_client(superuser=True).get("/admin/").status_code == 200
