"""When a review is due, and which turns do not count"""

from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django_q.models import OrmQ

from gateway.models import Agent, Message, Run, Session
from memories.errors import Conflict, InvalidRequest
from memories.models import Owner
from memories.services import book_get_or_create
from reviews.health import review_facts
from reviews.models import ReviewRun
from reviews.schedule import review_session
from reviews.sweep import review_idle_sessions
from tests.factories import agent_make, session_make
from tests.reviews.talk import DONE, newest_review, reviewed_session, run_review, say
from tests.scripted_model import ScriptedModel


def turns_since_review(session: Session) -> int:
    session.refresh_from_db()
    return session.turns_since_memory_review


def test_a_review_is_due_every_third_turn(alice: Owner) -> None:
    session = reviewed_session(alice, memory_review_interval=3)
    seen = []
    for number in range(7):
        say(session, f"Message {number}")
        seen.append((turns_since_review(session), ReviewRun.objects.count()))
    assert seen == [(1, 0), (2, 0), (0, 1), (1, 1), (2, 1), (0, 2), (1, 2)]


def test_an_interval_of_one_reviews_every_turn(alice: Owner) -> None:
    session = reviewed_session(alice, memory_review_interval=1)
    say(session)
    say(session)
    assert (ReviewRun.objects.count(), turns_since_review(session)) == (2, 0)


def test_a_review_is_scheduled_while_another_is_running(alice: Owner) -> None:
    session = reviewed_session(alice)
    say(session)
    ReviewRun.objects.update(state="running")
    say(session)
    assert list(ReviewRun.objects.order_by("id").values_list("state", flat=True)) == ["running", "scheduled"]


def test_without_an_interval_turns_are_counted_but_nothing_is_scheduled(alice: Owner) -> None:
    def count_queries(interval: int) -> int:
        session = session_make(alice, agent_make(f"every-{interval}", memory_review_interval=interval))
        say(session)
        with CaptureQueriesContext(connection) as captured:
            say(session)
        assert turns_since_review(session) == 2
        return len(captured)

    assert count_queries(0) == count_queries(100)
    assert not ReviewRun.objects.exists()
    assert not OrmQ.objects.exists()


def test_a_review_can_be_requested_without_an_interval(alice: Owner) -> None:
    session = reviewed_session(alice, memory_review_interval=0)
    say(session)
    review = review_session(alice.pk, session.pk)
    assert (review.trigger, review.state, turns_since_review(session)) == ("request", "scheduled", 0)


def test_a_review_keeps_the_settings_of_its_scheduling(alice: Owner) -> None:
    session = reviewed_session(alice, memory_review_model="small", memory_review_timeout=7)
    say(session)
    agent_make(memory_review_model="large")
    settings = newest_review().settings
    names = ("memory_review_model", "memory_review_timeout", "memory_review_max_writes")
    assert [settings[name] for name in names] == ["small", 7, 5]


@pytest.mark.parametrize("state", [Run.State.FAILED, Run.State.STOPPED])
def test_an_incomplete_turn_does_not_count(alice: Owner, state: Run.State) -> None:
    session = reviewed_session(alice)
    say(session, state=state)
    assert (turns_since_review(session), ReviewRun.objects.count()) == (0, 0)


def test_a_regeneration_does_not_count(alice: Owner) -> None:
    session = reviewed_session(alice, memory_review_interval=2)
    first = say(session)
    say(session, answer="Noted, again.", replaces=first)
    assert (turns_since_review(session), ReviewRun.objects.count()) == (1, 0)


def test_retrying_a_failed_turn_counts_once(alice: Owner) -> None:
    session = reviewed_session(alice, memory_review_interval=2)
    failed = say(session, state=Run.State.FAILED)
    say(session, replaces=failed)
    assert turns_since_review(session) == 1


def test_a_temporary_session_is_never_reviewed(alice: Owner) -> None:
    session = reviewed_session(alice)
    Session.objects.update(temporary=True)
    say(session)
    assert not ReviewRun.objects.exists()
    with pytest.raises(InvalidRequest):
        review_session(alice.pk, session.pk)


def test_a_review_cannot_be_requested_without_new_messages(alice: Owner, model: ScriptedModel) -> None:
    session = reviewed_session(alice)
    with pytest.raises(Conflict):
        review_session(alice.pk, session.pk)
    say(session)
    with pytest.raises(Conflict):  # the scheduled review covers it
        review_session(alice.pk, session.pk)
    model.script(DONE)
    run_review(newest_review())
    with pytest.raises(Conflict):
        review_session(alice.pk, session.pk)


@pytest.mark.parametrize("state", [Run.State.FAILED, Run.State.STOPPED])
def test_messages_of_an_incomplete_turn_are_not_new_messages(alice: Owner, state: Run.State) -> None:
    session = reviewed_session(alice)
    say(session, state=state)
    with pytest.raises(Conflict):
        review_session(alice.pk, session.pk)


def test_a_memory_command_is_not_a_new_message(alice: Owner) -> None:
    session = reviewed_session(alice)
    for seq, (role, text) in enumerate([("user", "/memory view"), ("assistant", "Nothing yet.")], start=1):
        Message.objects.create(owner=alice, session=session, seq=seq, role=role, text=text, kind="command")
    Session.objects.update(message_seq=2)
    with pytest.raises(Conflict):
        review_session(alice.pk, session.pk)


def sweep_after(minutes: float) -> int:
    with time_machine.travel(timezone.now() + timedelta(minutes=minutes), tick=False):
        return review_idle_sessions()


def idle_session(alice: Owner, **settings: Any) -> Session:
    session = reviewed_session(alice, **{"memory_review_interval": 3, "memory_review_idle_minutes": 30, **settings})
    say(session)
    return session


def test_an_idle_session_is_reviewed_before_its_interval(alice: Owner) -> None:
    session = idle_session(alice)
    assert sweep_after(29) == 0
    assert sweep_after(31) == 1
    review = newest_review()
    assert (review.trigger, review.first_seq, review.last_seq, turns_since_review(session)) == ("idle", 1, 2, 0)


def test_zero_minutes_turn_idle_reviews_off(alice: Owner) -> None:
    idle_session(alice, memory_review_idle_minutes=0)
    assert sweep_after(100_000) == 0


@pytest.mark.any_database
def test_an_idle_session_is_reviewed_without_an_interval(alice: Owner) -> None:
    session = idle_session(alice, memory_review_interval=0)
    for number in range(5):
        say(session, f"Message {number}")
    assert not ReviewRun.objects.exists()
    assert sweep_after(29) == 0
    assert sweep_after(31) == 1
    assert newest_review().trigger == "idle"


def test_an_agent_with_only_idle_reviews_has_reviews_on(alice: Owner) -> None:
    idle_session(alice, memory_review_interval=0)
    book = book_get_or_create(alice.pk, "main")
    assert review_facts([book], timezone.now())[book.pk].figures["reviews_on"] is True
    Agent.objects.update(settings={})
    agent_make("assistant", memory_review_interval=0)
    assert review_facts([book], timezone.now())[book.pk].figures["reviews_on"] is False


def test_a_session_has_one_idle_review_until_it_continues(alice: Owner) -> None:
    session = idle_session(alice)
    sweep_after(31)
    ReviewRun.objects.update(state="failed")
    assert sweep_after(60) == 0
    with time_machine.travel(timezone.now() + timedelta(hours=2), tick=False):
        say(session, "Still there?")
        assert sweep_after(31) == 1


def test_an_idle_review_reads_the_turns_of_a_failed_review(alice: Owner) -> None:
    session = idle_session(alice, memory_review_interval=1)
    ReviewRun.objects.update(state="failed")
    assert turns_since_review(session) == 0
    assert sweep_after(31) == 1
    assert newest_review().first_seq == 1


def test_an_idle_session_without_new_messages_is_not_reviewed(alice: Owner, model: ScriptedModel) -> None:
    session = idle_session(alice)
    model.script(DONE)
    run_review(review_session(alice.pk, session.pk))
    assert sweep_after(31) == 0


def test_a_temporary_session_has_no_idle_review(alice: Owner) -> None:
    idle_session(alice)
    Session.objects.update(temporary=True)
    assert sweep_after(31) == 0
