"""Notifications to the owner's browsers about a review"""

from typing import Any

import pytest

from memories.messaging.outbox import notifications_after
from memories.models import Memory, Notification, Owner
from tests.factories import memory_make
from tests.reviews.talk import adds, deletes, newest_review, review_by, run_review, updates
from tests.scripted_model import Says, ScriptedModel

pytestmark = pytest.mark.any_database

# Numbers of the memories that the book has before the review.
TEA, YORK = 1, 2


def notifications_of_review(owner: Owner, model: ScriptedModel, *steps: Says, **settings: Any) -> list[dict[str, Any]]:
    """Return the notifications about a review in which the model takes these steps."""
    memory_make(owner, "Likes tea.")
    memory_make(owner, "Lives in York.")
    before = Notification.objects.count()
    review_by(model, owner, *steps, **settings)
    return [note for note in notifications_after(owner.pk, before) if note["kind"] != "resync"]


@pytest.mark.parametrize(
    ("steps", "text"),
    [
        ([adds("A.", "B.")], "Saved 2 memories from your last conversation."),
        ([adds("A.")], "Saved 1 memory from your last conversation."),
        ([updates(TEA, "Likes milk.")], "Saved 1 memory from your last conversation."),
        ([adds("A."), updates(TEA, "C."), deletes(YORK)], "Saved 2 memories from your last conversation."),
        ([adds("A."), updates("new1", "B.")], "Saved 1 memory from your last conversation."),
        ([deletes(TEA)], "Removed 1 memory after your last conversation."),
        ([deletes(TEA), deletes(YORK)], "Removed 2 memories after your last conversation."),
        ([updates(TEA, "C."), deletes(TEA)], "Removed 1 memory after your last conversation."),
    ],
)
def test_a_verbose_review_says_what_it_saved(alice: Owner, model: ScriptedModel, steps: list[Says], text: str) -> None:
    quiet, loud = notifications_of_review(alice, model, *steps)
    assert (quiet["kind"], quiet["text"]) == ("memory.changed", "")
    assert (loud["kind"], loud["text"], loud["review_id"]) == ("review.saved", text, str(newest_review().pk))
    assert loud["memory_ids"] == sorted(quiet["memory_ids"], key=int)


def test_a_quiet_review_only_updates_open_pages(alice: Owner, model: ScriptedModel) -> None:
    (note,) = notifications_of_review(alice, model, adds("A."), memory_review_verbose=False)
    assert (note["kind"], note["text"], note["memory_ids"]) == ("memory.changed", "", ["3"])


def test_a_review_that_saved_nothing_sends_no_notification(alice: Owner, model: ScriptedModel) -> None:
    assert notifications_of_review(alice, model) == []


def test_a_memory_added_and_deleted_again_is_not_announced(alice: Owner, model: ScriptedModel) -> None:
    notes = notifications_of_review(alice, model, adds("A."), deletes("new1"))
    assert [note["kind"] for note in notes] == ["memory.changed"]


def test_only_the_owner_is_notified(alice: Owner, charlie: Owner, model: ScriptedModel) -> None:
    notifications_of_review(alice, model, adds("A."))
    assert notifications_after(charlie.pk, 0) == []


def test_a_repeated_delivery_sends_no_further_notification(alice: Owner, model: ScriptedModel) -> None:
    first = notifications_of_review(alice, model, adds("A."))
    run_review(newest_review())
    assert Notification.objects.count() == len(first) + 2
    assert Memory.objects.count() == 3
