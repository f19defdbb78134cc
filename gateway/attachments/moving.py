"""Moves bytes that messages hold themselves to files, in the worker: of messages that an earlier version stored, and of
those that were stored while the storage failed. It walks through all messages once in the life of a process, oldest
first, and then looks at new ones."""

import logging
from dataclasses import dataclass
from time import monotonic
from uuid import UUID

from django.db import transaction

from gateway.attachments.keeping import content_keep_in_worker, holds_large
from gateway.attachments.uses import uses_add
from gateway.models import Message, Session
from gateway.runs.window import HAS_PARTS

MOVE_SECONDS = 1.0
PAUSE_SECONDS = 60.0
_AT_ONCE = 500
_BEFORE_ALL = UUID(int=0)
logger = logging.getLogger("daybook.attachments")


@dataclass(slots=True)
class Walk:
    """How far this process has come."""

    after: UUID = _BEFORE_ALL
    paused_until: float = 0.0


_walk = Walk()


def attachments_move(walk: Walk = _walk) -> None:
    """Move some. It is idempotent and safe in several workers; while the storage fails it looks once a minute."""
    until = monotonic() + MOVE_SECONDS
    if monotonic() < walk.paused_until:
        return
    while rows := _next(walk.after):
        for pk, has_parts in rows:
            if has_parts:
                try:
                    _move(pk)
                except Exception:  # each storage has its own errors
                    logger.exception("the attachments of a message cannot be stored as files")
                    walk.paused_until = monotonic() + PAUSE_SECONDS
                    return
            walk.after = pk
            if monotonic() >= until:
                return


def _next(after: UUID) -> list[tuple[UUID, bool]]:
    """Return messages after one, and whether each has content parts."""
    rows = Message.objects.filter(pk__gt=after).annotate(has_parts=HAS_PARTS).order_by("pk")
    return list(rows.values_list("pk", "has_parts")[:_AT_ONCE])


def _move(pk: UUID) -> None:
    message = Message.objects.only("owner_id", "session_id", "parts").filter(pk=pk).first()
    if message is None or not holds_large(message.parts):
        return
    message.parts = content_keep_in_worker(message.owner_id, message.parts)
    with transaction.atomic():
        session = Session.with_deleted.select_for_update().filter(pk=message.session_id).first()
        if session is not None and Message.objects.filter(pk=pk).update(parts=message.parts):
            uses_add(session, [message])
