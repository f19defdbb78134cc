"""Undo a change set, or restore a memory to an earlier revision.

For each memory whose latest revision belongs to the change set (or to an undo of it, an undo of that, and so on), the
state before the first revision in the set is restored, as one revision of a new change set. Later changes that were
undone are ignored, as are search keywords that the background job added. Memories that were otherwise changed since are
left alone and listed, and so are those whose earlier text another memory has by now. Documents are treated alike. An
undo is a change set too, so it can be undone, and then the original set can be undone again.

A set of up to ATOMIC memories is undone in one transaction; a larger one, such as an import, in several short ones that
form one change set. If that is interrupted, another undo completes it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from memories.artifacts.store import artifacts_undo
from memories.caller import UNLIMITED, KeyLimits
from memories.database.batches import BatchSize, Slices
from memories.entry_rules import content_key
from memories.errors import InvalidRequest, NotFound
from memories.evidence import proposal_store
from memories.imports.conversations import conversation_store
from memories.models import Book, ChangeSet, Memory, Revision, WriteOrigin
from memories.selectors import MAX_UNDO_CHAIN, is_in_effect, live_in, row_by_id, undo_steps
from memories.services import BookWriter, Source, WriteResult, book_changed, book_writing, memory_state, stored_state

ATOMIC = 100  # memories that are undone in a single transaction at most


@dataclass(slots=True, kw_only=True)
class UndoResult:
    """The result of an undo: the numbers of the restored memories, and of those left alone."""

    change_set: UUID | None = None
    undone: tuple[int, ...] = ()
    skipped: tuple[int, ...] = ()
    documents: tuple[str, ...] = ()
    documents_skipped: tuple[str, ...] = ()
    conversations: int = 0  # of an import, deleted permanently
    proposals: int = 0  # of an import, withdrawn permanently

    def as_json(self) -> dict[str, Any]:
        """Return the API representation."""
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
    """Callbacks of an app of a higher layer that tracks its change sets. Both are called within a transaction of the
    undo, with the original change set of a chain of undos: `lock` in every transaction, before the book is locked, and
    `undone` in the last one, after the memories were changed. The last argument of `undone` is True if the original
    writes are now undone, False if they are in effect again."""

    undone: Callable[[ChangeSet, UndoResult, bool], None]
    lock: Callable[[ChangeSet], None] = lambda root: None


_listeners: list[UndoListener] = []
register_undo_listener = _listeners.append
"""Registers a listener; called from AppConfig.ready()."""


def change_set_get(owner_id: UUID, change_set_id: UUID | None, *, limits: KeyLimits = UNLIMITED) -> ChangeSet:
    """Return the owner's change set, with its book. Raises NotFound, also if the key may not use the book."""
    found = row_by_id(ChangeSet.objects.select_related("book").filter(owner_id=owner_id), change_set_id)
    if found is None or (limits and found.book.name not in limits.books):
        raise NotFound("There is no such group of changes.")
    return found


def undo_slices(
    change_set: ChangeSet, source: Source, *, only: frozenset[int] | None = None, limits: KeyLimits = UNLIMITED
) -> Slices[UndoResult]:
    """Undo a change set, or only its changes to some memories (by number), in slices: short transactions under the
    book's lock. Changes that are undone already are skipped and not listed. The held entries of an import are deleted
    permanently, as well as its conversations that the key may use: an undo of the undo does not restore them."""
    undoing = _Undoing(change_set, replace(source, undoes=change_set.pk), only, *_root(change_set))
    memories = undoing.memories()
    size = BatchSize() if len(memories) > ATOMIC else BatchSize(initial=ATOMIC)
    at = 0
    try:
        while not undoing.finished:
            batch = memories[at : at + size.rows]
            at += len(batch)
            with size.measured():
                undoing.revert(batch, last=at >= len(memories) and not undoing.postponed)
            if at >= len(memories) and undoing.postponed:
                # Backwards: each was given a text that a later one has returned by now.
                memories, at, undoing.postponed = undoing.postponed[::-1], 0, None
            if not undoing.finished:
                yield
    finally:
        if not undoing.finished and undoing.new is not None:
            book_changed(change_set.book, undoing.source, undoing.result.undone)
    result, owner_id = undoing.result, change_set.owner_id
    if change_set.kind == ChangeSet.Kind.IMPORT and only is None:
        result.conversations = yield from conversation_store().remove(owner_id, change_set.pk, limits)
        result.proposals = yield from proposal_store().withdraw(owner_id, change_set.pk)
    return result


@dataclass(slots=True)
class _Undoing:
    """The progress of an undo, in one transaction or several."""

    change_set: ChangeSet
    source: Source
    only: frozenset[int] | None
    root: ChangeSet
    depth: int
    new: ChangeSet | None = None
    result: UndoResult = field(default_factory=UndoResult)
    postponed: list[UUID] | None = field(default_factory=list)  # whose text a later memory has; None: not any more
    finished: bool = False

    def memories(self) -> list[UUID]:
        """Return the ids of the affected memories, ordered by number."""
        rows = Memory.objects.filter(owner_id=self.change_set.owner_id, revisions__change_set=self.change_set)
        if self.only is not None:
            rows = rows.filter(number__in=self.only)
        return list(rows.order_by("number").distinct().values_list("pk", flat=True))

    @transaction.atomic
    def revert(self, memories: Sequence[UUID], *, last: bool) -> None:
        """Revert the changes to these memories and, with the last ones, to documents."""
        for listener in _listeners:
            listener.lock(self.root)
        with book_writing(self.change_set.book, self.source, change_set=self.new, silent=True) as writer:
            steps = undo_steps(self.change_set.owner_id, [self.change_set.pk])
            family = {self.change_set.pk, *(undo.pk for _, undo, _ in steps)}
            self._revert(writer, memories, family, last=last)
            if self.root.kind == ChangeSet.Kind.CLEAR:
                writer.changes()  # also if it had no memories, so that it is known to be undone
            if last and self.only is None:
                documents = artifacts_undo(writer, self.change_set, family)
                self.result.documents, self.result.documents_skipped = documents
        self.new = writer.change_set
        self.result.change_set = self.new.pk if self.new else None
        if last:
            self.finished = True
            if self.new is not None:
                book_changed(writer.book, self.source, self.result.undone)
            for listener in _listeners:
                listener.undone(self.root, self.result, self.depth % 2 == 0)

    def _revert(self, writer: BookWriter, memories: Sequence[UUID], family: set[UUID], *, last: bool) -> None:
        revisions = Revision.objects.filter(
            owner_id=self.change_set.owner_id, change_set=self.change_set, memory_id__in=memories
        )
        steps = list(revisions.order_by("version"))
        last_of = {revision.memory_id: revision for revision in steps}
        first_of = {revision.memory_id: revision for revision in reversed(steps)}
        unchanged = _unchanged_since(self.change_set.owner_id, set(first_of), family)
        earlier: list[tuple[Memory, dict[str, Any]]] = []
        undone: list[int] = []
        skipped: list[int] = []
        for memory in Memory.objects.select_for_update().filter(pk__in=first_of).order_by("number"):
            if memory.pk not in unchanged:
                skipped.append(memory.number)
                continue
            state = _state_before(first_of[memory.pk])
            if memory.content == state["content"] and not (state["keywords"] or last_of[memory.pk].after["keywords"]):
                state["keywords"] = memory.keywords  # which the background job added since
            if not _has_state(memory, state):
                earlier.append((memory, state))
        repeated = _repeated(writer.book, earlier)
        for memory, state in earlier:
            if memory.pk not in repeated:
                if writer.gather_restored(memory, state, Revision.Action.UNDO).changed:
                    undone.append(memory.number)
            elif last or self.postponed is None:
                skipped.append(memory.number)
            else:
                self.postponed.append(memory.pk)
        self.result.undone += tuple(undone)
        self.result.skipped += tuple(skipped)


def memory_restore(memory: Memory, revision: Revision, source: Source) -> WriteResult:
    """Restore the state after one of the memory's revisions; a deleted memory becomes live again.

    Raises InvalidRequest for the revision that deleted a memory which is live again."""
    with book_writing(memory.book, source) as writer:
        current = Memory.objects.select_for_update().get(pk=memory.pk)
        if revision.after["deleted_at"] and not current.deleted_at:
            raise InvalidRequest("This revision deleted the memory. Name an earlier revision.", param="revision")
        state = {**revision.after, "deleted_at": None}
        return writer.gather_restored(current, state, Revision.Action.RESTORE)


def _root(change_set: ChangeSet) -> tuple[ChangeSet, int]:
    """Return the original change set of a chain of undos, and the length of the chain."""
    depth = 0
    while change_set.undoes_id is not None and depth < MAX_UNDO_CHAIN:
        change_set = ChangeSet.objects.select_related("book").get(owner_id=change_set.owner_id, pk=change_set.undoes_id)
        depth += 1
    return change_set, depth


def _unchanged_since(owner_id: UUID, memories: set[UUID], family: set[UUID]) -> set[UUID]:
    """Return the memories that are as the family left them: their latest revision belongs to it, or all later changes
    were undone or only added search keywords in the background."""
    revisions = Revision.objects.filter(owner_id=owner_id, memory_id__in=memories)
    latest = revisions.filter(version=F("memory__version")).values_list("memory_id", "change_set_id")
    unchanged = {memory for memory, change_set in latest if change_set in family}
    if others := memories - unchanged:
        history: dict[UUID, list[tuple[UUID, UUID | None, bool]]] = {}
        columns = ("memory_id", "change_set_id", "change_set__undoes_id", "by_job")
        rows = (
            revisions.filter(memory_id__in=others)
            .order_by("version")
            .annotate(by_job=Q(write_origin=WriteOrigin.SYSTEM, action=Revision.Action.UPDATE))
        )
        for memory, step, undoes, by_job in rows.values_list(*columns):
            history.setdefault(memory, []).append((step, undoes, by_job))
        unchanged |= {memory for memory, steps in history.items() if is_in_effect(steps, family)}
    return unchanged


def _repeated(book: Book, earlier: Sequence[tuple[Memory, dict[str, Any]]]) -> set[UUID]:
    """Return the ids of the memories whose earlier state brings back a text that another live memory has by now."""
    keys = {
        memory.pk: content_key(state["content"])
        for memory, state in earlier
        if not state["deleted_at"] and (memory.deleted_at or memory.content != state["content"])
    }
    others = (
        live_in(book).filter(content_key__in=set(keys.values())).exclude(pk__in=[memory.pk for memory, _ in earlier])
    )
    said = set(others.values_list("content_key", flat=True))
    return {memory for memory, key in keys.items() if key in said}


def _state_before(first: Revision) -> dict[str, Any]:
    if first.before is not None:
        return stored_state(first.before)
    # The change set created this memory, so undoing it leaves a tombstone.
    return {**stored_state(first.after), "deleted_at": timezone.now().isoformat()}


def _has_state(memory: Memory, state: dict[str, Any]) -> bool:
    """Return True if the memory is in that state already. The time of deletion does not matter."""
    now = memory_state(memory)
    return now == state or bool(now["deleted_at"] and state["deleted_at"])
