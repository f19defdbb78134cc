"""Names, tags, pins and archives sessions, deletes them so that it can be undone for a minute, and purges deleted and
temporary ones. gateway.services deletes the rows."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils import timezone

from gateway.models import Session
from gateway.services import clean_title, sessions_delete
from gateway.sessions.tags import as_stored, clean_tags
from memories.caller import UNLIMITED, KeyLimits
from memories.errors import NotFound

RESTORABLE = timedelta(minutes=1)
"""How long a session can be restored."""
TEMPORARY = timedelta(days=1)
"""How long a temporary session is kept after its last activity."""
_BATCH = 50


def session_change(
    session: Session,
    *,
    title: str | None = None,
    pinned: bool | None = None,
    archived: bool | None = None,
    tags: Iterable[str] | None = None,
) -> Session:
    """Change the given fields of a session; None leaves a field unchanged. `tags` replace all tags. Raises
    InvalidRequest for a title that is too long, and for tags that are too long or too many."""
    now = timezone.now()
    changes: dict[str, Any] = {}
    if title is not None:
        changes["title"] = clean_title(title)
    if pinned is not None:
        changes["pinned_at"] = (session.pinned_at or now) if pinned else None
    if archived is not None:
        changes["archived_at"] = (session.archived_at or now) if archived else None
    if tags is not None:
        changes["tags"] = as_stored(clean_tags(tags))
    for name, value in changes.items():
        setattr(session, name, value)
    session.save(update_fields=list(changes))  # no others: another request may have changed them meanwhile
    return session


def session_discard(session: Session) -> None:
    """Delete a session so that `session_restore` can undo it, until the sweep deletes its rows a minute later."""
    Session.objects.filter(pk=session.pk).update(deleted_at=timezone.now())


def session_restore(owner_id: UUID, session_id: UUID | None, *, limits: KeyLimits = UNLIMITED) -> Session:
    """Restore a discarded session completely. Raises NotFound if its rows have been deleted.

    If a client has started another session with this one's external id, the new one keeps that id."""
    rows = limits.filter(Session.with_deleted.filter(owner_id=owner_id), agent="agent__name")
    discarded = rows.filter(pk=session_id, deleted_at__isnull=False) if session_id else rows.none()
    try:
        with transaction.atomic():
            restored = discarded.update(deleted_at=None)
    except IntegrityError:
        restored = discarded.update(deleted_at=None, external_id=None)
    if session_id is None or restored != 1:
        raise NotFound("This session was deleted for good, or never deleted.")
    return Session.objects.select_related("agent").get(owner_id=owner_id, pk=str(session_id))


def sessions_purge(now: datetime) -> int:
    """Delete expired sessions for good. Return their number."""
    discarded = Session.with_deleted.filter(deleted_at__lt=now - RESTORABLE)
    temporary = Session.with_deleted.filter(temporary=True, last_active_at__lt=now - TEMPORARY)
    expired = [(rows, rows.order_by("pk").values_list("pk", flat=True)[:_BATCH]) for rows in (discarded, temporary)]
    return sum(_purge(rows, pk) for rows, keys in expired for pk in keys)


@transaction.atomic
def _purge(rows: "QuerySet[Session]", pk: UUID) -> int:
    """Delete a session if it is still expired: it may have been restored or continued in the meantime."""
    session = rows.select_for_update(of=("self",), no_key=True).filter(pk=pk).first()
    return sessions_delete(session.owner_id, [pk]) if session else 0
