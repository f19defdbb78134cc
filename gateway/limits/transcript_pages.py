"""Limits how many pages with a person's conversation are built at once in this process. One of them may hold many
megabytes of messages, their HTML and its copies, and pages run in a thread of their own for each request."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from memories.database.access import release_connection
from memories.errors import Overloaded
from memories.limits import TRANSCRIPTS, TRANSCRIPTS_WAITING
from memories.open_counts import OpenCounts

WAIT_SECONDS = 15.0
_RETRY_AFTER = 5  # seconds
_changed = threading.Condition()
_open, _waiting = OpenCounts[UUID](), OpenCounts[UUID]()


@contextmanager
def transcript_page(owner_id: UUID) -> Iterator[None]:
    """Count a page in this context, after waiting for others of the owner. Raises Overloaded after WAIT_SECONDS, or at
    once if too many wait."""
    release_connection()
    with _changed:
        if not _waiting.enter(owner_id, limit=TRANSCRIPTS_WAITING):
            raise _refusal()
        try:
            if not _changed.wait_for(lambda: _open.enter(owner_id, limit=TRANSCRIPTS), WAIT_SECONDS):
                raise _refusal()
        finally:
            _waiting.leave(owner_id)
    try:
        yield
    finally:
        with _changed:
            _open.leave(owner_id)
            _changed.notify_all()


def _refusal() -> Overloaded:
    return Overloaded("Too many pages of yours are being loaded. Try again in a moment.", retry_after=_RETRY_AFTER)
