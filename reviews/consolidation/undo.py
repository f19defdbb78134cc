"""Undoing the documents that a consolidation wrote. The result of an undo or redo stays until a note or a document
changes; otherwise the next run would see changed documents and rewrite them from the same notes."""

from memories.artifacts.store import live_artifacts, versions_of
from memories.history.undo import UndoResult
from memories.models import ChangeSet
from reviews.models import ConsolidationRun, ConsolidationState


def record_documents_undone(root: ChangeSet, undone: UndoResult, is_undo: bool) -> None:
    """Record the versions of documents that were undone or redone as synthesized. Other documents that people changed,
    and new notes, still count as changes. The caller has locked the book, as for every write to this state."""
    if not undone.documents or not ConsolidationRun.objects.filter(owner_id=root.owner_id, change_set=root.pk).exists():
        return
    state = ConsolidationState.objects.select_for_update().filter(book_id=root.book_id).first()
    if state is None:
        return
    current = versions_of(list(live_artifacts(root.owner_id, root.book_id)))
    others = {path: version for path, version in state.artifact_versions.items() if path not in undone.documents}
    state.artifact_versions = others | {path: current[path] for path in undone.documents if path in current}
    state.save(update_fields=["artifact_versions"])
