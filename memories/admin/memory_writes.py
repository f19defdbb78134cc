"""What an administrator does to memories, through memories.services: each change is a revision by `staff:ID`;
what was done to several memories of one book at once is one change set, which can be undone as one."""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby

from django.core.serializers.json import DjangoJSONEncoder
from django.http import HttpRequest

from memories.admin.base import staff_actor
from memories.api.forms import memory_json
from memories.batches import in_turns
from memories.changes import Undone, undo_slices
from memories.errors import DomainError
from memories.models import ChangeSet, Memory, Revision, WriteOrigin
from memories.services import BookWriter, Source, WriteResult, book_writing, memory_state

Write = Callable[[BookWriter, Memory], WriteResult]


@dataclass(slots=True)
class BulkWriteResult:
    """How many memories were changed, and for the others why not, in words."""

    done: int = 0
    left: list[str] = field(default_factory=list)


def staff_source(request: HttpRequest, kind: ChangeSet.Kind = ChangeSet.Kind.EDIT) -> Source:
    """Return the source of an administrator's writes."""
    return Source(actor=staff_actor(request), origin=WriteOrigin.ADMIN, kind=kind)


def change_set_undo(request: HttpRequest, change_set: ChangeSet) -> Undone:
    """Undo a change set for an administrator, in slices."""
    return in_turns(undo_slices(change_set, staff_source(request, ChangeSet.Kind.UNDO)))


def memories_write(memories: Iterable[Memory], write: Write, source: Source) -> BulkWriteResult:
    """Do the same to several memories, book by book. A memory that is refused is left alone and reported."""
    outcome = BulkWriteResult()
    by_book = sorted(memories, key=lambda memory: (memory.book_id, memory.number))
    for _, group in groupby(by_book, key=lambda memory: memory.book_id):
        rows = list(group)
        with book_writing(rows[0].book, source) as writer:
            for memory in rows:
                _write_one(writer, memory, write, outcome)
    return outcome


def delete_one(writer: BookWriter, memory: Memory) -> WriteResult:
    """Make a live memory a tombstone."""
    return writer.delete(memory.number)


def restore_one(writer: BookWriter, memory: Memory) -> WriteResult:
    """Put a deleted memory back as it was; a live one stays as it is."""
    memory.refresh_from_db()  # the book is locked now: nobody changes it between this look and the write
    return writer.gather_restored(memory, {**memory_state(memory), "deleted_at": None}, Revision.Action.RESTORE)


def allow_one(writer: BookWriter, memory: Memory) -> WriteResult:
    """Let a blocked memory into answers, exactly as it reads now; one that is not blocked stays as it is."""
    present = writer.memory(memory.number)
    return writer.allow(memory.number) if present.blocked else WriteResult(present, None, changed=False)


def memory_lines(memories: Iterable[Memory]) -> Iterator[str]:
    """Yield memories as JSON Lines."""
    for memory in memories:
        exported = {**memory_json(memory), "owner": str(memory.owner), "deleted_at": memory.deleted_at}
        yield json.dumps(exported, ensure_ascii=False, cls=DjangoJSONEncoder) + "\n"


def _write_one(writer: BookWriter, memory: Memory, write: Write, outcome: BulkWriteResult) -> None:
    try:
        written = write(writer, memory)
    except DomainError as refusal:
        outcome.left.append(f"{memory.number}: {refusal}")
        return
    if written.changed:
        outcome.done += 1
    else:
        outcome.left.append(f"{memory.number}: it is like that already.")
