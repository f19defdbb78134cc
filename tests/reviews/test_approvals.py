"""Writes of a review that wait for a person"""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.conf import settings
from django.db.models import F
from django.utils import timezone

from gateway.models import Session
from memories.errors import BlockedByScan, Conflict, InvalidRequest, OverBudget
from memories.models import Book, ChangeSet, Memory, Notification, Owner, Revision, WriteOrigin
from memories.services import MemoryFields, Source, book_writing
from reviews import approvals
from reviews.approvals import expire_approvals, purge_proposals, review_approve, review_reject
from reviews.models import ReviewRun
from reviews.services import review_cancel
from reviews.sweep import reviews_sweep
from tests.factories import memory_make
from tests.reviews.conftest import MakeReview
from tests.reviews.talk import adds, contents, deletes, newest_review, reviewed_session, say, updates
from tests.unsliced import review_undo, session_delete


def approve(review: ReviewRun, *only: int, edits: dict[int, str] | None = None) -> ReviewRun:
    return review_approve(review, actor="user:1", only=frozenset(only) if only else None, edits=edits)


def reject(review: ReviewRun, *only: int) -> ReviewRun:
    return review_reject(review, actor="user:1", only=frozenset(only) if only else None)


def states(review: ReviewRun) -> list[str]:
    return [write.state for write in review.writes]


def test_waiting_writes_are_not_stored_as_memories(alice: Owner, waiting_review: MakeReview) -> None:
    review = waiting_review()
    assert (review.state, states(review), contents()) == ("awaiting_approval", ["waiting"] * 2, [])
    assert Session.objects.get().reviewed_through == 2
    note = Notification.objects.get()
    assert (note.kind, note.text, note.review_id) == (
        "review.awaiting_approval",
        "A review wants to save 2 memories.",
        review.pk,
    )


def test_approved_writes_are_attributed_to_the_review(waiting_review: MakeReview) -> None:
    review = waiting_review()
    approved = approve(review)
    assert (approved.state, states(approved)) == ("saved", ["applied"] * 2)
    assert contents() == ["Is vegetarian.", "Likes tea."]
    memory = Memory.objects.first()
    assert memory is not None
    assert (memory.write_origin, memory.review_id) == ("background_review", review.pk)
    change_set = ChangeSet.objects.get()
    assert (change_set.kind, change_set.actor, change_set.pk) == ("approval", "user:1", approved.change_set)


@pytest.mark.any_database
def test_single_writes_are_approved_and_the_others_keep_waiting(waiting_review: MakeReview) -> None:
    review = approve(waiting_review(), 1)
    assert (review.state, states(review), contents()) == ("awaiting_approval", ["waiting", "applied"], ["Likes tea."])
    review = approve(review, 0)
    assert (review.state, states(review)) == ("saved", ["applied"] * 2)
    assert ChangeSet.objects.count() == 1
    assert len(review_undo(review, actor="user:1", origin=WriteOrigin.USER).undone) == 2


def test_writes_can_be_edited_before_approval(waiting_review: MakeReview) -> None:
    review = approve(waiting_review(), edits={1: "  Likes green tea. "})
    assert contents() == ["Is vegetarian.", "Likes green tea."]
    assert review.writes[1].edited


def test_rejecting_all_cancels_the_review(waiting_review: MakeReview) -> None:
    review = reject(waiting_review())
    assert (review.state, states(review), review.error["code"]) == ("cancelled", ["rejected"] * 2, "rejected")
    assert contents() == []


def test_rejecting_one_write_does_not_affect_the_other(waiting_review: MakeReview) -> None:
    review = reject(waiting_review(), 0)
    assert (review.state, states(review)) == ("awaiting_approval", ["rejected", "waiting"])
    assert approve(review).state == "saved"
    assert contents() == ["Likes tea."]


def test_rejected_writes_can_still_be_approved(waiting_review: MakeReview) -> None:
    review = reject(waiting_review())
    assert approve(review, 1).state == "saved"
    assert approve(review, 0).state == "saved"
    assert contents() == ["Likes tea.", "Is vegetarian."]


@pytest.mark.any_database
@pytest.mark.parametrize(("days", "expired"), [(13.9, False), (14.1, True)])
def test_waiting_writes_expire(waiting_review: MakeReview, days: float, expired: bool) -> None:
    review = waiting_review()
    with time_machine.travel(timezone.now() + timedelta(days=days), tick=False):
        assert expire_approvals(timezone.now()) == expired
    review.refresh_from_db()
    assert review.state == ("cancelled" if expired else "awaiting_approval")
    if expired:
        assert (states(review), review.error["code"]) == (["expired"] * 2, "expired")
        assert approve(review).state == "saved"


def test_a_partly_approved_review_is_saved_when_the_rest_expires(waiting_review: MakeReview, settings: Any) -> None:
    settings.APPROVAL_DAYS = 1
    review = approve(waiting_review(), 0)
    with time_machine.travel(timezone.now() + timedelta(days=2), tick=False):
        expire_approvals(timezone.now())
    review.refresh_from_db()
    assert (review.state, states(review)) == ("saved", ["applied", "expired"])


@pytest.mark.parametrize(
    ("step", "sweep", "days"), [("_expire", expire_approvals, 15), ("_purge", purge_proposals, 31)]
)
def test_a_sweep_goes_on_if_a_review_is_forgotten_meanwhile(
    waiting_review: MakeReview,
    monkeypatch: pytest.MonkeyPatch,
    step: str,
    sweep: Callable[[datetime], int],
    days: float,
) -> None:
    review, end = waiting_review(), getattr(approvals, step)
    if step == "_purge":
        reject(review)

    def forget_first(*arguments: Any) -> bool:
        ReviewRun.objects.all().delete()
        return bool(end(*arguments))

    monkeypatch.setattr(approvals, step, forget_first)
    assert sweep(timezone.now() + timedelta(days=days)) == 0
    assert not ReviewRun.objects.exists()


def test_rejected_writes_are_purged(waiting_review: MakeReview) -> None:
    review = reject(waiting_review())
    with time_machine.travel(timezone.now() + timedelta(days=29), tick=False):
        assert purge_proposals(timezone.now()) == 0
    with time_machine.travel(timezone.now() + timedelta(days=31), tick=False):
        assert purge_proposals(timezone.now()) == 1
        assert purge_proposals(timezone.now()) == 0
    review.refresh_from_db()
    assert review.writes == []
    with pytest.raises(Conflict):
        approve(review)


@pytest.mark.any_database
@pytest.mark.parametrize(("seconds", "remaining"), [(-1, 2), (1, 1)])
def test_rejected_writes_next_to_approved_ones_are_purged(
    waiting_review: MakeReview, seconds: int, remaining: int
) -> None:
    with time_machine.travel(timezone.now(), tick=False):
        review = approve(reject(waiting_review(), 0), 1)
        limit = timezone.now() + timedelta(days=settings.UNDO_DAYS, seconds=seconds)
    with time_machine.travel(limit, tick=False):
        reviews_sweep()
    review.refresh_from_db()
    assert (review.state, len(review.writes), states(review)[-1]) == ("saved", remaining, "applied")
    assert ("Is vegetarian." in str(review.writes)) == (remaining == 2)
    if remaining == 1:
        with pytest.raises(InvalidRequest):
            approve(review, 0)
        assert review_undo(review, actor="user:1", origin=WriteOrigin.USER).undone == (1,)


def test_another_approval_does_not_delay_the_purge_of_rejected_writes(waiting_review: MakeReview) -> None:
    review = reject(waiting_review(adds("Is vegetarian.", "Likes tea.", "Likes soup.")), 0)
    with time_machine.travel(timezone.now() + timedelta(days=10), tick=False):
        approve(review, 1)
    with time_machine.travel(timezone.now() + timedelta(days=settings.UNDO_DAYS, seconds=1), tick=False):
        assert purge_proposals(timezone.now()) == 1
    review.refresh_from_db()
    assert (review.state, states(review)) == ("awaiting_approval", ["applied", "waiting"])
    assert approve(review, 2).state == "saved"
    assert contents() == ["Likes tea.", "Likes soup."]


def test_rejected_writes_without_a_time_of_rejection_are_purged(waiting_review: MakeReview) -> None:
    review = reject(waiting_review(), 0)
    ReviewRun.objects.update(rejected_at=None)
    approve(review, 1)
    with time_machine.travel(timezone.now() + timedelta(days=settings.UNDO_DAYS, seconds=1), tick=False):
        assert purge_proposals(timezone.now()) == 1
    review.refresh_from_db()
    assert states(review) == ["applied"]


def test_writes_approved_after_a_rejection_are_not_purged(waiting_review: MakeReview) -> None:
    review = approve(reject(waiting_review()))
    with time_machine.travel(timezone.now() + timedelta(days=settings.UNDO_DAYS + 1), tick=False):
        assert purge_proposals(timezone.now()) == 0
    review.refresh_from_db()
    assert states(review) == ["applied"] * 2


@pytest.mark.any_database
@pytest.mark.parametrize("edit", ["My password is hunter2-" + "Zebra99", "x" * 4001])
def test_an_invalid_edit_is_discarded_and_the_other_writes_are_saved(waiting_review: MakeReview, edit: str) -> None:
    review = approve(waiting_review(), edits={0: edit})
    assert (states(review), contents()) == (["waiting", "applied"], ["Likes tea."])
    refused = review.writes[0]
    assert (refused.after, refused.edited, bool(refused.reason)) == ("Is vegetarian.", False, True)


def test_updates_and_deletes_wait_too(alice: Owner, waiting_review: MakeReview) -> None:
    leeds, job = memory_make(alice, "Lives in Leeds."), memory_make(alice, "Works at Halvorsen.")
    review = waiting_review(updates(leeds.number, "Lives in York."), deletes(job.number))
    assert contents() == ["Lives in Leeds.", "Works at Halvorsen."]
    approve(review)
    assert contents() == ["Lives in York."]


def test_the_notification_of_a_review_with_only_deletes(alice: Owner, waiting_review: MakeReview) -> None:
    waiting_review(deletes(memory_make(alice).number))
    note = Notification.objects.get(kind="review.awaiting_approval")
    assert note.text == "A review wants to remove 1 memory."


def test_a_chain_of_writes_is_approved_in_order(waiting_review: MakeReview) -> None:
    review = waiting_review(adds("Likes tea."), updates("new1", "Likes green tea."))
    with pytest.raises(Conflict, match="was not saved"):
        approve(review, 1)
    review = approve(review, 0)
    assert contents() == ["Likes tea."]
    assert approve(review, 1).state == "saved"
    assert contents() == ["Likes green tea."]


@pytest.mark.any_database
def test_an_update_of_a_memory_changed_since_is_refused_and_keeps_waiting(
    alice: Owner, waiting_review: MakeReview
) -> None:
    leeds = memory_make(alice, "Lives in Leeds.")
    review = waiting_review(updates(leeds.number, "Lives in York."), adds("Likes tea."))
    with book_writing(review.book, Source(actor="user:1", origin=WriteOrigin.USER)) as writer:
        writer.update(leeds.number, MemoryFields(content="Lives in Hull."))
    with pytest.raises(Conflict, match="changed in the meantime"):
        approve(review, 0)
    review = approve(review)
    assert (review.state, states(review)) == ("awaiting_approval", ["waiting", "applied"])
    assert "changed in the meantime" in review.writes[0].reason
    assert contents() == ["Lives in Hull.", "Likes tea."]


@pytest.mark.any_database
@pytest.mark.parametrize(
    ("edit", "error"), [("x" * 4001, Exception), ("My password is hunter2-" + "Zebra99", BlockedByScan)]
)
def test_an_edit_is_checked_like_any_other_write(waiting_review: MakeReview, edit: str, error: type[Exception]) -> None:
    review = waiting_review()
    with pytest.raises(error):
        approve(review, 0, edits={0: edit})
    review.refresh_from_db()
    assert (states(review), review.writes[0].after, contents()) == (["waiting"] * 2, "Is vegetarian.", [])


def test_an_exceeded_budget_is_refused_and_approval_can_be_retried(alice: Owner, waiting_review: MakeReview) -> None:
    review = waiting_review(adds("Likes tea."), user_char_limit=20)
    full = memory_make(alice, "x" * 15)
    with pytest.raises(OverBudget):
        approve(review)
    with book_writing(review.book, Source(actor="user:1", origin=WriteOrigin.USER)) as writer:
        writer.delete(full.number)
    assert approve(review).state == "saved"


@pytest.mark.any_database
@pytest.mark.parametrize(
    "arguments", [{"only": [7]}, {"edits": {7: "x"}}, {"only": [0], "edits": {1: "x"}}, {"edits": {0: " "}}]
)
def test_an_unknown_index_or_an_empty_text_is_refused(waiting_review: MakeReview, arguments: dict[str, Any]) -> None:
    review = waiting_review()
    with pytest.raises(InvalidRequest):
        approve(review, *arguments.get("only", ()), edits=arguments.get("edits"))
    assert contents() == []


def test_a_delete_cannot_be_edited(alice: Owner, waiting_review: MakeReview) -> None:
    with pytest.raises(InvalidRequest):
        approve(waiting_review(deletes(memory_make(alice).number)), edits={0: "x"})


def test_a_decision_is_made_once(waiting_review: MakeReview) -> None:
    review = approve(waiting_review())
    for again in (lambda: approve(review), lambda: approve(review, 0), lambda: reject(review)):
        with pytest.raises(Conflict):
            again()
    assert Revision.objects.count() == 2


def test_a_second_decision_is_refused_in_the_words_of_a_person(waiting_review: MakeReview) -> None:
    review = waiting_review()
    reject(review, 0)
    with pytest.raises(Conflict, match=r"^This was already rejected\.$") as refused:
        reject(review, 0)
    assert refused.value.details == {"write": 0}
    with pytest.raises(Conflict, match=r"^One of these writes was already rejected\.$"):
        reject(review, 0, 1)


def test_a_scheduled_review_has_nothing_to_decide(alice: Owner) -> None:
    say(reviewed_session(alice))
    with pytest.raises(Conflict):
        approve(newest_review())


def test_nothing_can_be_approved_after_a_clear(waiting_review: MakeReview) -> None:
    review = waiting_review()
    Book.objects.update(epoch=F("epoch") + 1)
    with pytest.raises(Conflict, match="cleared"):
        approve(review)
    review.refresh_from_db()
    assert (review.state, review.writes, contents()) == ("cancelled", [], [])


@pytest.mark.any_database
def test_a_refusal_after_a_clear_keeps_what_the_review_has_saved(waiting_review: MakeReview) -> None:
    review = waiting_review()
    approve(review, 0)
    reject(review, 1)
    Book.objects.update(epoch=F("epoch") + 1)
    with pytest.raises(Conflict, match="cleared"):
        approve(review, 1)
    review.refresh_from_db()
    assert (review.state, states(review), review.error) == ("saved", ["applied"], None)
    review_undo(review, actor="user:1", origin=WriteOrigin.USER)
    assert contents() == []


def test_nothing_can_be_approved_after_the_session_was_deleted(waiting_review: MakeReview) -> None:
    review = waiting_review()
    session_delete(Session.objects.get())
    with pytest.raises(Conflict, match="deleted"):
        approve(review)
    reviews_sweep()
    review.refresh_from_db()
    assert (review.state, review.writes, contents()) == ("cancelled", [], [])


def test_cancelling_a_review_rejects_its_writes(waiting_review: MakeReview) -> None:
    review = waiting_review()
    assert review_cancel(review, "Cancelled by an administrator.")
    review.refresh_from_db()
    assert (review.state, states(review)) == ("cancelled", ["rejected"] * 2)


def edit_memory(review: ReviewRun, number: int, **fields: Any) -> None:
    with book_writing(review.book, Source(actor="user:1", origin=WriteOrigin.USER)) as writer:
        writer.update(number, MemoryFields(**fields))


@pytest.mark.any_database
def test_a_later_pin_or_keywords_are_kept_without_a_conflict(alice: Owner, waiting_review: MakeReview) -> None:
    leeds, job = memory_make(alice, "Lives in Leeds."), memory_make(alice, "Works at Halvorsen.")
    review = waiting_review(updates(leeds.number, "Lives in York."), deletes(job.number))
    edit_memory(review, leeds.number, pinned=True, keywords=["home"], category="place")
    edit_memory(review, job.number, pinned=True)
    assert approve(review).state == "saved"
    memory = Memory.objects.get(deleted_at=None)
    assert (memory.content, memory.pinned, memory.keywords, memory.category) == (
        "Lives in York.", True, ["home"], "place",
    )  # fmt: skip


def test_an_edited_write_overwrites_a_later_change(alice: Owner, waiting_review: MakeReview) -> None:
    leeds = memory_make(alice, "Lives in Leeds.")
    review = waiting_review(updates(leeds.number, "Lives in York."))
    edit_memory(review, leeds.number, content="Lives in Hull.", pinned=True)
    assert approve(review, edits={0: "Lives in Bath."}).state == "saved"
    assert contents() == ["Lives in Bath."]
    assert Memory.objects.get().pinned


def test_a_write_that_equals_the_current_memory_is_no_conflict(alice: Owner, waiting_review: MakeReview) -> None:
    leeds = memory_make(alice, "Lives in Leeds.")
    review = waiting_review(updates(leeds.number, "Lives in York."))
    edit_memory(review, leeds.number, content="Lives in York.")
    assert states(approve(review)) == ["known"]


def test_a_delete_of_a_memory_changed_since_is_a_conflict(alice: Owner, waiting_review: MakeReview) -> None:
    leeds = memory_make(alice, "Lives in Leeds.")
    review = waiting_review(deletes(leeds.number))
    edit_memory(review, leeds.number, content="Lives in Hull.")
    with pytest.raises(Conflict, match="changed in the meantime"):
        approve(review)
    assert reject(review).state == "cancelled"


@pytest.mark.parametrize("edits", [None, {0: "Likes water."}])
def test_a_write_to_a_deleted_memory_can_only_be_rejected(
    alice: Owner, waiting_review: MakeReview, edits: dict[int, str] | None
) -> None:
    tea = memory_make(alice)
    review = waiting_review(updates(tea.number, "Likes coffee."))
    with book_writing(review.book, Source(actor="user:1", origin=WriteOrigin.USER)) as writer:
        writer.delete(tea.number)
    with pytest.raises(Conflict, match="was deleted"):
        approve(review, edits=edits)
    review.refresh_from_db()
    assert reject(review).state == "cancelled"
