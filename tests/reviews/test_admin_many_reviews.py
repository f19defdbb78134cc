"""/admin/reviews/reviewrun/: save, reject, undo, cancel and review again for several reviews at once"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import pytest
from django.db import OperationalError
from django.http import HttpRequest
from django.test import Client

from memories.models import AuditEntry, Memory, Owner, Revision, WriteOrigin
from reviews.admin import decisions, many_reviews
from reviews.approvals import review_approve, review_reject
from reviews.models import ReviewRun
from reviews.undo import review_undo_slices
from reviews.writes import ReviewWrite
from tests.admin_rows import bob
from tests.factories import memory_make, owner_make
from tests.reviews.talk import adds, edit, newest_review, review_by, reviewed_session, say, updates
from tests.scripted_model import Says, ScriptedModel
from tests.unsliced import review_undo

pytestmark = pytest.mark.django_db
LIST = "/admin/reviews/reviewrun/"
Save = Callable[..., ReviewRun]


@pytest.fixture
def saved(model: ScriptedModel) -> Save:
    """Return a function that makes a review with applied writes."""

    def make(owner: Owner, *steps: Says, **settings: Any) -> ReviewRun:
        return review_by(model, owner, *(steps or (adds("Likes tea."),)), **settings)

    return make


def act(client: Client, action: str, *reviews: ReviewRun) -> str:
    """Run a list action on the reviews, and return the only message that is shown."""
    chosen = {"action": action, "_selected_action": [str(review.pk) for review in reviews]}
    (message,) = client.post(LIST, chosen, follow=True).context["messages"]
    return str(message)


def contents() -> list[str]:
    return list(Memory.objects.filter(deleted_at=None).order_by("pk").values_list("content", flat=True))


def state(review: ReviewRun) -> str:
    review.refresh_from_db()
    return review.state


def audit_notes() -> list[tuple[str | None, str]]:
    entries = AuditEntry.objects.filter(kind="review run").exclude(action__in=("view", "list"))
    return list(entries.order_by("id").values_list("object_id", "note"))


@pytest.mark.any_database
def test_reviews_of_several_owners_are_undone_at_once(alice: Owner, charlie: Owner, root: Client, saved: Save) -> None:
    reviews = [saved(alice), saved(alice, adds("Is vegetarian.", "Lives in York.")), saved(charlie)]
    assert act(root, "undo_reviews", *reviews) == "4 memories were changed back."
    assert ([state(review) for review in reviews], contents()) == (["undone"] * 3, [])
    newest = Revision.objects.latest("id")
    assert (newest.actor, newest.write_origin) == (bob(), "admin")


def test_each_undone_review_has_an_audit_entry(alice: Owner, root: Client, saved: Save) -> None:
    reviews = [saved(alice), saved(alice, adds("Is vegetarian."))]
    act(root, "undo_reviews", *reviews)
    assert audit_notes() == [(str(review.pk), "Undone.") for review in reversed(reviews)]


@pytest.mark.any_database
def test_a_memory_changed_by_several_reviews_is_restored_to_its_first_state(
    alice: Owner, root: Client, saved: Save
) -> None:
    leeds = memory_make(alice, "Lives in Leeds.")
    reviews = [saved(alice, updates(leeds.number, f"Lives in {city}.")) for city in ("York", "Hull", "Bath")]
    assert act(root, "undo_reviews", *reviews) == "1 memory was changed back."
    assert (contents(), [state(review) for review in reviews]) == (["Lives in Leeds."], ["undone"] * 3)


def test_reviews_are_undone_in_the_order_of_their_approval(alice: Owner, root: Client, saved: Save) -> None:
    tea = adds("Likes tea.")
    waiting = saved(alice, tea, memory_review_approval=True)
    first = saved(alice, adds("Likes tea."))
    review_approve(waiting, actor="user:1")
    assert [state(waiting), state(first)] == ["nothing_to_save", "saved"]
    leeds = memory_make(alice, "Lives in Leeds.")
    older = saved(alice, adds("Has a cat."), memory_review_approval=True)
    newer = saved(alice, updates(leeds.number, "Lives in York."))
    changed = {"action": "update", "key": str(leeds.number), "version": 2, "after": "Lives in Hull."}
    older.writes = [replace(older.writes[0], **changed)]
    older.save()
    review_approve(older, actor="user:1")
    assert contents()[-1] == "Lives in Hull."
    assert act(root, "undo_reviews", older, newer) == "1 memory was changed back."
    assert contents() == ["Likes tea.", "Lives in Leeds."]


@pytest.mark.any_database
def test_memories_changed_since_are_skipped_and_listed(alice: Owner, root: Client, saved: Save) -> None:
    reviews = [saved(alice, adds("Likes tea.", "Is vegetarian.")), saved(alice, adds("Lives in York."))]
    edit(alice, 2, "Is vegan.")
    edit(alice, 3, "Lives in Hull.")
    assert act(root, "undo_reviews", *reviews) == (
        "1 memory was changed back. 2 memories were left alone, because of changes since: "
        "alice’s memory 2, alice’s memory 3."
    )
    assert (contents(), [state(r) for r in reviews]) == (["Is vegan.", "Lives in Hull."], ["undone", "saved"])
    assert [what for _, what in audit_notes()] == ["Not undone: all of it was changed since.", "Undone."]


@pytest.mark.any_database
def test_reviews_without_applied_writes_are_skipped_and_listed(alice: Owner, root: Client, saved: Save) -> None:
    review = saved(alice)
    say(reviewed_session(alice))
    nothing = newest_review()
    ReviewRun.objects.filter(pk=nothing.pk).update(state="nothing_to_save")
    message = act(root, "undo_reviews", nothing, review)
    assert message.startswith("1 memory was changed back. Left out: “I am a vegetarian.” of alice, ")
    assert message.endswith(": This review wrote nothing that could be undone.")
    assert state(nothing) == "nothing_to_save"


@pytest.mark.any_database
def test_skipped_reviews_are_grouped_by_reason(alice: Owner, charlie: Owner, root: Client) -> None:
    reviews = []
    for owner in (alice, charlie):
        say(reviewed_session(owner))
        reviews.append(newest_review())
    message = act(root, "undo_reviews", *reviews)
    assert [message.count(word) for word in ("of alice", "of charlie", "wrote nothing")] == [1, 1, 1]


@pytest.mark.any_database
def test_an_undone_review_is_skipped_and_never_redone(alice: Owner, root: Client, saved: Save) -> None:
    review = saved(alice)
    review_undo(review, actor="user:1", origin=WriteOrigin.USER)
    for _ in range(2):
        message = act(root, "undo_reviews", review)
        assert message.startswith("No memory was changed back. Left out: ")
        assert message.endswith(": It is already undone.")
    assert (state(review), contents(), Revision.objects.count(), audit_notes()) == ("undone", [], 2, [])


@pytest.mark.any_database
def test_an_error_in_one_review_does_not_affect_the_others(
    alice: Owner, root: Client, saved: Save, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    reviews = [saved(alice, adds(f"Fact {number}.")) for number in range(3)]

    def undo(run: ReviewRun, **how: Any) -> Any:
        if run.pk == reviews[1].pk:
            raise RuntimeError("broken")
        return review_undo_slices(run, **how)

    monkeypatch.setattr(many_reviews, "review_undo_slices", undo)
    message = act(root, "undo_reviews", *reviews)
    assert message.startswith("2 memories were changed back. Left out: ")
    assert "It failed; the server's log says why." in message
    assert ([state(r) for r in reviews], contents()) == (["undone", "saved", "undone"], ["Fact 1."])
    assert "RuntimeError: broken" in caplog.text


def test_a_review_without_its_change_set_is_skipped(alice: Owner, root: Client, saved: Save) -> None:
    orphaned, review = saved(alice), saved(alice, adds("Is vegetarian."))
    ReviewRun.objects.filter(pk=orphaned.pk).update(change_set="018f0000-0000-7000-8000-000000000000")
    message = act(root, "undo_reviews", orphaned, review)
    assert message.startswith("1 memory was changed back. Left out: ")
    assert message.endswith("There is no such group of changes.")


def test_the_owner_is_notified_of_each_undone_review(alice: Owner, root: Client, saved: Save) -> None:
    reviews = [saved(alice), saved(alice, adds("Is vegetarian."))]
    act(root, "undo_reviews", *reviews)
    assert list(
        alice.notifications.filter(kind="review.undone").order_by("seq").values_list("review_id", flat=True)
    ) == [
        reviews[1].pk,
        reviews[0].pk,
    ]


@pytest.mark.any_database
def test_open_reviews_are_cancelled_and_finished_ones_listed(alice: Owner, root: Client, saved: Save) -> None:
    finished = saved(alice)
    waiting = saved(alice, adds("Is vegetarian."), memory_review_approval=True)
    say(reviewed_session(alice))
    scheduled = newest_review()
    message = act(root, "cancel_reviews", finished, waiting, scheduled)
    assert message.startswith("Cancelled: 2 reviews. Left out: ")
    assert message.endswith(": It has already finished.")
    assert [state(finished), state(waiting), state(scheduled)] == ["saved", "cancelled", "cancelled"]
    assert waiting.error["actor"] == bob()
    assert sorted(key for key, _ in audit_notes() if key) == sorted([str(waiting.pk), str(scheduled.pk)])


@pytest.mark.any_database
def test_waiting_writes_are_saved_and_those_left_out_are_named(
    alice: Owner, charlie: Owner, root: Client, saved: Save
) -> None:
    settings: Any = {"memory_review_approval": True, "user_char_limit": 60}
    some = saved(alice, adds("Likes tea.", "Has lived in York for ever."), **settings)
    finished = saved(alice, adds("Is vegan."))
    others = saved(charlie, adds("Likes tea."), **settings)
    memory_make(alice, "x" * 40)
    message = act(root, "approve_reviews", finished, others, some)
    assert message.startswith("Saved 2 memories. Left out: write 1 of “I am a vegetarian.” of alice, ")
    assert ": No room: this needs" in message
    assert message.endswith(": No write of this review waits for a decision.")
    assert [state(review) for review in (some, finished, others)] == ["awaiting_approval", "saved", "saved"]
    assert contents() == ["Is vegan.", "x" * 40, "Likes tea.", "Likes tea."]
    assert audit_notes() == [(str(some.pk), "Approved write 0."), (str(others.pk), "Approved write 0.")]
    assert Revision.objects.latest("id").actor == bob()


@pytest.mark.any_database
def test_waiting_writes_are_rejected_and_what_was_decided_before_stays(alice: Owner, root: Client, saved: Save) -> None:
    partly = saved(alice, adds("Likes tea.", "Is vegan."), memory_review_approval=True)
    review_approve(partly, actor="user:1", only=frozenset({0}))
    rejected = saved(alice, adds("Has a cat."), memory_review_approval=True)
    review_reject(rejected, actor="user:1")
    message = act(root, "reject_reviews", partly, rejected)
    assert message.startswith("Rejected: 1 review. Left out: ")
    assert message.endswith(": No write of this review waits for a decision.")
    assert [state(partly), state(rejected), contents()] == ["saved", "cancelled", ["Likes tea."]]
    assert audit_notes() == [(str(partly.pk), "Rejected write 1.")]


@pytest.mark.any_database
def test_what_is_rejected_meanwhile_is_not_saved(
    alice: Owner, charlie: Owner, root: Client, saved: Save, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = saved(alice, memory_review_approval=True)
    partly = saved(charlie, adds("Has a cat.", "Has a dog."), memory_review_approval=True)
    wholly = saved(charlie, adds("Lives in York."), memory_review_approval=True)

    def approve(request: HttpRequest, run: ReviewRun, *decided: Any, **how: Any) -> list[ReviewWrite]:
        if run.pk == first.pk:
            review_reject(partly, actor="user:1", only=frozenset({0}))
            review_reject(wholly, actor="user:1")
        return decisions.approve(request, run, *decided, **how)

    monkeypatch.setattr(many_reviews, "approve", approve)
    message = act(root, "approve_reviews", first, partly, wholly)
    assert message.startswith("Saved 2 memories. Left out: ")
    assert message.endswith(": No write of this review waits for a decision.")
    assert contents() == ["Likes tea.", "Has a dog."]
    assert audit_notes() == [(str(first.pk), "Approved write 0."), (str(partly.pk), "Approved write 1.")]


@pytest.mark.parametrize("action", ["approve_reviews", "reject_reviews"])
def test_without_its_audit_entry_nothing_is_decided(
    action: str, alice: Owner, root: Client, saved: Save, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = saved(alice, memory_review_approval=True)
    monkeypatch.setattr(decisions, "action_record", Mock(side_effect=OperationalError("disk I/O error")))
    assert "It failed" in act(root, action, waiting)
    assert (state(waiting), contents()) == ("awaiting_approval", [])


@pytest.mark.any_database
def test_reviews_are_repeated_once_per_session(alice: Owner, charlie: Owner, root: Client) -> None:
    failed = []
    for owner in (alice, charlie):
        session = reviewed_session(owner)
        say(session)
        failed.append(newest_review())
    say(session)
    failed.append(newest_review())
    ReviewRun.objects.update(state="failed")
    message = act(root, "review_again", *failed)
    assert message.startswith("Scheduled again: 2 reviews. Left out: ")
    assert message.endswith("Nothing was said in this session since its last review.")
    new = ReviewRun.objects.filter(state="scheduled")
    assert {(run.owner_id, run.trigger) for run in new} == {(alice.pk, "request"), (charlie.pk, "request")}


@pytest.mark.any_database
def test_a_review_without_a_session_is_not_repeated(alice: Owner, root: Client, saved: Save) -> None:
    review = saved(alice)
    ReviewRun.objects.update(session=None)
    message = act(root, "review_again", review)
    assert message.startswith("Scheduled again: no review. Left out: “A deleted session” of alice")


def test_an_action_on_all_pages_is_refused(alice: Owner, root: Client, saved: Save) -> None:
    review = saved(alice)
    root.post(LIST, {"action": "undo_reviews", "_selected_action": [str(review.pk)], "select_across": "1"})
    assert (state(review), contents()) == ("saved", ["Likes tea."])


@pytest.mark.any_database
def test_names_of_owners_are_escaped(root: Client, saved: Save) -> None:
    mallory = owner_make("<b>mallory</b>")
    review = saved(mallory)
    edit(mallory, 1, "Likes milk.")
    chosen = {"action": "undo_reviews", "_selected_action": [str(review.pk)]}
    page = root.post(LIST, chosen, follow=True).content.decode()
    assert "&lt;b&gt;mallory&lt;/b&gt;’s memory 1" in page
    assert "<b>mallory" not in page
