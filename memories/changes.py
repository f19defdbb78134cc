"""Undo: taking back a change set, and putting a memory back to an earlier revision.

For each memory whose latest revision belongs to the set, the state before the set's first revision of it comes back, as
one revision of a new change set. Memories that were changed again since are left alone and listed. An undo is itself a
change set, so undoing it puts things back."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.utils import timezone

from memories.errors import NotFound
from memories.models import ChangeSet, Memory, Revision
from memories.services import Source, Written, book_writing


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
    """What an undo did: numbers of memories put back, and of those left alone."""

    change_set: UUID | None
    undone: tuple[int, ...]
    left_alone: tuple[int, ...]

    def as_json(self) -> dict[str, Any]:
        """As the API shows it."""
        return {
            "change_set": str(self.change_set) if self.change_set else None,
            "undone": [str(number) for number in self.undone],
            "left_alone": [str(number) for number in self.left_alone],
        }


def change_set_get(owner_id: UUID, change_set_id: UUID | None) -> ChangeSet:
    """The owner's change set, with its book. Raises NotFound."""
    found = (
        ChangeSet.objects.select_related("book").filter(owner_id=owner_id, pk=change_set_id).first()
        if change_set_id
        else None
    )
    if found is None:
        raise NotFound("There is no such group of changes.")
    return found


def undo_changes(change_set: ChangeSet, source: Source, *, only: frozenset[int] | None = None) -> Undone:
    """Take back a change set, or only what it did to some memories (by number)."""
    undone: list[int] = []
    left: list[int] = []
    with book_writing(change_set.book, source) as writer:
        revisions = Revision.objects.filter(owner_id=change_set.owner_id, change_set=change_set)
        first_of: dict[UUID, Revision] = {}
        for revision in revisions.order_by("memory_id", "version"):
            first_of.setdefault(revision.memory_id, revision)
        memories = Memory.objects.select_for_update().filter(pk__in=first_of).order_by("number")
        for memory in memories:
            if only is not None and memory.number not in only:
                continue
            if not revisions.filter(memory=memory, version=memory.version).exists():
                left.append(memory.number)
                continue
            writer.put_back(memory, _state_before(first_of[memory.pk]), Revision.Action.UNDO)
            undone.append(memory.number)
        new = writer.change_set
    return Undone(change_set=new.pk if new else None, undone=tuple(undone), left_alone=tuple(left))


def memory_restore(memory: Memory, revision: Revision, source: Source) -> Written:
    """Put back the state after one of the memory's revisions, also after a delete."""
    with book_writing(memory.book, source) as writer:
        current = Memory.objects.select_for_update().get(pk=memory.pk)
        state = {**revision.after, "deleted_at": None}
        return writer.put_back(current, state, Revision.Action.RESTORE)


def _state_before(first: Revision) -> dict[str, Any]:
    if first.before is not None:
        return dict(first.before)
    # The set made this memory: before it there was none, so a tombstone stands there.
    return {**first.after, "deleted_at": timezone.now().isoformat()}
