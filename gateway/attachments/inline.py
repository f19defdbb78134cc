"""Messages that hold bytes themselves: stored by an earlier version, or while the storage failed. A worker searches all
messages once, oldest first, and after that only new messages."""

from collections.abc import Iterator
from dataclasses import dataclass
from time import monotonic
from typing import Any
from uuid import UUID

from django.db import transaction

from gateway.attachments.decoding import split_data
from gateway.attachments.keeping import content_keep_in_worker, large_texts
from gateway.attachments.references import attached_in
from gateway.attachments.uses import uses_add
from gateway.models import Message, Session
from gateway.runs.window import HAS_PARTS

LOOK_SECONDS = 1.0
MOST_FOUND = 20
_AT_ONCE = 500
_BEFORE_ALL = UUID(int=0)


@dataclass(slots=True)
class Walk:
    """The message up to which this process has found nothing more to move."""

    after: UUID = _BEFORE_ALL


def inline_found(walk: Walk) -> list[UUID]:
    """Return some messages whose bytes are to be moved. They are returned again until they have been moved."""
    until = monotonic() + LOOK_SECONDS
    found: list[UUID] = []
    for pk, has_parts in _after(walk.after):
        if has_parts and _is_to_move(Message.objects.filter(pk=pk).values_list("parts", flat=True).first()):
            found.append(pk)
        elif not found:
            walk.after = pk
        if len(found) == MOST_FOUND or monotonic() >= until:
            break
    return found


def inline_move(pk: UUID) -> None:
    """Move the bytes of one message to files. Raises what the storage raises."""
    message = Message.objects.only("owner_id", "session_id", "parts").filter(pk=pk).first()
    if message is None or not _is_to_move(message.parts):
        return
    message.parts = content_keep_in_worker(message.owner_id, message.parts)
    if next(attached_in(message.parts), None) is None:  # its file is being deleted
        return
    with transaction.atomic():
        session = Session.with_deleted.select_for_update().filter(pk=message.session_id).first()
        if session is not None and Message.objects.filter(pk=pk).update(parts=message.parts):
            uses_add(session, [message])


def _after(pk: UUID) -> Iterator[tuple[UUID, bool]]:
    """Yield the messages after this one, each with whether it has content parts, without reading the parts."""
    while True:
        rows = Message.objects.filter(pk__gt=pk).annotate(has_parts=HAS_PARTS).order_by("pk")
        page = list(rows.values_list("pk", "has_parts")[:_AT_ONCE])
        yield from page
        if len(page) < _AT_ONCE:
            return
        pk = page[-1][0]


def _is_to_move(parts: Any) -> bool:
    return any(split_data(text) for text in large_texts(parts))
