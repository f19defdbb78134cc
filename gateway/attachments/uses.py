"""Which sessions use which files: the only writer of these rows, but for Django, which takes the session out of a row
when it is deleted. A function is one short transaction, or part of its caller's; none of them calls the storage."""

from collections.abc import Iterable, Mapping, Sequence
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
RETRY = timedelta(minutes=1)
"""How long after a deletion was begun it is taken for failed."""


@transaction.atomic
def uses_reserve(owner_id: UUID, files: Mapping[str, tuple[int, str]]) -> dict[str, UUID]:
    """Keep files, by hash with size and media type, for a message that is stored next: nothing deletes them for an
    hour. Returns the ids of the uses; none for a file that is being deleted at this moment."""
    rows = [
        Attachment(owner_id=owner_id, sha256=sha, size=size, media_type=kind) for sha, (size, kind) in files.items()
    ]
    Attachment.objects.bulk_create(rows, ignore_conflicts=True)
    usable = _usable(owner_id, files).values_list("sha256", "pk")
    uses = {sha: AttachmentUse(attachment_id=pk, expires_at=timezone.now() + RESERVED) for sha, pk in usable}
    AttachmentUse.objects.bulk_create(uses.values())
    return {sha: use.pk for sha, use in uses.items()}


def uses_add(session: Session, messages: Sequence[Message]) -> None:
    """Note that a session uses what these new messages of it refer to, in the transaction that stores them. No
    statement for messages without attachments. Raises Overloaded where a reserved file was given up meanwhile."""
    found = [one for message in messages for one in attached_in(message.parts)]
    if reserved := {one.use for one in found if one.use}:
        rows = AttachmentUse.objects.filter(Q(session=None) | Q(session=session.pk), pk__in=reserved)
        if rows.update(session=session.pk, expires_at=timezone.now()) != len(reserved):
            raise Overloaded("This request took too long to be stored. Send it again.", retry_after=1)
    if known := [one for one in found if not one.use]:
        _use_again(session, known)


def _use_again(session: Session, known: Iterable[Attached]) -> None:
    """What a message of this session or of another one of its owner refers to, another message refers to as well."""
    usable = _usable(session.owner_id, [one.reference.sha256 for one in known])
    fresh = usable.exclude(uses__session=session.pk).values_list("pk", flat=True)
    now = timezone.now()
    AttachmentUse.objects.bulk_create(
        AttachmentUse(attachment_id=pk, session_id=session.pk, expires_at=now) for pk in fresh
    )


def _usable(owner_id: UUID, hashes: Iterable[str]) -> "QuerySet[Attachment]":
    """Return files that are not being deleted, locked against it."""
    rows = Attachment.objects.select_for_update(of=("self",))
    return rows.filter(owner_id=owner_id, sha256__in=list(hashes), deleting_at=None)


@transaction.atomic
def deletion_begin(attachment_id: UUID, now: datetime) -> Attachment | None:
    """Forget uses that keep nothing any more. Returns the file, if nothing else uses it: from here on nothing may, and
    it is to be deleted."""
    file = Attachment.objects.select_for_update().filter(pk=attachment_id).first()
    if file is None:
        return None
    file.uses.filter(session=None, expires_at__lte=now).delete()
    if file.deleting_at or file.uses.exists():
        return None
    file.deleting_at = now
    file.save(update_fields=["deleting_at"])
    return file


def deletion_retry(now: datetime) -> Attachment | None:
    """Return a file whose deletion was begun and not ended, taken by this process; None for none."""
    for file in Attachment.objects.filter(deleting_at__lte=now - RETRY).order_by("deleting_at")[:1]:
        mine = Attachment.objects.filter(pk=file.pk, deleting_at=file.deleting_at)
        if mine.update(deleting_at=now) == 1:
            file.deleting_at = now
            return file
    return None


def deletion_end(file: Attachment) -> None:
    """Forget a file that was deleted from the storage."""
    Attachment.objects.filter(pk=file.pk, deleting_at=file.deleting_at).delete()


def uses_release(owner_id: UUID, books: Sequence[UUID]) -> list[ErasureStep]:
    """Give up the files of an owner who goes, and of its end users, a few rows at a time."""
    owners = Owner.objects.filter(Q(pk=owner_id) | Q(parent_id=owner_id))
    used = AttachmentUse.objects.filter(attachment__owner_id__in=owners.values("pk"))
    return [ErasureStep("", updating(used, session=None, expires_at=timezone.now()))]
