"""What was stored while a clock was a year ahead holds nothing up once the clock is right again"""

from datetime import timedelta
from typing import Any

import pytest
from axes.models import AccessAttempt
from django.contrib.auth.models import User
from django.utils import timezone

from gateway.accounts.sign_in import attempts_purge, signed_in_recently
from gateway.agents.configuration import consolidation_settings
from gateway.models import Session, Webhook
from gateway.sessions.keeping import sessions_purge
from gateway.webhooks.delivery import _due
from memories.models import Memory, Owner
from memories.services.annotations import keywords_claim, keywords_wanted
from reviews.consolidation import runs, selection
from reviews.consolidation.extraction import retry_pause
from reviews.consolidation.standing import standing_of
from reviews.models import ConsolidationRun, ConsolidationState, Extraction, ReviewRun
from reviews.services import expire_leases
from reviews.sweep import review_idle_sessions
from tests.factories import agent_make, memory_make, review_make
from tests.reviews.consolidation.rows import book_of, request, settings_make, talk

pytestmark = pytest.mark.usefixtures("consolidation_on")
YEAR = timedelta(days=365)


@pytest.mark.parametrize("state", ["scheduled", "paused"])
def test_a_consolidation_is_resumed(alice: Owner, state: str) -> None:
    session, ahead = talk(alice), timezone.now() + YEAR
    run = request(alice)
    ConsolidationRun.objects.update(state=state, not_before=ahead, enqueued_at=ahead)
    values = {"owner": alice, "book": run.book, "state": "queued", "said_at": session.last_active_at}
    Extraction.objects.create(session=session, run=run, not_before=ahead, **values)
    assert runs.recover() == 1
    assert Extraction.objects.get().not_before <= timezone.now()


def test_a_pause_of_a_day_is_kept(alice: Owner) -> None:
    talk(alice)
    request(alice)
    ConsolidationRun.objects.update(state="paused", not_before=timezone.now() + timedelta(hours=23), enqueued_at=None)
    assert runs.recover() == 0


def test_no_pause_is_longer_than_a_day() -> None:
    assert retry_pause(20, 86_400) == timedelta(days=1)


def test_a_review_that_was_postponed_to_the_next_day_begins(alice: Owner) -> None:
    review_make(book_of_memory(alice), "scheduled", not_before=timezone.now() + YEAR)
    expire_leases(timezone.now())
    assert ReviewRun.objects.get().not_before <= timezone.now()


def test_the_documents_of_a_book_are_written_again(alice: Owner) -> None:
    settings_make(synthesis_cooldown_hours=6)
    state = ConsolidationState(owner=alice, book=book_of_memory(alice), last_synthesis_at=timezone.now() + YEAR)
    limits = selection_limits()
    assert selection.cooldown_over(state, limits)
    state.changes = 1
    state.save()
    assert selection.due_books(limits, max_books=5) == [state.book]


def test_a_session_is_read_and_reviewed(alice: Owner) -> None:
    settings_make(min_rollout_idle_hours=12)
    talk(alice, agent=agent_make("assistant", memory_review_idle_minutes=30))
    Session.objects.update(last_active_at=timezone.now() + YEAR)
    assert standing_of(book_of(alice)).ready == 1
    assert [review_idle_sessions(), review_idle_sessions()] == [1, 0]
    ReviewRun.objects.update(state="failed")
    assert review_idle_sessions() == 0


def test_a_deleted_session_is_removed(alice: Owner) -> None:
    talk(alice)
    Session.objects.update(deleted_at=timezone.now() + YEAR)
    assert sessions_purge(timezone.now()) == 1
    assert not Session.with_deleted.exists()


def test_keywords_are_requested_again(alice: Owner) -> None:
    memory = memory_make(alice)
    assert keywords_claim(memory)
    assert not Memory.objects.filter(keywords_wanted()).exists()
    Memory.objects.update(keywords_for=f"claimed at {int((timezone.now() + YEAR).timestamp())}")
    assert Memory.objects.filter(keywords_wanted()).exists()


def test_a_webhook_is_tried_again(alice: Owner) -> None:
    memory_make(alice)
    Owner.objects.update(notification_seq=5)
    Webhook.objects.create(owner=alice, url="https://example.org", next_attempt_at=timezone.now() + YEAR)
    assert _due(timezone.now()).count() == 1


def test_nobody_stays_locked_out_or_recently_signed_in(alice: Owner) -> None:
    AccessAttempt.objects.create(username="alice", failures_since_start=50)
    AccessAttempt.objects.update(attempt_time=timezone.now() + YEAR)
    attempts_purge()
    assert not AccessAttempt.objects.exists()
    assert not signed_in_recently(User(last_login=timezone.now() + YEAR))
    assert signed_in_recently(User(last_login=timezone.now()))


def book_of_memory(owner: Owner) -> Any:
    return memory_make(owner).book


def selection_limits() -> Any:
    return consolidation_settings()
