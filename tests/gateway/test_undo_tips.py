"""gateway.chat.memory_notes.undo_tips: whether a group of writes is currently undone, also if undone in parts"""

import pytest

from gateway.chat.memory_notes import undo_tips
from memories.models import Book, ChangeSet, Owner, WriteOrigin
from memories.services import MemoryFields, Source, book_writing
from tests.unsliced import undo_changes

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]


def two_writes(book: Book) -> ChangeSet:
    with book_writing(book, Source(actor="model", origin=WriteOrigin.TOOL)) as writer:
        writer.add(MemoryFields(content="Likes tea."))
        writer.add(MemoryFields(content="Likes milk."))
    return ChangeSet.objects.get(book=book)


def undo(undone: ChangeSet, *, only: int | None = None) -> ChangeSet:
    source = Source(actor="user:1", origin=WriteOrigin.USER, kind=ChangeSet.Kind.UNDO, undoes=undone.pk)
    undo_changes(undone, source, only=None if only is None else frozenset({only}))
    return ChangeSet.objects.order_by("id").last() or undone


def undo_state(owner: Owner, change_set: ChangeSet) -> tuple[ChangeSet | None, bool]:
    return undo_tips(owner.pk, [change_set.pk])[change_set.pk]


def test_writes_are_not_undone_at_first(book: Book, alice: Owner) -> None:
    assert undo_state(alice, two_writes(book)) == (None, False)


def test_writes_undone_in_two_parts_are_undone(book: Book, alice: Owner) -> None:
    written = two_writes(book)
    undo(written, only=1)
    last = undo(written, only=2)
    assert undo_state(alice, written) == (last, True)


def test_each_further_undo_reverses_the_state(book: Book, alice: Owner) -> None:
    written = two_writes(book)
    step = written
    for undone in (True, False, True):
        step = undo(step)
        assert undo_state(alice, written) == (step, undone)


def test_undoing_again_after_a_redo_is_undone(book: Book, alice: Owner) -> None:
    written = two_writes(book)
    undo(undo(written))
    last = undo(written)
    assert undo_state(alice, written) == (last, True)
