"""GET /api/memories/health: the health of a book in figures and words"""

from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memories.database.access import in_thread
from memories.health import ago, health_of_books
from memories.models import Memory, Owner
from reviews.models import ReviewRun
from tests.conftest import Api
from tests.factories import memory_make, session_make
from tests.reviews.talk import DONE, adds, newest_review, review_by, reviewed_session, reviewing_agent, run_review, say
from tests.scripted_model import ScriptedModel


def health(owner: Owner) -> dict[str, Any]:
    (found,) = health_of_books(owner.pk)
    return found


@pytest.mark.any_database
def test_the_health_shows_coverage_budget_and_the_last_review(alice: Owner, model: ScriptedModel) -> None:
    session = reviewed_session(alice, user_char_limit=100)
    say(session)
    model.script(adds("x" * 40, "y" * 22), DONE)
    run_review(newest_review())
    say(session_make(alice, reviewing_agent(memory_review_interval=3, user_char_limit=100)))
    with time_machine.travel(timezone.now() + timedelta(minutes=3, seconds=5), tick=False):
        found = health(alice)
    assert found["text"] == "Covers 1 of 2 sessions. About you 62 % full. Last review 3 minutes ago: saved 2."
    assert found["targets"] == {"user": {"used": 62, "limit": 100}, "memory": {"used": 0, "limit": 20000}}
    assert (found["book"], found["memories"], found["blocked"]) == ("main", 2, 0)
    assert (found["sessions"], found["sessions_covered"]) == (2, 1)
    assert found["last_review"] == {"id": str(ReviewRun.objects.get().pk), "state": "saved", "saved": 2, "removed": 0}
    assert found["last_write_at"] is not None


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("failed", "The last review failed 2 hours ago; the next one reads those turns too."),
        ("timed_out", "The last review ran out of time 2 hours ago; the next one reads those turns too."),
        ("nothing_to_save", "Last review 2 hours ago: nothing new."),
        ("undone", "Last review 2 hours ago: undone."),
        ("awaiting_approval", "Last review 2 hours ago: it waits for your decision."),
        ("cancelled", "No review yet."),
        ("scheduled", "No review yet."),
    ],
)
def test_the_health_shows_the_result_of_the_last_review(alice: Owner, state: str, words: str) -> None:
    say(reviewed_session(alice))
    ReviewRun.objects.update(state=state, finished_at=timezone.now() - timedelta(hours=2))
    assert health(alice)["text"] == f"Covers 0 of 1 session. {words}"


def test_the_health_shows_that_reviews_are_off(alice: Owner) -> None:
    say(reviewed_session(alice, memory_review_interval=0))
    assert health(alice)["text"] == "Reviews are off for every agent of this book."


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (1, "1 memory is blocked and stays out of answers."),
        (2, "2 memories are blocked and stay out of answers."),
    ],
)
def test_the_health_shows_blocked_memories(alice: Owner, number: int, words: str) -> None:
    for index in range(number):
        memory_make(alice, f"Fact {index}.")
    Memory.objects.update(scan_rule="instruction_override")
    found = health(alice)
    assert words in found["text"]
    assert found["blocked"] == number


@pytest.mark.any_database
@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("REVIEWS_PER_DAY", "Today's 1 reviews are used up; the next one runs tomorrow."),
        ("REVIEW_TOKENS_PER_DAY", "Today's 1 tokens for reviews are used up; the next one runs tomorrow."),
    ],
)
def test_the_health_shows_an_exhausted_quota(
    alice: Owner, model: ScriptedModel, settings: Any, setting: str, words: str
) -> None:
    review_by(model, alice)
    assert "used up" not in health(alice)["text"]
    setattr(settings, setting, 1)
    found = health(alice)
    assert found["text"].endswith(words)
    assert found["today"] == {"reviews": 1, "tokens": 10, "limit_reached": True}


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "just now"),
        (59, "just now"),
        (60, "1 minute ago"),
        (3599, "59 minutes ago"),
        (3600, "1 hour ago"),
        (86_400, "1 day ago"),
        (200_000, "2 days ago"),
    ],
)
def test_times_are_described_in_words(seconds: int, words: str) -> None:
    now = timezone.now()
    assert ago(now - timedelta(seconds=seconds), now) == words


async def test_the_api_returns_only_the_callers_books(alice: Owner, alice_api: Api, charlie_api: Api) -> None:
    await in_thread(memory_make, alice, "Likes tea.")
    await in_thread(memory_make, alice, "Uses ruff.", book="work", target="memory")
    status, found = await alice_api.get("/api/memories/health")
    assert (status, [row["book"] for row in found["data"]]) == (200, ["main", "work"])
    assert found["data"][1]["targets"]["memory"] == {"used": 10, "limit": 2200}
    assert (await charlie_api.get("/api/memories/health"))[1]["data"] == []


@pytest.mark.any_database
def test_more_books_need_no_more_queries(alice: Owner, django_assert_num_queries: Any) -> None:
    reviewing_agent(memory_review_interval=3)
    memory_make(alice, book="main")
    health_of_books(alice.pk)
    with CaptureQueriesContext(connection) as queries:
        health_of_books(alice.pk)
    for number in range(20):
        memory_make(alice, book=f"book {number}")
    with django_assert_num_queries(len(queries)):
        found = health_of_books(alice.pk)
    assert [book["memories"] for book in found] == [1] * 21
