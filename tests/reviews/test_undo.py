"""Undo and redo of a review's writes, and of other change sets"""

from typing import Any

import pytest

import scanning
from memories.errors import Conflict, InvalidRequest
from memories.history.undo import UndoResult, change_set_get
from memories.models import ChangeSet, Memory, Notification, Owner, Revision, WriteOrigin
from memories.services import MemoryFields, Source, book_writing
from reviews.models import ReviewRun
from tests.factories import memory_make
from tests.reviews.talk import (
    PAGE,
    PLANTED,
    adds,
    by_person,
    contents,
    deletes,
    edit,
    newest_review,
    review_by,
    reviewed_session,
    reviewing_agent,
    say,
    updates,
)
from tests.scripted_model import Says, ScriptedModel
from tests.unsliced import review_undo, undo_changes


def saved(owner: Owner, model: ScriptedModel, *steps: Says) -> ReviewRun:
    """Execute a review that saves the writes of its model."""
    return review_by(model, owner, *(steps or (adds("Is vegetarian.", "Likes tea."),)))


def undo(review: ReviewRun, *only: int) -> UndoResult:
    chosen = frozenset(only) if only else None
    undone = review_undo(review, actor="user:1", origin=WriteOrigin.USER, only=chosen)
    review.refresh_from_db()
    return undone


def undo_set(owner: Owner, change_set: Any) -> UndoResult:
    return undo_changes(change_set_get(owner.pk, change_set), by_person(owner))


def states(review: ReviewRun) -> list[str]:
    return [write.state for write in review.writes]


@pytest.mark.any_database
def test_an_undo_restores_every_memory(alice: Owner, model: ScriptedModel) -> None:
    leeds, job = memory_make(alice, "Lives in Leeds."), memory_make(alice, "Works at Halvorsen.")
    review = saved(alice, model, updates(leeds.number, "Lives in York."), deletes(job.number), adds("Likes tea."))
    assert contents() == ["Lives in York.", "Likes tea."]
    undone = undo(review)
    assert contents() == ["Lives in Leeds.", "Works at Halvorsen."]
    assert (undone.undone, undone.skipped, review.state) == ((1, 2, 3), (), "undone")
    newest = Revision.objects.filter(memory=leeds).latest("version")
    assert (newest.version, newest.actor, newest.change_set_id) == (3, "user:1", undone.change_set)


def test_a_memory_changed_several_times_is_restored_to_its_first_state(alice: Owner, model: ScriptedModel) -> None:
    leeds = memory_make(alice, "Lives in Leeds.")
    review = saved(alice, model, updates(leeds.number, "Lives in York."), updates(leeds.number, "Lives in Hull."))
    undo(review)
    assert contents() == ["Lives in Leeds."]
    assert Revision.objects.filter(memory=leeds).count() == 4


def test_the_undo_of_a_write_that_waits_undoes_no_other_write_to_its_memory(alice: Owner, model: ScriptedModel) -> None:
    leeds = memory_make(alice, "Lives in Leeds.")
    review = review_by(
        model,
        alice,
        updates(leeds.number, "Lives in York."),
        updates(leeds.number, f"Lives in York. {PLANTED}"),
        said=f"I live in York now. What does this page say?\n\n{PAGE}",
    )
    assert states(review) == ["applied", "waiting"]
    assert undo(review, 1).undone == ()
    assert (contents(), states(review)) == (["Lives in York."], ["applied", "waiting"])


def test_a_memory_changed_since_is_skipped_and_listed(alice: Owner, model: ScriptedModel) -> None:
    review = saved(alice, model)
    edit(alice, 1, "Is vegan.")
    undone = undo(review)
    assert (undone.undone, undone.skipped, review.state) == ((2,), (1,), "undone")
    assert (contents(), states(review)) == (["Is vegan."], ["left_alone", "undone"])


def test_a_review_remains_saved_if_all_its_memories_changed_since(alice: Owner, model: ScriptedModel) -> None:
    review = saved(alice, model, adds("Likes tea."))
    edit(alice, 1, "Likes coffee.")
    undone = undo(review)
    assert (undone.undone, undone.skipped, review.state, undone.change_set) == ((), (1,), "saved", None)


@pytest.mark.any_database
def test_single_writes_can_be_undone(alice: Owner, model: ScriptedModel) -> None:
    review = saved(alice, model)
    assert undo(review, 1).undone == (2,)
    assert (contents(), review.state, states(review)) == (["Is vegetarian."], "saved", ["applied", "undone"])
    assert undo(review, 0).undone == (1,)
    assert (contents(), review.state) == ([], "undone")


def test_undo_is_idempotent(alice: Owner, model: ScriptedModel) -> None:
    review = saved(alice, model)
    undo(review)
    again = undo(review)
    assert (again.undone, again.skipped, review.state, Revision.objects.count()) == ((), (), "undone", 4)


@pytest.mark.any_database
def test_undo_and_redo_can_be_repeated(alice: Owner, model: ScriptedModel) -> None:
    review = saved(alice, model)
    seen = []
    newest = review.change_set
    for _ in range(4):
        newest = undo_set(alice, newest).change_set
        review.refresh_from_db()
        seen.append((review.state, len(contents()), states(review)[0]))
    assert seen == [("undone", 0, "undone"), ("saved", 2, "applied")] * 2


@pytest.mark.any_database
def test_a_redone_review_can_be_undone_again(alice: Owner, model: ScriptedModel) -> None:
    review = saved(alice, model)
    undo_set(alice, undo(review).change_set)
    assert len(contents()) == 2
    assert undo(review).undone == (1, 2)
    assert (contents(), review.state) == ([], "undone")


def test_a_partial_undo_can_be_completed(alice: Owner, model: ScriptedModel) -> None:
    review = saved(alice, model)
    undo(review, 0)
    assert undo(review).undone == (2,)
    assert (contents(), review.state) == ([], "undone")


def test_a_change_after_a_redo_is_skipped(alice: Owner, model: ScriptedModel) -> None:
    review = saved(alice, model, adds("Likes tea."))
    undo_set(alice, undo(review).change_set)
    edit(alice, 1, "Likes coffee.")
    assert undo(review).skipped == (1,)


def test_reviews_that_changed_the_same_memory_are_undone_step_by_step(alice: Owner, model: ScriptedModel) -> None:
    leeds = memory_make(alice, "Lives in Leeds.")
    first = saved(alice, model, updates(leeds.number, "Lives in York."))
    second = saved(alice, model, updates(leeds.number, "Lives in Hull."))
    assert (undo(first).skipped, contents()) == ((1,), ["Lives in Hull."])
    seen = []
    for review in (second, first):
        seen.append((undo(review).undone, contents()))
    assert seen == [((1,), ["Lives in York."]), ((1,), ["Lives in Leeds."])]
    back = ChangeSet.objects.filter(undoes=first.change_set).latest("id")
    assert undo_set(alice, back.pk).undone == (1,)
    again = ChangeSet.objects.filter(undoes=second.change_set).latest("id")
    assert undo_set(alice, again.pk).undone == (1,)
    assert (contents(), undo(first).skipped) == (["Lives in Hull."], (1,))


@pytest.mark.any_database
def test_a_persons_change_after_an_undone_review_is_skipped(alice: Owner, model: ScriptedModel) -> None:
    leeds = memory_make(alice, "Lives in Leeds.")
    first = saved(alice, model, updates(leeds.number, "Lives in York."))
    second = saved(alice, model, updates(leeds.number, "Lives in Hull."))
    undo(second)
    edit(alice, 1, "Lives in Bath.")
    assert (undo(first).skipped, contents()) == ((1,), ["Lives in Bath."])


def test_the_owner_is_notified_once(alice: Owner, model: ScriptedModel) -> None:
    review = saved(alice, model)
    before = Notification.objects.latest("seq").seq
    undo(review)
    notifications = Notification.objects.filter(seq__gt=before).order_by("seq")
    assert [(n.kind, n.memory_numbers) for n in notifications] == [
        ("memory.changed", [1, 2]),
        ("review.undone", [1, 2]),
    ]


@pytest.mark.parametrize("state", ["nothing_to_save", "failed", "timed_out", "scheduled", "cancelled"])
def test_a_review_without_writes_cannot_be_undone(alice: Owner, state: str) -> None:
    say(reviewed_session(alice))
    ReviewRun.objects.update(state=state)
    with pytest.raises(Conflict):
        undo(newest_review())


def test_a_write_that_does_not_exist_is_refused(alice: Owner, model: ScriptedModel) -> None:
    with pytest.raises(InvalidRequest):
        undo(saved(alice, model), 7)


@pytest.mark.any_database
@pytest.mark.parametrize("kind", ["tool", "import", "clear"])
def test_undo_and_redo_of_other_change_sets(alice: Owner, kind: str) -> None:
    soup = memory_make(alice, "Likes soup.")
    source = Source(actor="model", origin=WriteOrigin.TOOL, kind=ChangeSet.Kind(kind))
    with book_writing(soup.book, source) as writer:
        writer.delete(soup.number)
        if kind != "clear":
            writer.add(MemoryFields(content="Likes tea."))
    after = contents()
    assert writer.change_set is not None
    undone = undo_set(alice, writer.change_set.pk)
    assert contents() == ["Likes soup."]
    undo_set(alice, undone.change_set)
    assert contents() == after


def test_an_undo_ignores_budgets(alice: Owner, model: ScriptedModel) -> None:
    old = memory_make(alice, "x" * 1000)
    review = saved(alice, model, deletes(old.number))
    reviewing_agent(user_char_limit=10)
    assert undo(review).undone == (1,)
    assert contents() == ["x" * 1000]


def test_an_undo_marks_a_memory_as_blocked_instead_of_refusing(
    alice: Owner, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = memory_make(alice, "Likes tea.")
    review = saved(alice, model, deletes(old.number))
    finding = scanning.Finding(kind="injection", rule="a_new_rule", start=0, end=1, reason="is an order")
    blocked = scanning.Verdict(findings=(finding,))
    monkeypatch.setattr(scanning, "scan", lambda *_: blocked)
    monkeypatch.setattr(scanning, "scan_hash", lambda *_, **__: "of newer rules")
    assert undo(review).undone == (1,)
    assert Memory.objects.get().blocked
