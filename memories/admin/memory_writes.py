"""Writes by administrators, through memories.services. Each change is a revision by `staff:ID`; an action on several
memories of a book is one change set, which can be undone as a whole. And messages about the result of an undo."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from django.contrib import messages
from django.core.serializers.json import DjangoJSONEncoder
from django.db.models import Model
from django.http import HttpRequest

from memories.admin.access import action_record
from memories.admin.base import staff_actor
from memories.api.serializers import memory_json
from memories.audit.log import Action
from memories.bulk_edits import Edit, bulk_edit_slices
from memories.caller import UNLIMITED, KeyLimits
from memories.database.batches import run_slices
from memories.history.undo import UndoResult, undo_slices
from memories.json_output import json_line
from memories.models import Book, ChangeSet, Memory, WriteOrigin
from memories.number_words import counted
from memories.services import Source


def staff_source(request: HttpRequest, kind: ChangeSet.Kind = ChangeSet.Kind.EDIT) -> Source:
    """Return the source for writes of an administrator."""
    return Source(actor=staff_actor(request), origin=WriteOrigin.ADMIN, kind=kind)


def change_set_undo(request: HttpRequest, change_set: ChangeSet) -> UndoResult:
    """Undo a change set for an administrator, in slices. Imported conversations are removed only if the administrator
    may view sessions."""
    sees_all = request.user.has_perm("gateway.view_session")
    limits = UNLIMITED if sees_all else KeyLimits(books=(change_set.book.name,))
    return run_slices(undo_slices(change_set, staff_source(request, ChangeSet.Kind.UNDO), limits=limits))


def memories_edit(memories: Iterable[Memory], edit: Edit, source: Source) -> tuple[list[Memory], list[Memory]]:
    """Apply an edit to memories, book by book. Return the changed memories, and those that needed no change."""
    books: dict[Book, dict[int, Memory]] = defaultdict(dict)
    for memory in memories:
        books[memory.book][memory.number] = memory
    changed, unchanged = [], []
    for book, rows in books.items():
        result = run_slices(bulk_edit_slices(book, list(rows), edit, source))
        changed += [rows[number] for number in result.changed]
        unchanged += [rows[number] for number in result.left_alone]
    return changed, unchanged


def memory_lines(memories: Iterable[Memory]) -> Iterator[str]:
    """Yield memories as JSON Lines."""
    for memory in memories:
        exported = {**memory_json(memory), "owner": str(memory.owner), "deleted_at": memory.deleted_at}
        yield json_line(exported, cls=DjangoJSONEncoder) + "\n"


def report_undone(page: Any, request: HttpRequest, row: Model, undone: UndoResult) -> None:
    """Show what was undone, and what was left alone and why. Record it in the audit log, unless there was
    nothing to undo."""
    if note := undo_note(undone):
        action_record(request, type(row), note, [row], Action.UNDO)
    back = [
        f"{counted(number, *words)} {done}"
        for number, words, done in (
            (len(undone.undone), ("memory was", "memories were"), "changed back"),
            (len(undone.documents), ("document was", "documents were"), "changed back"),
            (undone.conversations, ("conversation was", "conversations were"), "removed"),
            (undone.proposals, ("proposal was", "proposals were"), "withdrawn"),
        )
        if number
    ]
    _say(page, request, undone, [f"Undone. {words}." for words in back], "There was nothing to undo.")


def undo_note(undone: UndoResult, *, done: str = "undone") -> str:
    """Return the audit log's note about an undo, or "" if there was nothing to undo. `done` is the participle."""
    if undone.undone or undone.documents or undone.conversations or undone.proposals:
        return f"{done.capitalize()}."
    return f"Not {done}: all of it was changed since." if undone.skipped or undone.documents_skipped else ""


def report_restored(page: Any, request: HttpRequest, row: Model, undone: UndoResult) -> None:
    """Show what was restored by undoing an undo. Record it in the audit log, unless there was nothing to restore."""
    if note := undo_note(undone, done="restored"):
        action_record(request, type(row), note, [row])
    number = len(undone.undone)
    words = counted(number, "memory is as it was", "memories are as they were")
    back = [f"Restored. {words} before the undo."] if number else []
    _say(page, request, undone, back, "There was nothing to restore.")


def _say(page: Any, request: HttpRequest, undone: UndoResult, done: Sequence[str], nothing: str) -> None:
    for words in done:
        page.message_user(request, words, messages.SUCCESS)
    left = [*(f"memory {number}" for number in undone.skipped), *undone.documents_skipped]
    if left:
        why = "it was changed since, or another memory says the same"
        page.message_user(request, f"Left alone, because {why}: {', '.join(left)}.", messages.WARNING)
    if not done and not left:
        page.message_user(request, nothing, messages.WARNING)
