"""Operations that the product does in slices, run to completion in one call."""

from typing import Any
from uuid import UUID

from gateway.models import Session
from gateway.runs import branches
from gateway.sessions.keeping import session_delete_slices
from memories.caller import UNLIMITED, Caller, KeyLimits
from memories.database.batches import finish
from memories.forgetting import Receipt, erasure_begin, erasure_slices, forget_slices
from memories.history.undo import UndoResult, undo_slices
from memories.imports.conversations import conversation_store
from memories.imports.files import Upload
from memories.imports.report import ImportReport
from memories.imports.running import ImportRequest, import_slices
from memories.models import Book, ChangeSet, Erasure, Owner, WriteOrigin
from memories.services import Source
from reviews.consolidation.clear import ClearResult, clear_code_create, clear_confirmed
from reviews.models import ReviewRun
from reviews.undo import review_undo_slices


def undo_changes(change_set: ChangeSet, source: Source, *, only: frozenset[int] | None = None) -> UndoResult:
    """Undo a change set, or only its changes to some memories (by number)."""
    return finish(undo_slices(change_set, source, only=only))


def forget_memories(owner_id: UUID, **options: Any) -> Receipt:
    """Erase everything remembered about an owner, or one `book`."""
    return finish(forget_slices(owner_id, **options))


def forget_owner(owner: Owner) -> Receipt:
    """Erase an owner and all its data, but not the login."""
    return finish(erasure_slices(erasure_begin(owner.pk, Erasure.Scope.OWNER)))


def branch_choose(caller: Caller, session_id: UUID | None, run_id: UUID | None) -> Session:
    """Show the branch of a run."""
    return finish(branches.branch_choose(caller, session_id, run_id))


def session_delete(session: Session) -> None:
    """Delete a session and its transcript for good."""
    finish(session_delete_slices(session))


def book_clear(book: Book, *, actor: str) -> ClearResult:
    """Clear a book, with its confirmation code."""
    return finish(clear_confirmed(book, clear_code_create(book), actor=actor))


def review_undo(
    review: ReviewRun, *, actor: str, origin: WriteOrigin, only: frozenset[int] | None = None
) -> UndoResult:
    """Undo a review's writes, all or only some (by index)."""
    return finish(review_undo_slices(review, actor=actor, origin=origin, only=only))


def import_file(
    owner_id: UUID, data: bytes, *, actor: str = "user:1", name: str = "", limits: KeyLimits = UNLIMITED, **options: Any
) -> ImportReport:
    """Import a file of any format; `options` are those of an ImportRequest."""
    request = ImportRequest(upload=Upload.of(data, name), **options)
    report = finish(import_slices(owner_id, request, actor=actor, limits=limits))
    if report.written:
        finish(conversation_store().index(owner_id))
    return report


def import_text(owner_id: UUID, text: str, **options: Any) -> ImportReport:
    """Import JSON Lines; `options` are those of `import_file`."""
    return import_file(owner_id, text.encode(errors="surrogatepass"), format="jsonl", **options)
