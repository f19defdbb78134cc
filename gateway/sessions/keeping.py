"""Names, tags, pins and archives sessions, deletes them so that it can be undone for a minute, and purges deleted and
temporary ones. gateway.services deletes the rows.

Tags are a few short words for finding conversations again. They are stored in the session's row, so lists of sessions
need no additional query."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Any, TypeVar
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils import timezone

from gateway.models import Message, Run, Session
from gateway.services import clean_title, session_get, sessions_delete
from memories.caller import UNLIMITED, KeyLimits
from memories.clocks import CLOCK_SKEW
from memories.database.access import only_row
from memories.database.batches import Batch, Slices, in_batches, run_slices_within
from memories.errors import InvalidRequest, NotFound
from memories.models import ThreadRecord
from memories.services.erasing import deleting

RESTORABLE = timedelta(minutes=1)
"""How long a session can be restored."""
TEMPORARY = timedelta(days=1)
"""How long a temporary session is kept after its last activity."""
PURGE_SECONDS = 5.0
"""How long one sweep deletes rows before other sweeps run."""
FOR_GOOD = datetime(1970, 1, 1, tzinfo=UTC)
"""The `deleted_at` of a session whose rows are being deleted, so that it can no longer be restored."""
_BATCH = 50
MAX_TAGS = 10
"""Maximum number of tags per session."""
TAG_LENGTH = 40
"""Maximum characters of a tag."""
TAGGED_SESSIONS = 500
"""The number of tagged sessions, the latest, from which an owner's tags are collected."""
_BREAK = "\n"

Rows = TypeVar("Rows", bound="QuerySet[Session]")


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
    discarded = rows.filter(pk=session_id, deleted_at__gt=FOR_GOOD) if session_id else rows.none()
    try:
        with transaction.atomic():
            restored = discarded.update(deleted_at=None)
    except IntegrityError:
        restored = discarded.update(deleted_at=None, external_id=None)
    if session_id is None or restored != 1:
        raise NotFound("This session was deleted for good, or never deleted.")
    return Session.objects.select_related("agent").get(owner_id=owner_id, pk=str(session_id))


def session_get_to_delete(owner_id: UUID, session_id: UUID | None, *, limits: KeyLimits = UNLIMITED) -> Session:
    """Return the owner's session, also if its deletion for good was interrupted: a client that was told to try again
    finishes it. Raises NotFound, also for another owner's session."""
    rows = limits.filter(Session.with_deleted.filter(owner_id=owner_id), agent="agent__name")
    begun = rows.filter(pk=session_id, deleted_at=FOR_GOOD).first() if session_id else None
    return begun or session_get(owner_id, session_id, limits=limits)


def session_delete_slices(session: Session) -> Slices[None]:
    """Delete a session for good, in short transactions. The first one hides it; if the work is interrupted later, the
    worker's sweep finishes it."""
    Session.with_deleted.filter(pk=session.pk).update(deleted_at=FOR_GOOD)
    yield
    yield from _delete_slices(session.owner_id, session.pk)


def sessions_purge(now: datetime) -> int:
    """Delete expired sessions for good, for some seconds; the next call continues. Return their number."""
    discarded = Session.with_deleted.filter(deleted_at__lt=now - RESTORABLE)
    ahead = Session.with_deleted.filter(deleted_at__gt=now + CLOCK_SKEW)  # deleted while the clock was
    temporary = Session.with_deleted.filter(temporary=True, last_active_at__lt=now - TEMPORARY)
    until, count = monotonic() + PURGE_SECONDS, 0
    for rows in (discarded, ahead, temporary):
        for pk, owner_id in rows.order_by("pk").values_list("pk", "owner_id")[:_BATCH]:
            if monotonic() >= until:
                return count
            # Only if it is still expired: it may have been restored or continued in the meantime.
            if rows.filter(pk=pk).update(deleted_at=FOR_GOOD):
                finished, _ = run_slices_within(_delete_slices(owner_id, pk), until - monotonic())
                count += finished
    return count


def _delete_slices(owner_id: UUID, pk: UUID) -> Slices[None]:
    """Delete a session that can no longer be restored; first its rows of each turn, in short transactions."""
    of_session = {"owner_id": owner_id, "session_id": pk}
    locked = Session.with_deleted.select_for_update(no_key=True).filter(pk=pk)
    for model in (Message, Run, ThreadRecord):
        delete = deleting(model.objects.filter(**of_session))

        @transaction.atomic
        def batch(limit: int, delete: Batch = delete) -> int:
            only_row(locked.all())  # an answer that is being stored adds messages to its run
            return delete(limit)

        yield from in_batches(batch)
    sessions_delete(owner_id, [pk])


def clean_tag(tag: str) -> str:
    """Return a tag in stored form: one line, in lower case."""
    return " ".join(tag.split()).lower()


def clean_tags(given: Iterable[str]) -> list[str]:
    """Return tags in stored form, without empty tags and duplicates. Raises InvalidRequest."""
    tags = list(dict.fromkeys(tag for tag in map(clean_tag, given) if tag))
    if len(tags) > MAX_TAGS:
        raise InvalidRequest(f"A session has at most {MAX_TAGS} tags.", param="tags")
    for tag in tags:
        if len(tag) > TAG_LENGTH or "," in tag or not tag.isprintable():
            raise InvalidRequest(f"A tag has at most {TAG_LENGTH} printable characters, and no comma.", param="tags")
    return tags


def as_stored(tags: Sequence[str]) -> str:
    """Return the value of `Session.tags`: each tag is between two line breaks, so that it can be looked up."""
    return _BREAK + _BREAK.join(tags) + _BREAK if tags else ""


def tagged(sessions: Rows, tag: str) -> Rows:
    """Return the sessions with a tag, using the index of tagged sessions."""
    wanted = clean_tag(tag)[: TAG_LENGTH + 1]
    return sessions.exclude(tags="").filter(tags__contains=_BREAK + wanted + _BREAK)


def tags_of(owner_id: UUID) -> list[str]:
    """Return the tags of an owner's sessions in alphabetical order. One query."""
    rows = Session.objects.filter(owner_id=owner_id, temporary=False).exclude(tags="").order_by("-last_active_at")
    stored = rows.values_list("tags", flat=True)[:TAGGED_SESSIONS]
    return sorted({tag for tags in stored for tag in tags.split(_BREAK) if tag})
