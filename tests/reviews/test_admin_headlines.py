"""/admin/: today's figures come first, each links to its list, and the charts are loaded after the page"""

from datetime import timedelta

import pytest
import time_machine
from django.conf import settings
from django.db import connection
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext

from gateway.models import Run, UsageDay
from gateway.services import configuration_save
from reviews.admin.dashboard import dashboard, today
from reviews.admin.dashboard.today import Headline
from tests.admin_pages import saved_review_make
from tests.admin_rows import book_make, memory_block, memory_make, owner_make, session_make, staff_client, user_make
from tests.reviews.conftest import NOON

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("noon")]
QUERIES = 13  # nine of them for the figures, including the prices
QUEUE_QUERIES = 2  # if the queue is in the database


def headlines(client: Client) -> dict[str, Headline]:
    found: list[Headline] = client.get("/admin/").context["headlines"]
    return {figure.word: figure for figure in found}


def test_the_figures_are_about_today(root: Client) -> None:
    with time_machine.travel(NOON - timedelta(days=1), tick=False):
        session_make(owner_make("charlie"), title="Yesterday", turns=4)
    session_make(title="Tea", turns=3)
    session_make(title="Cake", turns=1)
    memory_make("Likes tea.")
    Run.objects.filter(turn=2).update(state="failed")
    found = {word: (figure.value, figure.note) for word, figure in headlines(root).items()}
    assert found == {
        "People": ("3", "1 asked today"),
        "Conversations today": ("2", "4 turns"),
        "Memories": ("1", "1 new today"),
        "Failed turns today": ("1", ""),
        "95 % of answers within": ("–", "no answer today"),
        "Cost today": ("–", "no price is set"),
    }


def test_each_figure_links_to_the_rows_that_it_counts(root: Client) -> None:
    with time_machine.travel(NOON - timedelta(days=1), tick=False):
        session_make(owner_make("charlie"), title="Yesterday", turns=4)
        Run.objects.update(state="failed")
    session_make(title="Tea", turns=3)
    Run.objects.filter(turn=2, session__title="Tea").update(state="failed")
    memory_make("Likes tea.")
    memory_block(memory_make("Likes rain."))
    for word in ("People", "Conversations today", "Memories", "Failed turns today"):
        figure = headlines(root)[word]
        listed = root.get(figure.link).context["cl"].result_list
        assert figure.value == str(len(listed)), word
    assert len(root.get(headlines(root)["Cost today"].link).context["cl"].result_list) == 3


def test_the_95th_percentile_of_answer_times_is_shown(root: Client) -> None:
    session_make(turns=20)
    for turn in range(1, 21):
        Run.objects.filter(turn=turn).update(finished_at=NOON + timedelta(seconds=turn))
    figure = headlines(root)["95 % of answers within"]
    assert (figure.value, figure.note) == ("19.0 s", "of 20 answers")


def test_todays_cost_includes_turns_and_reviews(root: Client) -> None:
    configuration_save("prices", {"m": {"input": 10, "output": 10}})
    session = session_make(turns=1)
    for day, cost in ((NOON.date(), 1.25), (NOON.date() - timedelta(days=1), 50.0)):
        UsageDay.objects.create(owner=session.owner, day=day, model="m", cost=cost)
    review = saved_review_make(session, book_make())
    type(review).objects.update(model="m", usage={"total_tokens": 50_000, "completion_tokens": 0})
    assert headlines(root)["Cost today"].value == "$1.75"


@pytest.mark.any_database
def test_figures_are_counted_up_to_a_limit(root: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(today, "MAX_COUNTED", 3)
    session_make(turns=5)
    for number in range(5):
        memory_make(f"Fact {number}.")
    found = headlines(root)
    assert (found["Memories"].value, found["Conversations today"].note) == ("3+", "3+ turns")


def test_staff_who_may_see_only_runs_get_no_other_links() -> None:
    session_make(turns=1)
    links = {word: figure.link for word, figure in headlines(staff_client(may=("gateway.view_run",))).items()}
    assert {word for word, link in links.items() if link} == {
        "Failed turns today",
        "95 % of answers within",
        "Cost today",
    }


def test_the_page_without_charts_needs_no_more_queries_for_more_rows() -> None:
    request = RequestFactory().get("/admin/")
    request.user = user_make("root", is_superuser=True, is_staff=True)
    configuration_save("prices", {"m": {"input": 10, "output": 10}})
    counts = []
    for name in ("alice", "bea"):
        session_make(owner_make(name), turns=5)
        with CaptureQueriesContext(connection) as queries:
            context = dashboard(request, {})
        assert "charts" not in context
        counts.append(len(queries))
    assert counts[0] == counts[1] == QUERIES + (0 if settings.REDIS_URL else QUEUE_QUERIES)


@pytest.mark.any_database
def test_charts_are_loaded_by_htmx_or_with_the_page(root: Client) -> None:
    session_make(turns=1)
    first = root.get("/admin/").content.decode()
    assert 'hx-get="?days=7&amp;part=charts"' in first
    assert "<polyline" not in first
    alone = root.get("/admin/?part=charts&days=7", headers={"HX-Request": "true"}).content.decode()
    assert "<polyline" in alone
    assert "<html" not in alone
    page = root.get("/admin/?part=charts&days=7").content.decode()
    assert "<polyline" in page
    assert "95 % of answers within" in page
