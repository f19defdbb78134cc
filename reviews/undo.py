"""Undoing a review's writes, and updating the states of reviews and of consolidation whenever what they wrote is undone
or redone: from the toast, the review's page, the history of a change set, or the admin."""

from memories.artifacts.store import live_artifacts, versions_of
from memories.database.batches import Slices
from memories.errors import Conflict, InvalidRequest
from memories.history.undo import UndoResult, change_set_get, undo_slices
from memories.messaging.outbox import notify
from memories.models import ChangeSet, Notification, WriteOrigin
from memories.services import Source
from reviews.ending import state_after
from reviews.models import ConsolidationRun, ConsolidationState, ReviewRun
from reviews.writes import WriteState

State = ReviewRun.State
_WRITTEN = (WriteState.APPLIED, WriteState.UNDONE, WriteState.SKIPPED)
_UNDOABLE = (State.SAVED, State.UNDONE, State.AWAITING_APPROVAL)


def review_undo_slices(
    review: ReviewRun, *, actor: str, origin: WriteOrigin, only: frozenset[int] | None = None
) -> Slices[UndoResult]:
    """Undo a review's writes, all or those with the indexes in `only`, in slices. The result does not list writes that
    were undone before.

    Raises Conflict if the review wrote nothing, InvalidRequest for an unknown index."""
    if review.change_set is None or review.state not in _UNDOABLE:
        raise Conflict("This review wrote nothing that could be undone.")
    change_set = change_set_get(review.owner_id, review.change_set)
    numbers = None
    if only is not None:
        if unknown := only - {write.index for write in review.writes}:
            raise InvalidRequest(f"This review has no write {min(unknown)}.", param="writes")
        written = (write for write in review.writes if write.state in _WRITTEN)
        numbers = frozenset(write.number for write in written if write.index in only)
    source = Source(actor=actor, origin=origin, kind=ChangeSet.Kind.UNDO, review_id=review.pk)
    return (yield from undo_slices(change_set, source, only=numbers))


def lock_review(root: ChangeSet) -> None:
    """Lock the review that a change set belongs to, before the book is locked to undo it."""
    if root.review_id:
        ReviewRun.objects.select_for_update(of=("self",)).filter(pk=root.review_id, change_set=root.pk).first()


def record_undone(root: ChangeSet, undone: UndoResult, is_undo: bool) -> None:
    """Mark the writes of the review whose change set was undone or redone, and notify its owner."""
    if not root.review_id or not (undone.undone or undone.skipped):
        return
    review = ReviewRun.objects.filter(pk=root.review_id, change_set=root.pk, state__in=_UNDOABLE).first()
    if review is None:
        return
    for write in review.writes:
        if write.number in undone.undone and write.state in _WRITTEN:
            write.state = WriteState.UNDONE if is_undo else WriteState.APPLIED
        elif write.number in undone.skipped and write.state == WriteState.APPLIED:
            write.state = WriteState.SKIPPED
    if undone.undone:
        review.state = state_after(review.writes)
    review.save(update_fields=["writes", "state"])
    if undone.undone and is_undo:
        notify(
            owner_id=review.owner_id,
            kind=Notification.Kind.REVIEW_UNDONE,
            book=review.book.name,
            review_id=review.pk,
            memory_numbers=undone.undone,
        )


def record_documents_undone(root: ChangeSet, undone: UndoResult, is_undo: bool) -> None:
    """Record the versions of documents that were undone or redone as synthesized, so that the next consolidation does
    not rewrite them from the same notes. Other documents that people changed, and new notes, still count as changes.
    The caller has locked the book, as for every write to this state."""
    if not undone.documents or not ConsolidationRun.objects.filter(owner_id=root.owner_id, change_set=root.pk).exists():
        return
    state = ConsolidationState.objects.select_for_update().filter(book_id=root.book_id).first()
    if state is None:
        return
    current = versions_of(live_artifacts(root.owner_id, root.book_id))
    others = {path: version for path, version in state.artifact_versions.items() if path not in undone.documents}
    state.artifact_versions = others | {path: current[path] for path in undone.documents if path in current}
    state.save(update_fields=["artifact_versions"])
