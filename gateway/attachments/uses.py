"""Which sessions use which files. Only this module writes these rows, except that Django clears the session of a row
when the session is deleted. Each function is one short transaction, or part of its caller's; none calls the storage."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from gateway.attachments.references import Attached, attached_in
from gateway.models import Attachment, AttachmentUse, Message, Session
from memories.errors import Overloaded
from memories.models import Owner
from memories.services.erasing import ErasureStep, updating

RESERVED = timedelta(hours=1)
"""How long a file is kept for a message that may still be stored: longer than any request waits."""
RETRY = timedelta(minutes=10)
"""How long after a deletion was begun it is taken for failed: longer than any storage is waited for."""


@transaction.atomic
def uses_reserve(owner_id: UUID, files: Mapping[str, tuple[int, str]]) -> dict[str, UUID]:
    """Protect files from deletion for an hour, for a message that is stored next. The files are given by hash, with
    size and media type. Returns the ids of the uses; none for a file that is being deleted."""
    rows = [
        Attachment(owner_id=owner_id, sha256=sha, size=size, media_type=kind)
        for sha, (size, kind) in sorted(files.items())  # all requests lock files in one order
    ]
    Attachment.objects.bulk_create(rows, ignore_conflicts=True)
    usable = _usable(owner_id, files).values_list("sha256", "pk")
    uses = {sha: AttachmentUse(attachment_id=pk, expires_at=timezone.now() + RESERVED) for sha, pk in usable}
    AttachmentUse.objects.bulk_create(uses.values())
    return {sha: use.pk for sha, use in uses.items()}


def uses_give_up(uses: Collection[UUID]) -> None:
    """Release what was reserved for a message that is not stored after all."""
    AttachmentUse.objects.filter(pk__in=uses, session=None).update(expires_at=timezone.now())


def uses_add(session: Session, messages: Sequence[Message]) -> None:
    """Record that a session uses the attachments of its new messages, in the transaction that stores them. Executes
    nothing for messages without attachments. Raises Overloaded if a reserved file was released in the meantime."""
    found = [one for message in messages for one in attached_in(message.parts)]
    if reserved := {one.use for one in found if one.use}:
        rows = AttachmentUse.objects.filter(Q(session=None) | Q(session=session.pk), pk__in=reserved)
        if rows.update(session=session.pk, expires_at=timezone.now()) != len(reserved):
            raise Overloaded("This request took too long to be stored. Send it again.", retry_after=1)
    if known := [one for one in found if not one.use]:
        _use_again(session, known)


def _use_again(session: Session, known: Iterable[Attached]) -> None:
    """Record uses of files that another message of this session, or of another one of the owner, uses already."""
    usable = _usable(session.owner_id, [one.reference.sha256 for one in known])
    fresh = usable.exclude(uses__session=session.pk).values_list("pk", flat=True)
    now = timezone.now()
    AttachmentUse.objects.bulk_create(
        AttachmentUse(attachment_id=pk, session_id=session.pk, expires_at=now) for pk in fresh
    )


def _usable(owner_id: UUID, hashes: Iterable[str]) -> "QuerySet[Attachment]":
    """Return the files that are not being deleted, locked so that they stay."""
    rows = Attachment.objects.select_for_update(of=("self",))
    return rows.filter(owner_id=owner_id, sha256__in=list(hashes), deleting_at=None).order_by("sha256")


def is_deletion_due(now: datetime) -> bool:
    """Return True if there may be a file to delete."""
    return _released_uses(now).exists() or _failed_deletions(now).exists()


def deletion_begin(now: datetime) -> Attachment | None:
    """Return an unused file that this process is to delete; None if there is none. From now on nothing may use it."""
    while use := _released_uses(now).order_by("expires_at").first():
        if file := _claim_if_unused(use.attachment_id, now):
            return file
    for file in _failed_deletions(now).order_by("deleting_at")[:1]:
        if Attachment.objects.filter(pk=file.pk, deleting_at=file.deleting_at).update(deleting_at=now) == 1:
            file.deleting_at = now
            return file
    return None


def _released_uses(now: datetime) -> "QuerySet[AttachmentUse]":
    """Return the uses that no longer protect their file."""
    return AttachmentUse.objects.filter(session=None, expires_at__lte=now)


def _failed_deletions(now: datetime) -> "QuerySet[Attachment]":
    """Return files whose deletion began so long ago that it must have failed."""
    return Attachment.objects.filter(deleting_at__lte=now - RETRY)


@transaction.atomic
def _claim_if_unused(attachment_id: UUID, now: datetime) -> Attachment | None:
    """Delete the released uses of a file. Return the file, marked as being deleted, if no other uses are left."""
    file = Attachment.objects.select_for_update().get(pk=attachment_id)
    _released_uses(now).filter(attachment=file).delete()
    if file.deleting_at or file.uses.exists():
        return None
    file.deleting_at = now
    file.save(update_fields=["deleting_at"])
    return file


def deletion_end(file: Attachment) -> None:
    """Delete the row of a file that was deleted from the storage."""
    Attachment.objects.filter(pk=file.pk, deleting_at=file.deleting_at).delete()


def uses_release(owner_id: UUID, books: Sequence[UUID]) -> list[ErasureStep]:
    """Release the files of an owner who is being deleted, and of its end users, a few rows at a time."""
    owners = Owner.objects.filter(Q(pk=owner_id) | Q(parent_id=owner_id))
    used = AttachmentUse.objects.filter(attachment__owner_id__in=owners.values("pk"))
    return [ErasureStep("", updating(used, session=None, expires_at=timezone.now()))]
