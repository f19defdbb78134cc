"""Records which sessions use which files. Only this module writes these rows, except that Django clears a row's session
when the session is deleted. Each function is one short transaction or part of its caller's; none calls the storage."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from gateway.attachments.references import attached_in
from gateway.models import Attachment, AttachmentUse, Message, Session
from memories.clocks import long_ago
from memories.errors import Overloaded
from memories.models import Owner
from memories.services.erasing import ErasureStep, updating

RESERVED = timedelta(hours=1)
"""How long a file is reserved for a message that is not stored yet: longer than any request waits."""
RETRY = timedelta(minutes=10)
"""How long after its start a deletion counts as failed: longer than the timeout of the storage."""


@transaction.atomic
def uses_reserve(owner_id: UUID, files: Mapping[str, tuple[int, str]]) -> dict[str, UUID]:
    """Protect files, given as hash to (size, media type), from deletion for an hour, until their message is stored.
    Return the ids of the uses by hash, without files that are being deleted."""
    rows = [
        Attachment(owner_id=owner_id, sha256=sha, size=size, media_type=kind)
        for sha, (size, kind) in sorted(files.items())  # all requests lock files in the same order
    ]
    Attachment.objects.bulk_create(rows, ignore_conflicts=True)
    usable = _usable(owner_id, files).values_list("sha256", "pk")
    uses = {sha: AttachmentUse(attachment_id=pk, expires_at=timezone.now() + RESERVED) for sha, pk in usable}
    AttachmentUse.objects.bulk_create(uses.values())
    return {sha: use.pk for sha, use in uses.items()}


def uses_cancel(uses: Collection[UUID]) -> None:
    """Release reservations for a message that is not stored after all."""
    AttachmentUse.objects.filter(pk__in=uses, session=None).update(expires_at=timezone.now())


def uses_add(session: Session, messages: Sequence[Message]) -> None:
    """Record that a session uses the attachments of its new messages, in the transaction that stores them. Executes no
    query without attachments. Raises Overloaded if a reservation has expired in the meantime."""
    attachments = [data for message in messages for data in attached_in(message.parts)]
    if reserved := {data.use for data in attachments if data.use}:
        rows = AttachmentUse.objects.filter(Q(session=None) | Q(session=session.pk), pk__in=reserved)
        if rows.update(session=session.pk, expires_at=timezone.now()) != len(reserved):
            raise Overloaded("This request took too long to be stored. Send it again.", retry_after=1)
    # Files without a reservation came with an earlier message of this or another session.
    if unreserved := [data.reference.sha256 for data in attachments if not data.use]:
        new = _usable(session.owner_id, unreserved).exclude(uses__session=session.pk)
        AttachmentUse.objects.bulk_create(
            AttachmentUse(attachment_id=pk, session_id=session.pk, expires_at=timezone.now())
            for pk in new.values_list("pk", flat=True)
        )


def _usable(owner_id: UUID, hashes: Iterable[str]) -> "QuerySet[Attachment]":
    """Return and lock the files that are not being deleted."""
    rows = Attachment.objects.select_for_update(of=("self",))
    return rows.filter(owner_id=owner_id, sha256__in=list(hashes), deleting_at=None).order_by("sha256")


def is_deletion_due(now: datetime) -> bool:
    """Return True if there may be a file to delete."""
    return _released_uses(now).exists() or _failed_deletions(now).exists()


def deletion_begin(now: datetime) -> Attachment | None:
    """Claim an unused file for deletion and return it, or None if there is none. From now on nothing may use it."""
    while use := _released_uses(now).order_by("expires_at").first():
        if file := _claim_if_unused(use.attachment_id, now):
            return file
    for file in _failed_deletions(now).order_by("deleting_at")[:1]:
        if Attachment.objects.filter(pk=file.pk, deleting_at=file.deleting_at).update(deleting_at=now) == 1:
            file.deleting_at = now
            return file
    return None


def _released_uses(now: datetime) -> "QuerySet[AttachmentUse]":
    """Return the uses that no longer protect a file."""
    return AttachmentUse.objects.filter(session=None, expires_at__lte=now)


def _failed_deletions(now: datetime) -> "QuerySet[Attachment]":
    """Return the files whose deletion began more than RETRY ago."""
    return Attachment.objects.filter(long_ago("deleting_at", now, age=RETRY))


@transaction.atomic
def _claim_if_unused(attachment_id: UUID, now: datetime) -> Attachment | None:
    """Delete the released uses of a file. If no other uses are left, mark the file as being deleted and return it."""
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
    """Return the step that releases the files of an owner who is being deleted, and of its end users."""
    owners = Owner.objects.filter(Q(pk=owner_id) | Q(parent_id=owner_id))
    used = AttachmentUse.objects.filter(attachment__owner_id__in=owners.values("pk"))
    return [ErasureStep("", updating(used, session=None, expires_at=timezone.now()))]
