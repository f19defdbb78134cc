"""Taking back what a consolidation wrote: it stays taken back, or put back, until a note or a document changes.
Otherwise the next run would find other documents than it left, and write them from the same notes again."""

from memories.artifacts.store import live_artifacts, versions_of
from memories.history.undo import Undone
from memories.models import ChangeSet
from reviews.models import ConsolidationRun, ConsolidationState


def note_documents_undone(root: ChangeSet, undone: Undone, taken_back: bool) -> None:
    """Note the versions of the documents that were undone as those that are known. What people changed beside them, and
    new notes, still count as changes. The book is locked, as by whoever writes this state."""
    if not undone.documents or not ConsolidationRun.objects.filter(owner_id=root.owner_id, change_set=root.pk).exists():
        return
    state = ConsolidationState.objects.select_for_update().filter(book_id=root.book_id).first()
    if state is None:
        return
    now = versions_of(list(live_artifacts(root.owner_id, root.book_id)))
    others = {path: version for path, version in state.artifact_versions.items() if path not in undone.documents}
    state.artifact_versions = others | {path: now[path] for path in undone.documents if path in now}
    state.save(update_fields=["artifact_versions"])
