"""Undo of a change set, and the restoring of a memory to an earlier revision.

For each memory whose latest revision belongs to the set (or to an undo of it, or to an undo of that), the state before
the set's first revision of it is restored, as one revision of a new change set. A later change that was itself undone
counts as not made. Memories that were changed by somebody else since are left alone and listed. An undo is itself a
change set, so it can be undone, and then the first set can be undone again.

A set of up to ATOMIC memories is undone in one transaction; a larger one, such as an import, in short ones that are
one change set together. If that is interrupted, asking again undoes the rest."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from memories.artifacts.store import artifacts_undo
from memories.caller import UNLIMITED, KeyLimits
from memories.database.batches import BatchSize, Slices
from memories.errors import InvalidRequest, NotFound
from memories.evidence import proposal_store
from memories.imports.conversations import conversation_store
from memories.models import ChangeSet, Memory, Revision
from memories.services import (
    BookWriter,
    Source,
    WriteResult,
    book_changed,
    book_writing,
    memory_state,
    stored_state,
)

ATOMIC = 100  # memories of a change set that are undone in one transaction
_MAX_CHAIN = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
    """What an undo did: numbers of memories restored, and of those left alone."""

    change_set: UUID | None
    undone: tuple[int, ...]
    skipped: tuple[int, ...]
    documents: tuple[str, ...] = ()
    documents_skipped: tuple[str, ...] = ()
    conversations: int = 0  # of an import, removed for good
    proposals: int = 0  # of an import, withdrawn for good

    def as_json(self) -> dict[str, Any]:
        """Return what the API shows."""
        return {
            "change_set": str(self.change_set) if self.change_set else None,
            "undone": [str(number) for number in self.undone],
            "left_alone": [str(number) for number in self.skipped],
            "documents": list(self.documents),
            "documents_left_alone": list(self.documents_skipped),
            "conversations": self.conversations,
            "proposals": self.proposals,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoListener:
    """An app above that keeps track of what became of its change sets. Both are called inside a transaction of the undo
    with the set at the root of a chain of undos: `lock` in each of them before the book is locked, `undone` in the last
    one after the memories were changed; its last argument is True if the root's writes are now undone, False if they
    are in effect again."""

    undone: Callable[[ChangeSet, Undone, bool], None]
    lock: Callable[[ChangeSet], None] | None = None


_listeners: list[UndoListener] = []


def on_undone(listener: UndoListener) -> None:
    """Register a listener; called from an AppConfig's ready()."""
    if listener not in _listeners:
        _listeners.append(listener)


def change_set_get(owner_id: UUID, change_set_id: UUID | None, *, limits: KeyLimits = UNLIMITED) -> ChangeSet:
    """Return the owner's change set, with its book. Raises NotFound; a book that the key may not use counts as none."""
    found = (
        ChangeSet.objects.select_related("book").filter(owner_id=owner_id, pk=change_set_id).first()
        if change_set_id
        else None
    )
    if found is None or (limits and found.book.name not in limits.books):
        raise NotFound("There is no such group of changes.")
    return found


def undo_slices(
    change_set: ChangeSet, source: Source, *, only: frozenset[int] | None = None, limits: KeyLimits = UNLIMITED
) -> Slices[Undone]:
    """Undo a change set, or only what it did to some memories (by number), in slices: short transactions under the
    book's lock. What is undone already is neither undone again nor listed. With an import its held entries and, as far
    as the key may use them, its conversations are removed for good: an undo of the undo does not restore them."""
    undoing = _Undoing(change_set, replace(source, undoes=change_set.pk), only, *_root(change_set))
    memories = undoing.memories()
    size = BatchSize() if len(memories) > ATOMIC else BatchSize(first=ATOMIC)
    at = 0
    try:
        while not undoing.over:
            batch = memories[at : at + size.rows]
            at += len(batch)
            with size.measured():
                undoing.take_back(batch, last=at >= len(memories))
            if not undoing.over:
                yield
    finally:
        if not undoing.over and undoing.new is not None:
            book_changed(change_set.book, undoing.source, undoing.undone)
    if change_set.kind != ChangeSet.Kind.IMPORT or only is not None:
        return undoing.result()
    removed = yield from conversation_store().remove(change_set.owner_id, change_set.pk, limits)
    withdrawn = yield from proposal_store().withdraw(change_set.owner_id, change_set.pk)
    return replace(undoing.result(), conversations=removed, proposals=withdrawn)


@dataclass(slots=True)
class _Undoing:
    """An undo that is under way, in one transaction or several."""

    change_set: ChangeSet
    source: Source
    only: frozenset[int] | None
    root: ChangeSet
    depth: int
    new: ChangeSet | None = None
    undone: list[int] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    documents: list[str] = field(default_factory=list)
    documents_left: list[str] = field(default_factory=list)
    over: bool = False

    def memories(self) -> list[UUID]:
        """Return the memories that are looked at, by number."""
        rows = Memory.objects.filter(owner_id=self.change_set.owner_id, revisions__change_set=self.change_set)
        if self.only is not None:
            rows = rows.filter(number__in=self.only)
        return list(rows.order_by("number").distinct().values_list("pk", flat=True))

    @transaction.atomic
    def take_back(self, memories: Sequence[UUID], *, last: bool) -> None:
        """Take back what the set did to these memories; with the last ones its documents."""
        for listener in _listeners:
            if listener.lock is not None:
                listener.lock(self.root)
        with book_writing(self.change_set.book, self.source, change_set=self.new, silent=True) as writer:
            family = _family(self.change_set)
            self._take_back(writer, memories, family)
            if last and self.only is None:
                self.documents, self.documents_left = artifacts_undo(writer, self.change_set, family)
        self.new = writer.change_set
        if last:
            self.over = True
            if self.new is not None:
                book_changed(writer.book, self.source, self.undone)
            for listener in _listeners:
                listener.undone(self.root, self.result(), self.depth % 2 == 0)

    def _take_back(self, writer: BookWriter, memories: Sequence[UUID], family: set[UUID]) -> None:
        revisions = Revision.objects.filter(
            owner_id=self.change_set.owner_id, change_set=self.change_set, memory_id__in=memories
        )
        first_of = {revision.memory_id: revision for revision in revisions.order_by("-version")}
        standing = _standing(self.change_set.owner_id, set(first_of), family)
        for memory in Memory.objects.select_for_update().filter(pk__in=first_of).order_by("number"):
            if memory.pk not in standing:
                self.left.append(memory.number)
                continue
            state = _state_before(first_of[memory.pk])
            if not _is_so(memory, state) and writer.gather_restored(memory, state, Revision.Action.UNDO).changed:
                self.undone.append(memory.number)

    def result(self) -> Undone:
        return Undone(
            change_set=self.new.pk if self.new else None,
            undone=tuple(self.undone),
            skipped=tuple(self.left),
            documents=tuple(self.documents),
            documents_skipped=tuple(self.documents_left),
        )


def memory_restore(memory: Memory, revision: Revision, source: Source) -> WriteResult:
    """Put back the state after one of the memory's revisions; a deleted memory comes back as it was then.

    Raises InvalidRequest for a revision that deleted the memory, which is there again."""
    with book_writing(memory.book, source) as writer:
        current = Memory.objects.select_for_update().get(pk=memory.pk)
        if revision.after["deleted_at"] and not current.deleted_at:
            raise InvalidRequest("This revision deleted the memory. Name an earlier revision.", param="revision")
        state = {**revision.after, "deleted_at": None}
        return writer.gather_restored(current, state, Revision.Action.RESTORE)


def _root(change_set: ChangeSet) -> tuple[ChangeSet, int]:
    """Return the set at the beginning of a chain of undos, and how many undos lie above it."""
    depth = 0
    while change_set.undoes_id is not None and depth < _MAX_CHAIN:
        change_set = ChangeSet.objects.select_related("book").get(owner_id=change_set.owner_id, pk=change_set.undoes_id)
        depth += 1
    return change_set, depth


def _family(change_set: ChangeSet) -> set[UUID]:
    """Return the set, its undos, their undos, and so on."""
    family = {change_set.pk}
    newest = family
    for _ in range(_MAX_CHAIN):
        undos = ChangeSet.objects.filter(owner_id=change_set.owner_id, undoes_id__in=newest)
        newest = set(undos.values_list("pk", flat=True))
        if not newest:
            break
        family |= newest
    return family


def _standing(owner_id: UUID, memories: set[UUID], family: set[UUID]) -> set[UUID]:
    """Return those of the memories that are as the family left them: their latest revision belongs to it, or everything
    that came after it was undone."""
    revisions = Revision.objects.filter(owner_id=owner_id, memory_id__in=memories)
    latest = revisions.filter(version=F("memory__version")).values_list("memory_id", "change_set_id")
    standing = {memory for memory, change_set in latest if change_set in family}
    if others := memories - standing:
        history: dict[UUID, list[tuple[UUID, UUID | None]]] = {}
        rows = revisions.filter(memory_id__in=others).order_by("version")
        for memory, step, undoes in rows.values_list("memory_id", "change_set_id", "change_set__undoes_id"):
            history.setdefault(memory, []).append((step, undoes))
        standing |= {memory for memory, steps in history.items() if _stands(steps, family)}
    return standing


def _stands(steps: list[tuple[UUID, UUID | None]], family: set[UUID]) -> bool:
    """Return True if a revision of the family is in effect. `steps` are a memory's revisions, oldest first, each with
    its change set and the set that this one undoes. An undo leaves the memory as it was before the first revision of
    the set it undoes, so the search continues there."""
    while steps:
        step, undoes = steps[-1]
        if step in family:
            return True
        first = next((place for place, (earlier, _) in enumerate(steps) if earlier == undoes), None)
        if first is None:
            return False
        steps = steps[:first]
    return False


def _state_before(first: Revision) -> dict[str, Any]:
    if first.before is not None:
        return stored_state(first.before)
    # The set made this memory: before it there was none, so a tombstone stands there.
    return {**stored_state(first.after), "deleted_at": timezone.now().isoformat()}


def _is_so(memory: Memory, state: dict[str, Any]) -> bool:
    """Return True if the memory is in that state already; of two tombstones the hour does not matter."""
    now = memory_state(memory)
    return now == state or bool(now["deleted_at"] and state["deleted_at"])
