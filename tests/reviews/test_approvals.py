"""Writes of a review that wait for a person"""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.conf import settings
from django.db.models import F
from django.utils import timezone

from gateway.models import Session
from gateway.services import session_delete
from memories.errors import BlockedByScan, Conflict, InvalidRequest, OverBudget
from memories.models import Book, ChangeSet, Memory, Notification, Owner, Revision, WriteOrigin
from memories.services import MemoryFields, Source, book_writing
from reviews.approvals import expire_approvals, purge_proposals, review_approve, review_reject
from reviews.models import ReviewRun
from reviews.services import review_cancel
from reviews.sweep import reviews_sweep
from tests.factories import memory_make
from tests.reviews.talk import DONE, adds, deletes, newest_review, reviewed_session, run_review, say, updates
from tests.scripted_model import Says, ScriptedModel
from tests.unsliced import review_undo

Wait = Callable[..., ReviewRun]


@pytest.fixture
def wait(alice: Owner, model: ScriptedModel) -> Wait:
    """Make a review whose writes wait."""

    def make(*steps: Says, **settings: Any) -> ReviewRun:
        session = reviewed_session(alice, memory_review_approval=True, **settings)
        say(session)
        model.script(*(steps or (adds("Is vegetarian.", "Likes tea."),)), DONE)
        return run_review(newest_review())

    return make


def approve(review: ReviewRun, *only: int, edits: dict[int, str] | None = None) -> ReviewRun:
    return review_approve(review, actor="user:1", only=frozenset(only) if only else None, edits=edits)


def reject(review: ReviewRun, *only: int) -> ReviewRun:
    return review_reject(review, actor="user:1", only=frozenset(only) if only else None)


def contents() -> list[str]:
    return list(Memory.objects.filter(deleted_at=None).order_by("number").values_list("content", flat=True))


def states(review: ReviewRun) -> list[str]:
    return [write.state for write in review.writes]


def test_nothing_that_waits_is_stored_or_given_to_a_model(alice: Owner, wait: Wait) -> None:
    review = wait()
    assert (review.state, states(review), contents()) == ("awaiting_approval", ["waiting"] * 2, [])
    assert Session.objects.get().reviewed_through == 2
    note = Notification.objects.get()
    assert (note.kind, note.text, note.review_id) == (
        "review.awaiting_approval",
        "A review wants to save 2 memories.",
        review.pk,
    )


def test_approving_saves_all_in_the_name_of_the_review(wait: Wait) -> None:
    review = wait()
    done = approve(review)
    assert (done.state, states(done), contents()) == ("saved", ["applied"] * 2, ["Is vegetarian.", "Likes tea."])
    memory = Memory.objects.first()
    assert memory is not None
    assert (memory.write_origin, memory.review_id) == ("background_review", review.pk)
    change_set = ChangeSet.objects.get()
    assert (change_set.kind, change_set.actor, change_set.pk) == ("approval", "user:1", done.change_set)


def test_single_writes_are_approved_and_the_others_wait_on(wait: Wait) -> None:
    review = approve(wait(), 1)
    assert (review.state, states(review), contents()) == ("awaiting_approval", ["waiting", "applied"], ["Likes tea."])
    review = approve(review, 0)
    assert (review.state, states(review)) == ("saved", ["applied"] * 2)
    assert ChangeSet.objects.count() == 1
    assert len(review_undo(review, actor="user:1", origin=WriteOrigin.USER).undone) == 2


def test_words_may_be_edited_before(wait: Wait) -> None:
    review = approve(wait(), edits={1: "  Likes green tea. "})
    assert contents() == ["Is vegetarian.", "Likes green tea."]
    assert review.writes[1].edited


def test_rejecting_all_cancels_the_review(wait: Wait) -> None:
    review = reject(wait())
    assert (review.state, states(review), review.error["code"]) == ("cancelled", ["rejected"] * 2, "rejected")
    assert contents() == []


def test_rejecting_one_leaves_the_other(wait: Wait) -> None:
    review = reject(wait(), 0)
    assert (review.state, states(review)) == ("awaiting_approval", ["rejected", "waiting"])
    assert approve(review).state == "saved"
    assert contents() == ["Likes tea."]


def test_approve_still_takes_what_was_rejected_or_has_expired(wait: Wait) -> None:
    review = reject(wait())
    assert approve(review, 1).state == "saved"
    assert approve(review, 0).state == "saved"
    assert contents() == ["Likes tea.", "Is vegetarian."]


@pytest.mark.parametrize(("days", "expired"), [(13.9, False), (14.1, True)])
def test_it_expires_after_a_setting(wait: Wait, days: float, expired: bool) -> None:
    review = wait()
    with time_machine.travel(timezone.now() + timedelta(days=days), tick=False):
        assert expire_approvals(timezone.now()) == expired
    review.refresh_from_db()
    assert review.state == ("cancelled" if expired else "awaiting_approval")
    if expired:
        assert (states(review), review.error["code"]) == (["expired"] * 2, "expired")
        assert approve(review).state == "saved"


def test_a_partly_approved_review_that_expires_stays_saved(wait: Wait, settings: Any) -> None:
    settings.APPROVAL_DAYS = 1
    review = approve(wait(), 0)
    with time_machine.travel(timezone.now() + timedelta(days=2), tick=False):
        expire_approvals(timezone.now())
    review.refresh_from_db()
    assert (review.state, states(review)) == ("saved", ["applied", "expired"])


def test_the_words_of_what_was_rejected_are_purged_in_the_end(wait: Wait) -> None:
    review = reject(wait())
    with time_machine.travel(timezone.now() + timedelta(days=29), tick=False):
        assert purge_proposals(timezone.now()) == 0
    with time_machine.travel(timezone.now() + timedelta(days=31), tick=False):
        assert purge_proposals(timezone.now()) == 1
        assert purge_proposals(timezone.now()) == 0
    review.refresh_from_db()
    assert review.writes == []
    with pytest.raises(Conflict):
        approve(review)


@pytest.mark.parametrize(("seconds", "kept"), [(-1, 2), (1, 1)])
def test_what_was_rejected_beside_approved_writes_is_purged_too(wait: Wait, seconds: int, kept: int) -> None:
    with time_machine.travel(timezone.now(), tick=False):
        review = approve(reject(wait(), 0), 1)
        limit = timezone.now() + timedelta(days=settings.UNDO_DAYS, seconds=seconds)
    with time_machine.travel(limit, tick=False):
        reviews_sweep()
    review.refresh_from_db()
    assert (review.state, len(review.writes), states(review)[-1]) == ("saved", kept, "applied")
    assert ("Is vegetarian." in str(review.writes)) == (kept == 2)
    if kept == 1:
        with pytest.raises(InvalidRequest):
            approve(review, 0)
        assert review_undo(review, actor="user:1", origin=WriteOrigin.USER).undone == (1,)


def test_the_time_of_what_was_rejected_does_not_begin_anew_with_another_approval(wait: Wait) -> None:
    review = reject(wait(adds("Is vegetarian.", "Likes tea.", "Likes soup.")), 0)
    with time_machine.travel(timezone.now() + timedelta(days=10), tick=False):
        approve(review, 1)
    with time_machine.travel(timezone.now() + timedelta(days=settings.UNDO_DAYS, seconds=1), tick=False):
        assert purge_proposals(timezone.now()) == 1
    review.refresh_from_db()
    assert (review.state, states(review)) == ("awaiting_approval", ["applied", "waiting"])
    assert approve(review, 2).state == "saved"
    assert contents() == ["Likes tea.", "Likes soup."]


def test_what_an_undone_clear_brought_back_as_rejected_is_purged_too(wait: Wait) -> None:
    review = reject(wait(), 0)
    ReviewRun.objects.update(rejected_at=None)
    approve(review, 1)
    with time_machine.travel(timezone.now() + timedelta(days=settings.UNDO_DAYS, seconds=1), tick=False):
        assert purge_proposals(timezone.now()) == 1
    review.refresh_from_db()
    assert states(review) == ["applied"]


def test_what_was_saved_after_all_is_not_purged(wait: Wait) -> None:
    review = approve(reject(wait()))
    with time_machine.travel(timezone.now() + timedelta(days=settings.UNDO_DAYS + 1), tick=False):
        assert purge_proposals(timezone.now()) == 0
    review.refresh_from_db()
    assert states(review) == ["applied"] * 2


@pytest.mark.parametrize("edit", ["My password is hunter2-" + "Zebra99", " ", "x" * 4001])
def test_an_edit_that_no_memory_may_hold_is_not_kept_beside_others(wait: Wait, edit: str) -> None:
    review = approve(wait(), edits={0: edit})
    assert (states(review), contents()) == (["waiting", "applied"], ["Likes tea."])
    refused = review.writes[0]
    assert (refused.after, refused.edited, bool(refused.reason)) == ("Is vegetarian.", False, True)


def test_an_update_and_a_delete_wait_too(alice: Owner, wait: Wait) -> None:
    leeds, job = memory_make(alice, "Lives in Leeds."), memory_make(alice, "Works at Halvorsen.")
    review = wait(updates(leeds.number, "Lives in York."), deletes(job.number))
    assert contents() == ["Lives in Leeds.", "Works at Halvorsen."]
    approve(review)
    assert contents() == ["Lives in York."]


def test_only_deletes_want_to_remove(alice: Owner, wait: Wait) -> None:
    wait(deletes(memory_make(alice).number))
    note = Notification.objects.get(kind="review.awaiting_approval")
    assert note.text == "A review wants to remove 1 memory."


def test_a_chain_of_writes_is_approved_piece_by_piece(wait: Wait) -> None:
    review = wait(adds("Likes tea."), updates("new1", "Likes green tea."))
    with pytest.raises(Conflict, match="was not saved"):
        approve(review, 1)
    review = approve(review, 0)
    assert contents() == ["Likes tea."]
    assert approve(review, 1).state == "saved"
    assert contents() == ["Likes green tea."]


def test_what_was_changed_since_is_refused_and_stays_open(alice: Owner, wait: Wait) -> None:
    leeds = memory_make(alice, "Lives in Leeds.")
    review = wait(updates(leeds.number, "Lives in York."), adds("Likes tea."))
    with book_writing(review.book, Source(actor="user:1", origin=WriteOrigin.USER)) as writer:
        writer.update(leeds.number, MemoryFields(content="Lives in Hull."))
    with pytest.raises(Conflict, match="changed in the meantime"):
        approve(review, 0)
    review = approve(review)
    assert (review.state, states(review)) == ("awaiting_approval", ["waiting", "applied"])
    assert "changed in the meantime" in review.writes[0].reason
    assert contents() == ["Lives in Hull.", "Likes tea."]


@pytest.mark.parametrize(
    ("edit", "error"), [("x" * 4001, Exception), ("My password is hunter2-" + "Zebra99", BlockedByScan)]
)
def test_an_edit_is_checked_like_any_other_write(wait: Wait, edit: str, error: type[Exception]) -> None:
    review = wait()
    with pytest.raises(error):
        approve(review, 0, edits={0: edit})
    review.refresh_from_db()
    assert (states(review), review.writes[0].after, contents()) == (["waiting"] * 2, "Is vegetarian.", [])


def test_a_full_book_refuses_and_can_be_tried_again(alice: Owner, wait: Wait) -> None:
    review = wait(adds("Likes tea."), user_char_limit=20)
    full = memory_make(alice, "x" * 15)
    with pytest.raises(OverBudget):
        approve(review)
    with book_writing(review.book, Source(actor="user:1", origin=WriteOrigin.USER)) as writer:
        writer.delete(full.number)
    assert approve(review).state == "saved"


@pytest.mark.parametrize("bad", [{"only": [7]}, {"edits": {7: "x"}}, {"only": [0], "edits": {1: "x"}}])
def test_an_index_that_does_not_exist_is_refused(wait: Wait, bad: dict[str, Any]) -> None:
    review = wait()
    with pytest.raises(InvalidRequest):
        approve(review, *bad.get("only", ()), edits=bad.get("edits"))
    assert contents() == []


def test_a_delete_cannot_be_edited(alice: Owner, wait: Wait) -> None:
    with pytest.raises(InvalidRequest):
        approve(wait(deletes(memory_make(alice).number)), edits={0: "x"})


def test_a_decision_is_made_once(wait: Wait) -> None:
    review = approve(wait())
    for again in (lambda: approve(review), lambda: approve(review, 0), lambda: reject(review)):
        with pytest.raises(Conflict):
            again()
    assert Revision.objects.count() == 2


def test_a_scheduled_review_has_nothing_to_decide(alice: Owner) -> None:
    say(reviewed_session(alice))
    with pytest.raises(Conflict):
        approve(newest_review())


def test_after_a_clear_nothing_can_be_approved(wait: Wait) -> None:
    review = wait()
    Book.objects.update(epoch=F("epoch") + 1)
    with pytest.raises(Conflict, match="cleared"):
        approve(review)
    review.refresh_from_db()
    assert (review.state, review.writes, contents()) == ("cancelled", [], [])


def test_after_the_session_was_deleted_nothing_can_be_approved(wait: Wait) -> None:
    review = wait()
    session_delete(Session.objects.get())
    with pytest.raises(Conflict, match="deleted"):
        approve(review)
    reviews_sweep()
    review.refresh_from_db()
    assert (review.state, review.writes, contents()) == ("cancelled", [], [])


def test_cancelling_it_is_rejecting_it(wait: Wait) -> None:
    review = wait()
    assert review_cancel(review, "Cancelled by an administrator.")
    review.refresh_from_db()
    assert (review.state, states(review)) == ("cancelled", ["rejected"] * 2)


def edited_since(review: ReviewRun, number: int, **fields: Any) -> None:
    with book_writing(review.book, Source(actor="user:1", origin=WriteOrigin.USER)) as writer:
        writer.update(number, MemoryFields(**fields))


def test_a_pin_or_keywords_since_are_no_conflict_and_stay(alice: Owner, wait: Wait) -> None:
    leeds, job = memory_make(alice, "Lives in Leeds."), memory_make(alice, "Works at Halvorsen.")
    review = wait(updates(leeds.number, "Lives in York."), deletes(job.number))
    edited_since(review, leeds.number, pinned=True, keywords=["home"], category="place")
    edited_since(review, job.number, pinned=True)
    assert approve(review).state == "saved"
    memory = Memory.objects.get(deleted_at=None)
    assert (memory.content, memory.pinned, memory.keywords, memory.category) == (
        "Lives in York.", True, ["home"], "place",
    )  # fmt: skip


def test_words_of_the_person_are_saved_whatever_the_memory_says_by_now(alice: Owner, wait: Wait) -> None:
    leeds = memory_make(alice, "Lives in Leeds.")
    review = wait(updates(leeds.number, "Lives in York."))
    edited_since(review, leeds.number, content="Lives in Hull.", pinned=True)
    assert approve(review, edits={0: "Lives in Bath."}).state == "saved"
    assert contents() == ["Lives in Bath."]
    assert Memory.objects.get().pinned


def test_a_memory_that_says_so_by_now_is_no_conflict(alice: Owner, wait: Wait) -> None:
    leeds = memory_make(alice, "Lives in Leeds.")
    review = wait(updates(leeds.number, "Lives in York."))
    edited_since(review, leeds.number, content="Lives in York.")
    assert states(approve(review)) == ["known"]


def test_a_delete_of_words_that_changed_since_is_a_conflict(alice: Owner, wait: Wait) -> None:
    leeds = memory_make(alice, "Lives in Leeds.")
    review = wait(deletes(leeds.number))
    edited_since(review, leeds.number, content="Lives in Hull.")
    with pytest.raises(Conflict, match="changed in the meantime"):
        approve(review)
    assert reject(review).state == "cancelled"


@pytest.mark.parametrize("edits", [None, {0: "Likes water."}])
def test_of_a_memory_that_is_gone_it_can_only_be_rejected(
    alice: Owner, wait: Wait, edits: dict[int, str] | None
) -> None:
    tea = memory_make(alice)
    review = wait(updates(tea.number, "Likes coffee."))
    with book_writing(review.book, Source(actor="user:1", origin=WriteOrigin.USER)) as writer:
        writer.delete(tea.number)
    with pytest.raises(Conflict, match="was deleted"):
        approve(review, edits=edits)
    review.refresh_from_db()
    assert reject(review).state == "cancelled"
