"""When a review is due, and what does not count"""

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


def counted(session: Session) -> int:
    session.refresh_from_db()
    return session.turns_since_memory_review


def test_it_is_due_at_every_third_turn(alice: Owner) -> None:
    session = reviewed_session(alice, memory_review_interval=3)
    seen = []
    for number in range(7):
        say(session, f"Message {number}")
        seen.append((counted(session), ReviewRun.objects.count()))
    assert seen == [(1, 0), (2, 0), (0, 1), (1, 1), (2, 1), (0, 2), (1, 2)]


def test_an_interval_of_one_reviews_every_turn(alice: Owner) -> None:
    session = reviewed_session(alice, memory_review_interval=1)
    say(session)
    say(session)
    assert (ReviewRun.objects.count(), counted(session)) == (2, 0)


def test_it_is_scheduled_behind_the_running_one_and_never_skipped(alice: Owner) -> None:
    session = reviewed_session(alice)
    say(session)
    ReviewRun.objects.update(state="running")
    say(session)
    assert list(ReviewRun.objects.order_by("id").values_list("state", flat=True)) == ["running", "scheduled"]


def test_without_an_interval_there_is_no_row_no_job_and_no_query_but_the_counter_counts(alice: Owner) -> None:
    def statements(interval: int) -> int:
        session = session_make(alice, agent_make(f"every-{interval}", memory_review_interval=interval))
        say(session)
        with CaptureQueriesContext(connection) as captured:
            say(session)
        assert counted(session) == 2
        return len(captured)

    assert statements(0) == statements(100)
    assert not ReviewRun.objects.exists()
    assert not OrmQ.objects.exists()


def test_without_an_interval_a_review_by_hand_works(alice: Owner) -> None:
    session = reviewed_session(alice, memory_review_interval=0)
    say(session)
    review = review_session(alice.pk, session.pk)
    assert (review.trigger, review.state, counted(session)) == ("request", "scheduled", 0)


def test_the_settings_are_kept_as_they_were(alice: Owner) -> None:
    session = reviewed_session(alice, memory_review_model="small", memory_review_timeout=7)
    say(session)
    agent_make(memory_review_model="large")
    kept = newest_review().settings
    assert (kept["memory_review_model"], kept["memory_review_timeout"], kept["memory_review_max_writes"]) == (
        "small",
        7,
        5,
    )


@pytest.mark.parametrize("state", [Run.State.FAILED, Run.State.STOPPED])
def test_a_turn_that_did_not_complete_does_not_count(alice: Owner, state: Run.State) -> None:
    session = reviewed_session(alice)
    say(session, state=state)
    assert (counted(session), ReviewRun.objects.count()) == (0, 0)


def test_a_regeneration_does_not_count(alice: Owner) -> None:
    session = reviewed_session(alice, memory_review_interval=2)
    first = say(session)
    say(session, answer="Noted, again.", replaces=first)
    assert (counted(session), ReviewRun.objects.count()) == (1, 0)


def test_the_second_try_of_a_failed_turn_counts_once(alice: Owner) -> None:
    session = reviewed_session(alice, memory_review_interval=2)
    failed = say(session, state=Run.State.FAILED)
    say(session, replaces=failed)
    assert counted(session) == 1


def test_a_temporary_session_is_never_reviewed(alice: Owner) -> None:
    session = reviewed_session(alice)
    Session.objects.update(temporary=True)
    say(session)
    assert not ReviewRun.objects.exists()
    with pytest.raises(InvalidRequest):
        review_session(alice.pk, session.pk)


def test_nothing_new_means_no_review_by_hand(alice: Owner, model: ScriptedModel) -> None:
    session = reviewed_session(alice)
    with pytest.raises(Conflict):
        review_session(alice.pk, session.pk)
    say(session)
    with pytest.raises(Conflict):  # the scheduled one covers it
        review_session(alice.pk, session.pk)
    model.script(DONE)
    run_review(newest_review())
    with pytest.raises(Conflict):
        review_session(alice.pk, session.pk)


@pytest.mark.parametrize("state", [Run.State.FAILED, Run.State.STOPPED])
def test_words_of_a_broken_turn_are_nothing_new(alice: Owner, state: Run.State) -> None:
    session = reviewed_session(alice)
    say(session, state=state)
    with pytest.raises(Conflict):
        review_session(alice.pk, session.pk)


def test_a_memory_command_is_nothing_new(alice: Owner) -> None:
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


def test_a_session_left_before_its_interval_is_reviewed_after_the_pause(alice: Owner) -> None:
    session = idle_session(alice)
    assert sweep_after(29) == 0
    assert sweep_after(31) == 1
    review = newest_review()
    assert (review.trigger, review.first_seq, review.last_seq, counted(session)) == ("idle", 1, 2, 0)


def test_zero_minutes_means_no_idle_review(alice: Owner) -> None:
    idle_session(alice, memory_review_idle_minutes=0)
    assert sweep_after(100_000) == 0


def test_a_pause_is_reviewed_also_without_an_interval(alice: Owner) -> None:
    session = idle_session(alice, memory_review_interval=0)
    for number in range(5):
        say(session, f"Message {number}")
    assert not ReviewRun.objects.exists()
    assert sweep_after(29) == 0
    assert sweep_after(31) == 1
    assert newest_review().trigger == "idle"


def test_an_agent_that_reviews_after_a_pause_alone_counts_as_one_that_reviews(alice: Owner) -> None:
    idle_session(alice, memory_review_interval=0)
    book = book_get_or_create(alice.pk, "main")
    assert review_facts([book], timezone.now())[book.pk].figures["reviews_on"] is True
    Agent.objects.update(settings={})
    agent_make("assistant", memory_review_interval=0)
    assert review_facts([book], timezone.now())[book.pk].figures["reviews_on"] is False


def test_an_idle_review_is_made_once_a_pause(alice: Owner) -> None:
    session = idle_session(alice)
    sweep_after(31)
    ReviewRun.objects.update(state="failed")
    assert sweep_after(60) == 0
    with time_machine.travel(timezone.now() + timedelta(hours=2), tick=False):
        say(session, "Still there?")
        assert sweep_after(31) == 1


def test_a_pause_after_a_failed_review_reads_its_turns_again(alice: Owner) -> None:
    session = idle_session(alice, memory_review_interval=1)
    ReviewRun.objects.update(state="failed")
    assert counted(session) == 0
    assert sweep_after(31) == 1
    assert newest_review().first_seq == 1


def test_a_pause_with_nothing_unreviewed_schedules_nothing(alice: Owner, model: ScriptedModel) -> None:
    session = idle_session(alice)
    model.script(DONE)
    run_review(review_session(alice.pk, session.pk))
    assert sweep_after(31) == 0


def test_a_temporary_session_has_no_idle_review(alice: Owner) -> None:
    idle_session(alice)
    Session.objects.update(temporary=True)
    assert sweep_after(31) == 0
