"""The job that deletes unused files: those of deleted sessions, of deleted owners, and of requests whose message was
never stored. It also moves bytes from messages to files. The sweep takes a lease and queues the job, so that a slow
storage does not hold up other sweeps.

A file's row is deleted after the file, so a failed deletion is retried. If the storage fails, the job ends and keeps
its lease for a minute, which delays the next job."""

import logging
import time
from uuid import UUID

from django.utils import timezone

from gateway.attachments.files import file_delete
from gateway.attachments.inline import ScanPosition, inline_found, inline_move
from gateway.attachments.uses import deletion_begin, deletion_end, is_deletion_due
from gateway.jobs import enqueue, lease_extend, lease_is_held, lease_release, lease_take

TASK = "gateway.attachments.sweep.attachments_tidy"
LEASE = "attachments"
JOB_SECONDS = 30.0
"""How long a job runs before it leaves the rest to the next one."""
TIMEOUT_SECONDS = 240
"""After how long a job that hangs in the storage is ended."""
LEASE_SECONDS = 300.0
PAUSE_SECONDS = 60.0
logger = logging.getLogger("daybook.attachments")
_position = ScanPosition()


def attachments_sweep(position: ScanPosition = _position) -> None:
    """Queue the job if there is something to do and it is not running. Idempotent; safe in several workers."""
    if lease_is_held(LEASE, seconds=LEASE_SECONDS):
        return
    to_move = inline_found(position)
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
                inline_move(remaining.pop(0))
            else:
                break
    except Exception:  # each storage has its own errors; the rows remain, so it is tried again
        logger.exception("the storage of attachments failed; the rest is tried again in a minute")
        lease_extend(LEASE, lease, seconds=PAUSE_SECONDS)
        return
    lease_release(LEASE, lease)
