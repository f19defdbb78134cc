"""Clearing a book, undoing a clear, and forgetting: nothing reappears, and nothing else is removed."""

import json
from datetime import timedelta
from itertools import pairwise, permutations
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models import F
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from gateway.models import Agent, Session
from gateway.services import session_forget
from memories.artifacts.store import artifact_put, live_artifacts
from memories.database.ageing import AgeScan
from memories.database.batches import finish
from memories.errors import Conflict
from memories.history.undo import change_set_get
from memories.models import (
    Artifact,
    ArtifactRevision,
    Book,
    ChangeSet,
    ClearCode,
    Memory,
    Notification,
    Owner,
    Revision,
    ThreadRecord,
    WriteOrigin,
)
from memories.recall.threads import record_run
from memories.services import (
    MemoryFields,
    Source,
    book_get_or_create,
    book_limits_set,
    book_writing,
    revisions_purge,
)
from reviews.approvals import review_approve, review_reject
from reviews.consolidation import runs
from reviews.consolidation.clear import clear_code_create, clear_confirmed, contents_of
from reviews.consolidation.extraction import choose_sessions
from reviews.consolidation.selection import notes_in
from reviews.forgetting import purge_cleared
from reviews.frozen import read_frozen
from reviews.models import ClearedReview, ConsolidationRun, ConsolidationState, Extraction, ReviewRun
from tests.factories import agent_make, memory_make, review_make, session_make
from tests.reviews.consolidation.answering_model import AnsweringModel, extraction, synthesis, text_of
from tests.reviews.consolidation.rows import add_turns, book_of, consolidate, document, notes, request, run_slice, talk
from tests.unsliced import book_clear, forget_memories, import_text, session_delete, undo_changes

pytestmark = pytest.mark.usefixtures("consolidation_on")
BY_HAND = Source(actor="user:1", origin=WriteOrigin.USER, kind=ChangeSet.Kind.UNDO)


def clear(owner: Owner) -> ChangeSet:
    return ChangeSet.objects.select_related("book").get(pk=book_clear(book_of(owner), actor="user:1").change_set)


def record(session: Session) -> None:
    for run in session.runs.all():
        record_run(owner_id=session.owner_id, session_id=session.pk, run_id=run.pk, after=session.last_active_at)


def proposal_make(session: Session) -> ReviewRun:
    """Create a review with one write that waits for a person."""
    write = {
        "index": 0, "action": "add", "memory_id": None, "key": "n1", "version": 0, "target": "user", "category": "food",
        "keywords": [], "before": None, "after": "Likes tea.", "state": "waiting", "reason": "",
    }  # fmt: skip
    since = timezone.now() - timedelta(days=1)
    book = book_of(session.owner)
    return review_make(
        book,
        "awaiting_approval",
        session=session,
        writes=[write],
        finished_at=since,
        book_epoch=book.epoch,
        settings={"memory_review_interval": 10},
    )


def fill_book(owner: Owner) -> Session:
    """Create a book with a memory, documents, notes, and thread records."""
    session = talk(owner, "I deploy with make ship.")
    record(session)
    memory_make(owner, "Likes tea.")
    consolidate(owner)
    return session


def live_counts(owner: Owner, book: str = "main") -> tuple[int, int, int, int]:
    """Return the numbers of memories, documents, notes, and thread records."""
    row = book_of(owner, book)
    return (
        Memory.objects.filter(book=row, deleted_at=None).count(),
        live_artifacts(owner.pk, row.pk).count(),
        Extraction.objects.filter(book=row, cleared_at=None).exclude(raw_memory="").count(),
        ThreadRecord.objects.filter(owner=owner, cleared_at=None, session_id__in=_sessions(owner, book)).count(),
    )


def _sessions(owner: Owner, book: str) -> list[Any]:
    return list(Session.objects.filter(owner=owner, agent__book=book).values_list("pk", flat=True))


def test_a_clear_removes_everything_from_only_this_book(
    alice: Owner, charlie: Owner, answering: AnsweringModel
) -> None:
    fill_book(alice)
    other = talk(alice, agent=agent_make("other", book="other"))
    record(other)
    memory_make(alice, "Kept.", book="other")
    fill_book(charlie)
    clear(alice)
    assert live_counts(alice) == (0, 0, 0, 0)
    assert live_counts(alice, "other") == (1, 0, 0, 1)
    assert live_counts(charlie) == (1, 2, 1, 1)
    assert Session.objects.count() == 3, "transcripts are kept"


def test_a_clear_is_one_change_set_that_can_be_undone(alice: Owner, answering: AnsweringModel) -> None:
    fill_book(alice)
    before = (live_counts(alice), notes(alice), document(alice, "MEMORY.md"))
    change_set = clear(alice)
    undo_changes(change_set, BY_HAND)
    assert (live_counts(alice), notes(alice), document(alice, "MEMORY.md")) == before
    undo = ChangeSet.objects.filter(undoes=change_set).get()
    undo_changes(undo, BY_HAND)
    assert live_counts(alice) == (0, 0, 0, 0)


def test_cleared_sessions_are_not_consolidated_again(alice: Owner, answering: AnsweringModel) -> None:
    session = fill_book(alice)
    talk(alice, "Never consolidated yet.")
    clear(alice)
    answering.calls.clear()
    assert consolidate(alice).state == "nothing_to_do"
    session.refresh_from_db()
    add_turns(session, "A new fact.")
    consolidate(alice)
    assert answering.extracted == [str(session.pk)]
    assert "A new fact." in text_of(answering.calls[0])
    assert "make ship" not in text_of(answering.calls[0])


def test_a_review_after_a_clear_reads_nothing_from_before(alice: Owner, answering: AnsweringModel) -> None:
    session = fill_book(alice)
    clear(alice)
    session.refresh_from_db()
    assert (session.reviewed_through, session.turns_since_memory_review) == (session.message_seq, 0)
    add_turns(session, "A new fact.")
    review = review_make(book_of(alice), session=session, last_seq=session.message_seq)
    frozen = read_frozen(review, reviewed_through=session.reviewed_through)
    assert [message["content"] for message in frozen.messages] == ["A new fact.", "Noted: A new fact."]


def test_a_clear_cancels_open_reviews_and_consolidations(alice: Owner, answering: AnsweringModel) -> None:
    session = talk(alice)
    book = book_of(alice)
    waiting = review_make(book, "awaiting_approval", session=session, writes=[{"after": "Likes tea."}])
    scheduled = review_make(book, "scheduled", session=session)
    saved = review_make(book, session=session, writes=[{"after": "Old."}])
    run = request(alice)
    epoch = book_of(alice).epoch
    clear(alice)
    for row in (waiting, scheduled, saved, run):
        row.refresh_from_db()
    assert (waiting.state, waiting.writes, scheduled.state) == ("cancelled", [], "cancelled")
    assert (saved.state, len(saved.writes)) == ("saved", 1)
    assert (run.state, book_of(alice).epoch) == ("cancelled", epoch + 1)


def test_undoing_a_clear_restores_waiting_proposals(alice: Owner) -> None:
    session = talk(alice)
    waiting = proposal_make(session)
    since = waiting.finished_at
    change_set = clear(alice)
    waiting.refresh_from_db()
    assert (waiting.state, waiting.writes) == ("cancelled", [])
    undo_changes(change_set, BY_HAND)
    waiting.refresh_from_db()
    assert (waiting.state, waiting.finished_at, waiting.error) == ("awaiting_approval", since, None)
    review_approve(waiting, actor="user:1")
    assert Memory.objects.get(deleted_at=None).content == "Likes tea."


def test_waiting_proposals_are_counted_before_a_clear(alice: Owner) -> None:
    proposal_make(talk(alice))
    assert contents_of(book_of(alice)).proposals == 1


def test_redoing_a_clear_cancels_the_proposals_again(alice: Owner) -> None:
    waiting, other = proposal_make(talk(alice)), proposal_make(talk(alice))
    memory_make(alice, "Likes coffee.")
    change_set = clear(alice)
    undo_changes(change_set, BY_HAND)
    review_reject(ReviewRun.objects.get(pk=other.pk), actor="user:1")
    undo = ChangeSet.objects.get(undoes=change_set)
    undo_changes(undo, BY_HAND)
    waiting.refresh_from_db()
    assert (waiting.state, waiting.writes) == ("cancelled", [])
    undo_changes(ChangeSet.objects.get(undoes=undo), BY_HAND)
    waiting.refresh_from_db()
    other.refresh_from_db()
    assert (waiting.state, waiting.writes[0].after) == ("awaiting_approval", "Likes tea.")
    assert (other.state, other.error["code"]) == ("cancelled", "rejected"), "a person's decision is final"


def test_undoing_a_clear_leaves_no_session_waiting_for_a_run_that_it_ended(alice: Owner) -> None:
    session = talk(alice)
    claim = runs.claim(request(alice).pk)
    assert claim is not None
    assert choose_sessions(claim) == 1
    undo_changes(clear(alice), BY_HAND)
    row = Extraction.objects.get(session=session)
    assert (row.state, row.through_seq, row.run.state) == ("passed", 0, "cancelled")


def test_undoing_a_clear_leaves_an_earlier_clear_in_effect(alice: Owner, answering: AnsweringModel) -> None:
    unchanged, continued = fill_book(alice), talk(alice, "I like tea.")
    consolidate(alice)
    earlier = clear(alice)
    add_turns(continued, "A new fact.")
    undo_changes(clear(alice), BY_HAND)
    assert live_counts(alice)[2] == 0
    row = Extraction.objects.get(session=continued)
    assert (row.through_seq, row.floor_seq) == (2, 2), "the new turn is read"
    undo_changes(earlier, BY_HAND)
    assert set(notes(alice)) == {str(unchanged.pk), str(continued.pk)}
    row = Extraction.objects.get(session=unchanged)
    assert (row.state, row.through_seq, row.floor_seq) == ("extracted", 2, 0)


@pytest.mark.parametrize("redone", [False, True])
def test_clears_can_be_undone_in_any_order(alice: Owner, answering: AnsweringModel, redone: bool) -> None:
    session = talk(alice, "I like tea.")
    consolidate(alice)
    earlier = clear(alice)
    add_turns(session, "A new fact.")
    later = clear(alice)
    undone = undo_changes(earlier, BY_HAND)
    assert not notes(alice), "the later clear is in effect"
    if redone:
        undo_changes(change_set_get(alice.pk, undone.change_set), BY_HAND)
    undo_changes(later, BY_HAND)
    assert set(notes(alice)) == (set() if redone else {str(session.pk)})
    if not redone:
        undo_changes(change_set_get(alice.pk, undone.change_set), BY_HAND)
        assert not notes(alice), "the earlier clear is in effect again"


@pytest.mark.any_database
@pytest.mark.parametrize("order", [*permutations(range(3))])
def test_when_all_clears_are_undone_everything_is_read_and_reviewed_as_before(
    alice: Owner, answering: AnsweringModel, order: tuple[int, ...]
) -> None:
    session = talk(alice, "I like tea.")
    consolidate(alice)
    cleared = []
    for _ in order:
        session.refresh_from_db()
        add_turns(session, "A new fact.")
        Session.objects.update(turns_since_memory_review=F("turns_since_memory_review") + 1)
        cleared.append(clear(alice))
    for number in order:
        assert not notes(alice)
        undo_changes(cleared[number], BY_HAND)
    row = Extraction.objects.select_related("session").get()
    assert (row.state, row.through_seq, row.floor_seq, row.cleared_at) == ("extracted", 2, 0, None)
    assert (row.session.reviewed_through, row.session.turns_since_memory_review) == (0, 3)


def test_a_clear_that_found_nothing_more_stays_in_effect_when_an_earlier_one_is_undone(
    alice: Owner, answering: AnsweringModel
) -> None:
    session = fill_book(alice)
    waiting = proposal_make(session)
    before = live_counts(alice)
    earlier, later = clear(alice), clear(alice)
    undone = change_set_get(alice.pk, undo_changes(earlier, BY_HAND).change_set)
    waiting.refresh_from_db()
    assert (live_counts(alice)[2:], waiting.state) == ((0, 0), "cancelled")
    undo_changes(undone, BY_HAND)
    undo_changes(later, BY_HAND)
    waiting.refresh_from_db()
    assert (live_counts(alice)[2:], waiting.state) == ((0, 0), "cancelled"), "the earlier one is in effect again"
    undo_changes(ChangeSet.objects.get(undoes=undone), BY_HAND)
    waiting.refresh_from_db()
    assert (live_counts(alice), waiting.state) == (before, "awaiting_approval")
    assert set(notes(alice)) == {str(session.pk)}
    review_approve(waiting, actor="user:1")


@pytest.mark.parametrize("order", [*permutations(range(4))])
def test_when_all_clears_are_undone_notes_are_as_before_also_if_some_found_nothing_more(
    alice: Owner, answering: AnsweringModel, order: tuple[int, ...]
) -> None:
    session = talk(alice, "I like tea.")
    consolidate(alice)
    cleared = [clear(alice), clear(alice)]
    session.refresh_from_db()
    add_turns(session, "A new fact.")
    cleared += [clear(alice), clear(alice)]
    for number in order:
        assert not notes(alice), "a clear is in effect"
        undo_changes(cleared[number], BY_HAND)
    row = Extraction.objects.select_related("session").get()
    assert (row.state, row.through_seq, row.floor_seq, row.cleared_at) == ("extracted", 2, 0, None)
    assert row.session.reviewed_through == 0


def test_a_clear_stays_undone_after_its_revisions_were_deleted(alice: Owner) -> None:
    session = talk(alice)
    record(session)
    memory = memory_make(alice, "Likes tea.")
    undo_changes(clear(alice), BY_HAND)
    with book_writing(book_of(alice), BY_HAND) as writer:
        writer.update(memory.number, MemoryFields(content="Likes coffee."))
    before = live_counts(alice)
    revisions_purge(timezone.now() + timedelta(days=1), scans=(AgeScan(), AgeScan()), seconds=1.0)
    assert Revision.objects.count() == 1
    undo_changes(clear(alice), BY_HAND)
    assert live_counts(alice) == before == (1, 0, 0, 1)


def test_a_rejected_write_can_be_approved_after_a_clear_was_undone(alice: Owner) -> None:
    rejected = review_reject(proposal_make(talk(alice)), actor="user:1")
    earlier = clear(alice)
    since = review_reject(proposal_make(talk(alice)), actor="user:1")
    later = clear(alice)
    undo_changes(later, BY_HAND)
    assert review_approve(since, actor="user:1").writes[0].state == "applied"
    undone = change_set_get(alice.pk, undo_changes(earlier, BY_HAND).change_set)
    undo_changes(undone, BY_HAND)
    with transaction.atomic(), pytest.raises(Conflict, match="cleared"):
        review_approve(rejected, actor="user:1")


@pytest.mark.parametrize("undone", [True, False])
def test_a_write_rejected_before_two_clears_is_approved_only_if_both_were_undone(alice: Owner, undone: bool) -> None:
    rejected = review_reject(proposal_make(talk(alice)), actor="user:1")
    earlier, later = clear(alice), clear(alice)
    undo_changes(later, BY_HAND)
    if undone:
        undo_changes(earlier, BY_HAND)
        review_approve(rejected, actor="user:1")
    else:
        with pytest.raises(Conflict, match="cleared"):
            review_approve(rejected, actor="user:1")


def test_a_redo_of_a_clear_that_is_repeated_changes_nothing(alice: Owner, answering: AnsweringModel) -> None:
    session = fill_book(alice)
    before = (live_counts(alice), notes(alice))
    cleared = clear(alice)
    undone = change_set_get(alice.pk, undo_changes(cleared, BY_HAND).change_set)
    undo_changes(undone, BY_HAND)
    session.refresh_from_db()
    add_turns(session, "A new fact.")
    undo_changes(undone, BY_HAND)
    assert Extraction.objects.get().floor_seq == 2, "the new turn will be read"
    undo_changes(cleared, BY_HAND)
    assert (live_counts(alice), notes(alice)) == before


@pytest.mark.any_database
def test_a_clear_can_be_undone_after_its_sessions_were_read_again(alice: Owner, answering: AnsweringModel) -> None:
    session = talk(alice, "I like tea.")
    consolidate(alice)
    earlier = clear(alice)
    session.refresh_from_db()
    add_turns(session, "A new fact.")
    later = clear(alice)
    session.refresh_from_db()
    add_turns(session, "A newer fact.")
    consolidate(alice)
    read = notes(alice)
    assert "A new fact." not in text_of(answering.calls[-2])
    undo_changes(later, BY_HAND)
    assert notes(alice) == read, "the earlier clear does not hide notes on what was said after it"
    consolidate(alice)
    assert "A new fact." in text_of(answering.calls[-2])
    assert "I like tea." not in text_of(answering.calls[-2])
    undo_changes(earlier, BY_HAND)
    consolidate(alice)
    assert "I like tea." in text_of(answering.calls[-2])
    row = Extraction.objects.select_related("session").get()
    assert (row.floor_seq, row.through_seq, row.session.reviewed_through) == (0, 6, 0)


def test_undoing_a_clear_restores_notes_also_if_another_book_was_cleared_since(
    alice: Owner, answering: AnsweringModel
) -> None:
    session = fill_book(alice)
    Agent.objects.update(book="second")
    second = book_get_or_create(alice.pk, "second")
    cleared = clear(alice)
    session.refresh_from_db()
    add_turns(session, "Said for the second book.")
    other = book_clear(second, actor="user:1").change_set
    assert not notes(alice)
    undo_changes(cleared, BY_HAND)
    assert set(notes(alice)) == {str(session.pk)}
    undo_changes(change_set_get(alice.pk, other), BY_HAND)
    assert set(notes(alice)) == {str(session.pk)}


@pytest.mark.any_database
def test_a_clear_can_be_redone_after_another_one_was_undone(alice: Owner, answering: AnsweringModel) -> None:
    proposal = proposal_make(fill_book(alice))
    undone = undo_changes(clear(alice), BY_HAND).change_set
    undo_changes(clear(alice), BY_HAND)
    record(talk(alice, "A new fact."))
    later = proposal_make(talk(alice))
    assert live_counts(alice) == (1, 2, 1, 2)
    redone = undo_changes(change_set_get(alice.pk, undone), BY_HAND).change_set
    assert live_counts(alice) == (0, 0, 0, 1), "only the new record stays"
    for review in (proposal, later):
        review.refresh_from_db()
    assert (proposal.state, proposal.writes, later.state) == ("cancelled", [], "awaiting_approval")
    undo_changes(change_set_get(alice.pk, redone), BY_HAND)
    proposal.refresh_from_db()
    assert (proposal.state, len(proposal.writes)) == ("awaiting_approval", 1)


def test_documents_can_be_undone_after_a_clear_of_them_was_undone(alice: Owner, answering: AnsweringModel) -> None:
    talk(alice)
    written = change_set_get(alice.pk, consolidate(alice).change_set)
    undo_changes(clear(alice), BY_HAND)
    undone = undo_changes(written, BY_HAND)
    assert (undone.documents, undone.documents_skipped) == (("MEMORY.md", "memory_summary.md"), ())
    assert not live_artifacts(alice.pk, book_of(alice).pk).exists()


def test_an_interrupted_clear_and_the_one_that_repeats_it_can_both_be_undone(
    alice: Owner, answering: AnsweringModel
) -> None:
    fill_book(alice)
    unread = talk(alice, "Not read yet.")
    before = (live_counts(alice), notes(alice))
    book = book_of(alice)
    work = clear_confirmed(book, clear_code_create(book), actor="user:1")
    while notes_in(book).exists():
        next(work)
    work.close()
    interrupted = ChangeSet.objects.select_related("book").get(kind=ChangeSet.Kind.CLEAR)
    undo_changes(clear(alice), BY_HAND)
    undo_changes(interrupted, BY_HAND)
    assert (live_counts(alice), notes(alice)) == (before[0], before[1] | {str(unread.pk): ""})
    assert Extraction.objects.get(session=unread).floor_seq == 0


def test_a_book_that_an_agent_changed_to_can_be_cleared(alice: Owner, answering: AnsweringModel) -> None:
    session = fill_book(alice)
    Agent.objects.update(book="second")
    add_turns(session, "Said for the second book.")
    second = book_get_or_create(alice.pk, "second")
    cleared = book_clear(second, actor="user:1").change_set
    row = Extraction.objects.get(session=session)
    assert (row.through_seq, row.floor_seq, live_counts(alice)[2]) == (4, 4, 1), "the notes are the first book's"
    undo_changes(ChangeSet.objects.select_related("book").get(pk=cleared), BY_HAND)
    row.refresh_from_db()
    assert (row.through_seq, row.floor_seq, live_counts(alice)[2]) == (2, 0, 1)


def test_a_clear_removes_the_notes_on_sessions_whose_agent_has_another_book_by_now(
    alice: Owner, answering: AnsweringModel
) -> None:
    fill_book(alice)
    Agent.objects.update(book="second")
    clear(alice)
    assert live_counts(alice)[2] == 0


@pytest.mark.parametrize("book", [None, "second"])
def test_after_a_forgetting_nothing_said_for_a_book_that_an_agent_changed_to_is_read(
    alice: Owner, answering: AnsweringModel, book: str | None
) -> None:
    session = fill_book(alice)
    Agent.objects.update(book="second")
    add_turns(session, "Said for the second book.")
    book_get_or_create(alice.pk, "second")
    forget_memories(alice.pk, book=book)
    assert Extraction.objects.get().floor_seq == 4
    assert live_counts(alice)[2] == (1 if book else 0)


def test_undoing_a_clear_restores_how_far_sessions_were_reviewed(alice: Owner) -> None:
    session, other = talk(alice, "One.", "Two."), talk(alice, "Three.")
    Session.objects.filter(pk=session.pk).update(reviewed_through=2, turns_since_memory_review=1)
    memory_make(alice, "Likes coffee.")
    change_set = clear(alice)
    session.refresh_from_db()
    add_turns(session, "Four.")
    Session.objects.filter(pk=session.pk).update(turns_since_memory_review=1)
    Session.objects.filter(pk=other.pk).update(message_seq=4, reviewed_through=4)
    undo_changes(change_set, BY_HAND)
    session.refresh_from_db()
    other.refresh_from_db()
    assert (session.reviewed_through, session.turns_since_memory_review) == (2, 2)
    assert other.reviewed_through == 4, "it was reviewed since"
    undo_changes(ChangeSet.objects.get(undoes=change_set), BY_HAND)
    session.refresh_from_db()
    assert (session.reviewed_through, session.turns_since_memory_review) == (session.message_seq, 0)


def test_proposals_of_a_forgotten_session_are_not_restored(alice: Owner) -> None:
    forgotten, deleted = talk(alice), talk(alice)
    reviews = [proposal_make(forgotten), proposal_make(deleted)]
    change_set = clear(alice)
    session_forget(forgotten)
    session_delete(deleted)
    assert not ClearedReview.objects.exists()
    undo_changes(change_set, BY_HAND)
    for run in reviews:
        run.refresh_from_db()
        assert (run.state, run.writes) == ("cancelled", [])


def test_forgetting_everything_deletes_cleared_proposals(alice: Owner) -> None:
    proposal_make(talk(alice))
    clear(alice)
    assert ClearedReview.objects.exists()
    forget_memories(alice.pk)
    assert not ClearedReview.objects.exists()


def test_cleared_proposals_are_purged_after_the_undo_period(alice: Owner) -> None:
    proposal_make(talk(alice))
    clear(alice)
    purge_cleared(timezone.now() - timedelta(days=30))
    assert ClearedReview.objects.exists()
    ClearedReview.objects.update(cleared_at=timezone.now() - timedelta(days=31))
    purge_cleared(timezone.now() - timedelta(days=30))
    assert not ClearedReview.objects.exists()


def test_an_undo_needs_no_more_queries_for_more_sessions(alice: Owner) -> None:
    def count_queries() -> int:
        change_set = clear(alice)
        with CaptureQueriesContext(connection) as queries:
            undo_changes(change_set, BY_HAND)
        return len(queries)

    talk(alice)
    count_queries()  # the next one follows it
    expected = count_queries()
    for _ in range(6):
        talk(alice)
    assert count_queries() == expected


@pytest.mark.parametrize("phase", ["extraction", "synthesis"])
def test_a_clear_during_a_model_call_wins(alice: Owner, answering: AnsweringModel, phase: str) -> None:
    talk(alice)

    def clear_meanwhile(answer: str) -> str:
        clear(alice)
        return answer

    if phase == "extraction":
        answering.on_extraction = lambda *_: clear_meanwhile(extraction("- Late", "Late."))
    else:
        answering.on_synthesis = lambda _: clear_meanwhile(synthesis("# Late"))
    run = run_slice(request(alice))
    assert run.state == "cancelled"
    assert live_counts(alice)[1:3] == (0, 0)


def test_a_clear_code_is_valid_once_for_one_book_and_expires(alice: Owner) -> None:
    talk(alice)
    memory_make(alice, "Kept.", book="other")
    code = clear_code_create(book_of(alice))
    with pytest.raises(Conflict, match="not valid"):
        finish(clear_confirmed(book_of(alice, "other"), code, actor="user:1"))
    newer = clear_code_create(book_of(alice))
    with pytest.raises(Conflict, match="not valid"):
        finish(clear_confirmed(book_of(alice), code, actor="user:1"))
    ClearCode.objects.update(expires_at=timezone.now())
    with pytest.raises(Conflict, match="not valid"):
        finish(clear_confirmed(book_of(alice), newer, actor="user:1"))
    last = clear_code_create(book_of(alice))
    assert finish(clear_confirmed(book_of(alice), last, actor="user:1")).change_set


def test_documents_are_rewritten_without_a_deleted_sessions_notes(alice: Owner, answering: AnsweringModel) -> None:
    deleted, remaining = talk(alice, "Secret plan."), talk(alice, "Open plan.")
    answering.on_synthesis = lambda _: synthesis("- Secret plan.\n- Open plan.")
    consolidate(alice)
    record(deleted)
    session_delete(deleted)
    assert list(notes(alice)) == [str(remaining.pk)]
    assert not ThreadRecord.objects.filter(session_id=deleted.pk).exists()
    answering.on_synthesis = lambda _: synthesis("- Open plan.")
    consolidate(alice)
    assert "Secret plan." not in answering.syntheses[-1], "the old documents are not sent either"
    assert document(alice, "MEMORY.md") == "- Open plan."


def test_without_notes_documents_are_reduced_to_peoples_lines(alice: Owner, answering: AnsweringModel) -> None:
    session = fill_book(alice)
    by_hand = Source(actor="user:1", origin=WriteOrigin.USER)
    artifact_put(book_of(alice), "MEMORY.md", f"{document(alice, 'MEMORY.md')}\n- By hand.", by_hand)
    answering.calls.clear()
    session_delete(session)
    run = consolidate(alice)
    assert (document(alice, "MEMORY.md"), document(alice, "memory_summary.md")) == ("- By hand.", "")
    assert (run.removed, answering.calls) == (["memory_summary.md"], [])


def test_without_notes_a_document_of_peoples_lines_only_stays_as_it_is(alice: Owner, answering: AnsweringModel) -> None:
    session = fill_book(alice)
    text = "# Deploy\n\n```sh\nmake ship\n```\n\n| step | by |\n|---|---|\n| ship | Ann |\n\nThen again:\n\nmake ship"
    artifact_put(book_of(alice), "skills/deploy/SKILL.md", text, Source(actor="user:1", origin=WriteOrigin.USER))
    session_delete(session)
    run = consolidate(alice)
    skill = live_artifacts(alice.pk, book_of(alice).pk).get(path="skills/deploy/SKILL.md")
    assert (skill.content, skill.version, skill.write_origin) == (text, 1, WriteOrigin.USER)
    assert run.written == []


def test_a_session_can_be_forgotten_without_being_deleted(alice: Owner, answering: AnsweringModel) -> None:
    session = fill_book(alice)
    session_forget(session)
    assert live_counts(alice)[2:] == (0, 0)
    assert Session.objects.filter(pk=session.pk).exists()
    answering.calls.clear()
    assert consolidate(alice).sessions_total == 0
    session.refresh_from_db()
    add_turns(session, "A new fact.")
    answering.calls.clear()
    consolidate(alice)
    assert "make ship" not in text_of(answering.calls[0])


def test_a_session_deleted_during_its_extraction_leaves_nothing(alice: Owner, answering: AnsweringModel) -> None:
    session = talk(alice)

    def delete_meanwhile(*_: object) -> str:
        session_delete(session)
        return extraction("- Late", "Late.")

    answering.on_extraction = delete_meanwhile
    run = consolidate(alice)
    assert not Extraction.objects.exists()
    assert (run.sessions_done, run.written) == (0, [])


def test_a_session_deleted_during_the_synthesis_is_not_in_the_documents(
    alice: Owner, answering: AnsweringModel
) -> None:
    deleted, _ = talk(alice, "Secret plan."), talk(alice, "Open plan.")
    answering.on_extraction = lambda session, _: extraction(f"- {session}", "S")

    def delete_meanwhile(_: object) -> str:
        if len(answering.syntheses) == 1:
            session_delete(deleted)
        return synthesis(f"Try {len(answering.syntheses)}")

    answering.on_synthesis = delete_meanwhile
    consolidate(alice)
    assert str(deleted.pk) not in answering.syntheses[1]
    assert document(alice, "MEMORY.md") == "Try 2"


def test_forgetting_everything_deletes_all_rows(alice: Owner, charlie: Owner, answering: AnsweringModel) -> None:
    fill_book(alice)
    fill_book(charlie)
    receipt = forget_memories(alice.pk)
    assert (receipt.erased["artifacts"], receipt.erased["extractions"]) == (2, 1)
    assert not Artifact.objects.filter(owner=alice).exists()
    assert not ArtifactRevision.objects.filter(owner=alice).exists()
    assert not Extraction.objects.filter(owner=alice).exclude(raw_memory="", synopsis="").exists()
    assert not ConsolidationRun.objects.filter(owner=alice).exists()
    assert not ConsolidationState.objects.filter(owner=alice).exists()
    assert Artifact.objects.filter(owner=charlie).count() == 2
    answering.calls.clear()
    assert consolidate(alice).sessions_total == 0
    assert answering.calls == []


def test_extractions_cleared_long_ago_are_emptied(alice: Owner, answering: AnsweringModel) -> None:
    fill_book(alice)
    clear(alice)
    assert purge_cleared(timezone.now() - timedelta(days=30)) == 0
    Extraction.objects.update(cleared_at=timezone.now() - timedelta(days=31))
    assert purge_cleared(timezone.now() - timedelta(days=30)) == 1
    assert Extraction.objects.get().raw_memory == ""


def test_a_temporary_session_does_not_affect_a_clear(alice: Owner, agent: Agent, answering: AnsweringModel) -> None:
    session_make(alice, agent, temporary=True)
    talk(alice)
    clear(alice)
    assert Extraction.objects.count() == 1
    assert Book.objects.count() == 1
    assert runs.recover() == 0


def test_a_large_book_is_cleared_in_batches_and_restored(alice: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reviews.consolidation.clear.FIRST_BATCH", 40)
    many = 100  # the first batch, one of the usual size, and a rest
    book_limits_set({"main": (0, 0)})
    lines = "\n".join(json.dumps({"content": f"Likes tea number {number}."}) for number in range(many))
    import_text(alice.pk, lines)
    book = Book.objects.get()
    cleared = book_clear(book, actor="user:1")
    assert len(cleared.changes) == cleared.contents.memories == many
    assert not Memory.objects.filter(deleted_at=None).exists()
    assert Revision.objects.filter(change_set=cleared.change_set).count() == many
    undo_changes(change_set_get(alice.pk, cleared.change_set), BY_HAND)
    assert Memory.objects.filter(deleted_at=None).count() == many


def test_many_sessions_are_cleared_in_slices(alice: Owner, agent: Agent, answering: AnsweringModel) -> None:
    """No transaction handles all of 120 sessions, and notes taken in the meantime are cleared as well."""
    first = talk(alice, "I deploy with make ship.")
    Session.objects.bulk_create(Session(owner=alice, agent=agent, title=str(number)) for number in range(120))
    book = book_of(alice)
    clearing = clear_confirmed(book, clear_code_create(book), actor="user:1")
    cleared_counts = []
    for _ in clearing:
        cleared_counts.append(Extraction.objects.exclude(cleared_at=None).count())
        if len(cleared_counts) == 3:
            Extraction.objects.filter(session=first).update(raw_memory="Deploys.", cleared_at=None, cleared_by=None)
    steps = [later - earlier for earlier, later in pairwise(cleared_counts)]
    assert sum(step > 0 for step in steps) > 1
    assert max(steps) <= 110
    assert not Extraction.objects.filter(cleared_at=None).exists()
    assert Extraction.objects.count() == 121


def test_clearing_only_documents_sends_a_notification(alice: Owner, answering: AnsweringModel) -> None:
    talk(alice)
    consolidate(alice)
    before = Notification.objects.count()
    clear(alice)
    assert Notification.objects.count() == before + 1
