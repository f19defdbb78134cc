"""Moves bytes that are stored in messages to files: those of an earlier version, and those stored while the storage
failed. A worker scans all messages once, oldest first, and after that only new ones."""

from collections.abc import Iterator
from dataclasses import dataclass
from time import monotonic
from typing import Any
from uuid import UUID

from django.db import transaction

from gateway.attachments.decoding import split_data
from gateway.attachments.references import attached_in
from gateway.attachments.storing import content_store, large_texts
from gateway.attachments.uses import uses_add
from gateway.models import Message, Session
from gateway.runs.window import HAS_PARTS

SCAN_SECONDS = 1.0
MAX_FOUND = 20
_PAGE_SIZE = 500
_START = UUID(int=0)


@dataclass(slots=True)
class ScanPosition:
    """The message up to which this process has nothing left to move."""

    after: UUID = _START


def inline_found(position: ScanPosition) -> list[UUID]:
    """Return ids of messages with bytes to move, at most MAX_FOUND. They are returned again until they were moved."""
    until = monotonic() + SCAN_SECONDS
    found: list[UUID] = []
    for pk, has_parts in _after(position.after):
        if has_parts and _has_inline_data(Message.objects.filter(pk=pk).values_list("parts", flat=True).first()):
            found.append(pk)
        elif not found:
            position.after = pk
        if len(found) == MAX_FOUND or monotonic() >= until:
            break
    return found


def inline_move(pk: UUID) -> None:
    """Move the bytes of one message to files. Raises the storage's errors."""
    message = Message.objects.only("owner_id", "session_id", "parts").filter(pk=pk).first()
    if message is None or not _has_inline_data(message.parts):
        return
    message.parts = content_store(message.owner_id, message.parts)
    if next(attached_in(message.parts), None) is None:  # its file is being deleted
        return
    with transaction.atomic():
        session = Session.with_deleted.select_for_update(no_key=True).filter(pk=message.session_id).first()
        if session is not None and Message.objects.filter(pk=pk).update(parts=message.parts):
            uses_add(session, [message])


def _after(pk: UUID) -> Iterator[tuple[UUID, bool]]:
    """Yield (id, has content parts) of the messages after this one, without reading the parts."""
    while True:
        rows = Message.objects.filter(pk__gt=pk).annotate(has_parts=HAS_PARTS).order_by("pk")
        page = list(rows.values_list("pk", "has_parts")[:_PAGE_SIZE])
        yield from page
        if len(page) < _PAGE_SIZE:
            return
        pk = page[-1][0]


def _has_inline_data(parts: Any) -> bool:
    return any(split_data(text) for text in large_texts(parts))
