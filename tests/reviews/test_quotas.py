"""Daily quotas for an owner's reviews"""

from typing import Any

import pytest
import time_machine

from gateway.models import Session
from memories.models import Owner
from reviews.quotas import usage_today
from tests.reviews.talk import DONE, due_review, newest_review, reviewed_session, run_review, say
from tests.scripted_model import ScriptedModel

pytestmark = pytest.mark.any_database


def test_the_number_of_reviews_is_limited(alice: Owner, model: ScriptedModel, settings: Any) -> None:
    settings.REVIEWS_PER_DAY = 2
    model.script(DONE, DONE)
    reviews = [run_review(due_review(alice)) for _ in range(3)]
    assert [review.state for review in reviews] == ["nothing_to_save", "nothing_to_save", "scheduled"]
    late = reviews[-1]
    assert (late.attempts, late.error["code"], late.not_before) == (0, "daily_limit", usage_today(alice).ends)


def test_the_number_of_tokens_is_limited(alice: Owner, model: ScriptedModel, settings: Any) -> None:
    settings.REVIEW_TOKENS_PER_DAY = 20  # each review uses ten
    model.script(DONE, DONE)
    states = [run_review(due_review(alice)).state for _ in range(3)]
    assert states == ["nothing_to_save", "nothing_to_save", "scheduled"]


def test_a_limit_of_zero_is_no_quota(alice: Owner, model: ScriptedModel, settings: Any) -> None:
    settings.REVIEWS_PER_DAY = settings.REVIEW_TOKENS_PER_DAY = 0
    model.script(DONE, DONE)
    assert {run_review(due_review(alice)).state for _ in range(2)} == {"nothing_to_save"}


def test_a_review_beyond_the_quota_runs_the_next_day(alice: Owner, model: ScriptedModel, settings: Any) -> None:
    settings.REVIEWS_PER_DAY = 1
    model.script(DONE, DONE)
    run_review(due_review(alice))
    late = run_review(due_review(alice))
    with time_machine.travel(late.not_before, tick=False):
        assert run_review(late).state == "nothing_to_save"


def test_only_a_sessions_newest_review_waits_and_reads_everything(
    alice: Owner, model: ScriptedModel, settings: Any
) -> None:
    settings.REVIEWS_PER_DAY = 1
    model.script(DONE)
    run_review(due_review(alice))
    session = reviewed_session(alice)
    say(session, "I live in York.")
    first = newest_review()
    say(session, "I like tea.")
    second = newest_review()
    assert (run_review(first).state, run_review(second).state) == ("cancelled", "scheduled")
    second.refresh_from_db()
    model.script(DONE)
    with time_machine.travel(second.not_before, tick=False):
        run_review(second)
    assert [m["content"] for m in model.calls[-1].messages][:3:2] == ["I live in York.", "I like tea."]


def test_owners_have_separate_quotas(alice: Owner, charlie: Owner, model: ScriptedModel, settings: Any) -> None:
    settings.REVIEWS_PER_DAY = 1
    model.script(DONE, DONE)
    run_review(due_review(alice))
    assert run_review(due_review(charlie)).state == "nothing_to_save"


def test_the_day_is_a_utc_day_in_every_time_zone(alice: Owner) -> None:
    alice.time_zone = "Asia/Tokyo"
    with time_machine.travel("2026-11-20T16:00:00Z", tick=False):  # 1 a.m. in Tokyo
        day = usage_today(alice)
    assert day.ends.isoformat() == "2026-11-21T00:00:00+00:00"


def test_an_exhausted_quota_does_not_affect_turns(alice: Owner, model: ScriptedModel, settings: Any) -> None:
    settings.REVIEWS_PER_DAY = 1
    model.script(DONE)
    run_review(due_review(alice))
    session = reviewed_session(alice)
    assert say(session).state == "completed"
    assert Session.objects.get(pk=session.pk).turns == 1
