"""Transactions that lock the same rows do so in one order (ARCHITECTURE.md), so none ends in a deadlock."""

from datetime import timedelta

import pytest
from django.utils import timezone

from gateway.models import Agent, Run, Session
from gateway.sweep import count_recalls
from memories.database.batches import finish
from memories.errors import UpstreamError
from memories.models import ChangeSet, Lease, Memory, Owner
from memories.services import MemoryFields, book_writing
from memories.services.annotations import verdicts_store
from memories.verdicts import ScanVerdict
from reviews.claiming import review_claim
from reviews.consolidation import runs
from reviews.consolidation.clear import clear_code_create, clear_confirmed
from reviews.consolidation.extraction import choose_sessions
from reviews.models import ConsolidationRun, Extraction, ReviewRun
from reviews.services import ReviewOutcome, review_finish
from tests.factories import BY_HAND, memory_make
from tests.overlapping import only_postgresql, overlap
from tests.reviews.consolidation.rows import add_turns, book_of, request, settings_make, talk
from tests.reviews.consolidation.test_clear import proposal_make
from tests.reviews.talk import due_review
from tests.unsliced import book_clear, session_delete, undo_changes

pytestmark = [pytest.mark.django_db(transaction=True), only_postgresql]


@pytest.fixture
def consolidation_on() -> None:
    settings_make()


def consolidation(owner: Owner, agent: Agent) -> tuple[Session, runs.ConsolidationClaim]:
    """Return a session that a claimed consolidation is about to read."""
    session = talk(owner, agent=agent)
    claim = runs.claim(request(owner).pk)
    assert claim is not None
    return session, claim


def cleared(owner: Owner) -> ChangeSet:
    return ChangeSet.objects.select_related("book").get(pk=book_clear(book_of(owner), actor="user:1").change_set)


def test_a_clear_waits_for_a_review_that_ends(alice: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    # As if the session had begun after the clear marked the sessions.
    monkeypatch.setattr("reviews.consolidation.clear.each_page", lambda *_: lambda limit: 0)
    claim = review_claim(due_review(alice).pk)
    assert claim is not None
    overlap(
        lambda: review_finish(claim, ReviewOutcome()),
        lambda: cleared(alice),
        pause_after="gateway_session FOR UPDATE",
    )
    assert ReviewRun.objects.get().state == ReviewRun.State.NOTHING_TO_SAVE


def test_the_undo_of_a_clear_waits_for_a_session_that_is_deleted(alice: Owner, agent: Agent) -> None:
    session = talk(alice, agent=agent)
    proposal_make(session)
    clear = cleared(alice)
    overlap(
        lambda: session_delete(session),
        lambda: undo_changes(clear, BY_HAND),
        pause_after="gateway_session FOR UPDATE",
    )
    assert ReviewRun.objects.get().state == ReviewRun.State.CANCELLED


@pytest.mark.usefixtures("consolidation_on")
def test_a_clear_waits_for_a_consolidation_that_chooses_its_sessions(alice: Owner, agent: Agent) -> None:
    _, claim = consolidation(alice, agent)
    book = book_of(alice)
    clear = clear_confirmed(book, clear_code_create(book), actor="user:1")
    next(clear)  # the code was used
    overlap(lambda: choose_sessions(claim), lambda: finish(clear), pause_after="INSERT reviews_extraction")
    assert ConsolidationRun.objects.get().state == ConsolidationRun.State.CANCELLED
    assert Extraction.objects.get().state == Extraction.State.PASSED


@pytest.mark.usefixtures("consolidation_on")
def test_a_consolidation_is_cancelled_while_it_chooses_its_sessions_again(alice: Owner, agent: Agent) -> None:
    session, claim = consolidation(alice, agent)
    choose_sessions(claim)
    ConsolidationRun.objects.update(selected=False)
    overlap(
        lambda: choose_sessions(claim),
        lambda: runs.cancel(claim.run, "Stopped by a person."),
        pause_after="memories_book FOR UPDATE",
    )
    assert ConsolidationRun.objects.get().state == ConsolidationRun.State.CANCELLED
    assert Extraction.objects.get(session=session).state == Extraction.State.PASSED


@pytest.mark.usefixtures("consolidation_on")
def test_a_worker_that_lost_its_lease_fails_a_run_while_another_claims_it(alice: Owner, agent: Agent) -> None:
    _, claim = consolidation(alice, agent)
    Lease.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    overlap(
        lambda: runs.claim(claim.run.pk),
        lambda: runs.fail(claim, UpstreamError("The server failed.")),
        pause_after="UPDATE memories_lease",
    )
    assert ConsolidationRun.objects.get().state == ConsolidationRun.State.RUNNING


def test_recalls_are_counted_while_the_same_memories_are_changed(alice: Owner, session: Session) -> None:
    first, second = memory_make(alice, "Likes tea."), memory_make(alice, "Likes rain.")
    recalled = [{"lane": "long_term", "memory_id": str(memory.number)} for memory in (first, second)]
    add_turns(session, "Hello.", recalled=recalled)

    def change() -> None:
        with book_writing(first.book, BY_HAND) as writer:
            writer.update(second.number, MemoryFields(content="Likes snow."))
            writer.update(first.number, MemoryFields(content="Likes coffee."))

    overlap(change, count_recalls, pause_after="INSERT memories_memory")
    assert sorted(Memory.objects.values_list("content", "usage_count")) == [("Likes coffee.", 1), ("Likes snow.", 1)]
    assert Run.objects.get().usage_counted


def test_verdicts_are_renewed_while_the_same_memories_are_changed(alice: Owner) -> None:
    first, second = memory_make(alice, "Likes tea."), memory_make(alice, "Likes rain.")

    def change() -> None:
        with book_writing(first.book, BY_HAND) as writer:
            writer.update(second.number, MemoryFields(content="Likes snow."))
            writer.update(first.number, MemoryFields(content="Likes coffee."))

    verdict = ScanVerdict(scan_hash="x", rule="", kind="", reason="")
    renewed: list[tuple[Memory, ScanVerdict]] = [(first, verdict), (second, verdict)]
    overlap(change, lambda: verdicts_store(renewed), pause_after="INSERT memories_memory")
    assert not Memory.objects.filter(scan_hash="x").exists(), "the changed texts were scanned when they were written"
