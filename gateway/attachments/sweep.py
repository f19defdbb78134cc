"""The job that deletes unused files: those of deleted sessions, of deleted owners, and of requests whose message was
never stored. It also moves bytes from messages to files: those of an earlier version, and those stored while the
storage failed. A worker scans all messages once, oldest first, and after that only new ones. The sweep takes a lease
and queues the job, so that a slow storage does not hold up other sweeps.

A file's row is deleted after the file, so a failed deletion is retried. If the storage fails, the job ends and keeps
its lease for a minute, which delays the next job."""

import logging
import time
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from gateway.attachments.decoding import split_data
from gateway.attachments.files import file_delete
from gateway.attachments.references import attached_in
from gateway.attachments.storing import content_store, large_texts
from gateway.attachments.uses import deletion_begin, deletion_end, is_deletion_due, uses_add
from gateway.jobs import enqueue, lease_extend, lease_is_held, lease_release, lease_take
from gateway.models import HAS_PARTS, Message, Session
from memories.selectors import paged

TASK = "gateway.attachments.sweep.attachments_tidy"
LEASE = "attachments"
JOB_SECONDS = 30.0
"""How long a job runs before it leaves the rest to the next one."""
TIMEOUT_SECONDS = 240
"""After how long a job that hangs in the storage is ended."""
LEASE_SECONDS = 300.0
PAUSE_SECONDS = 60.0
SCAN_SECONDS = 1.0
MAX_FOUND = 20
_START = UUID(int=0)
logger = logging.getLogger("daybook.attachments")


@dataclass(slots=True)
class ScanPosition:
    """The message up to which this process has nothing left to move."""

    after: UUID = _START


_position = ScanPosition()


def attachments_sweep(position: ScanPosition = _position) -> None:
    """Queue the job if there is something to do and it is not running. Idempotent; safe in several workers."""
    if lease_is_held(LEASE, seconds=LEASE_SECONDS):
        return
    to_move = _inline_found(position)
    if not to_move and not is_deletion_due(timezone.now()):
        return
    if token := lease_take(LEASE, seconds=LEASE_SECONDS):
        enqueue(TASK, token, *map(str, to_move), timeout=TIMEOUT_SECONDS)


def attachments_tidy(token: str, *to_move: str) -> None:
    """Delete unused files and move the bytes of these messages, for JOB_SECONDS at most."""
    lease, until = UUID(token), time.monotonic() + JOB_SECONDS
    remaining = [UUID(pk) for pk in to_move]
    try:
        while time.monotonic() < until and lease_extend(LEASE, lease, seconds=LEASE_SECONDS):
            if file := deletion_begin(timezone.now()):
                file_delete(file.owner_id, file.sha256)
                deletion_end(file)
            elif remaining:
                _inline_move(remaining.pop(0))
            else:
                break
    except Exception:  # each storage has its own errors; the rows remain, so it is tried again
        logger.exception("the storage of attachments failed; the rest is tried again in a minute")
        lease_extend(LEASE, lease, seconds=PAUSE_SECONDS)
        return
    lease_release(LEASE, lease)


def _inline_found(position: ScanPosition) -> list[UUID]:
    """Return ids of messages with bytes to move, at most MAX_FOUND. They are returned again until they were moved."""
    until = time.monotonic() + SCAN_SECONDS
    found: list[UUID] = []
    later = Message.objects.filter(pk__gt=position.after).annotate(has_parts=HAS_PARTS).only("pk")
    for row in paged(later, "pk"):
        has_parts = row.has_parts  # type: ignore[attr-defined]
        if has_parts and _has_inline_data(Message.objects.filter(pk=row.pk).values_list("parts", flat=True).first()):
            found.append(row.pk)
        elif not found:
            position.after = row.pk
        if len(found) == MAX_FOUND or time.monotonic() >= until:
            break
    return found


def _inline_move(pk: UUID) -> None:
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


def _has_inline_data(parts: Any) -> bool:
    return any(split_data(text) for text in large_texts(parts))
