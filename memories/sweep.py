"""The sweep of memories in the worker: expiries, and the purge of old tombstones, notifications and counts."""

from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db.models import Exists, OuterRef
from django.utils import timezone

from memories.models import (
    Artifact,
    ArtifactRevision,
    Book,
    ChangeSet,
    ClearCode,
    Invalidation,
    Memory,
    Notification,
    Revision,
    ThreadRecord,
)
from memories.renewal import verdicts_renew
from memories.services import book_expire, scan_days_purge

_BATCH = 200


def memories_sweep() -> None:
    """Run one sweep. It is idempotent and safe in several workers."""
    now = timezone.now()
    for book in Book.objects.filter(next_expiry_at__lte=now)[:_BATCH]:
        book_expire(book)
    old = Notification.objects.filter(created_at__lt=now - timedelta(days=settings.NOTIFICATION_DAYS))
    Notification.objects.filter(pk__in=old.values_list("pk", flat=True)[:_BATCH]).delete()
    undoable_since = now - timedelta(days=settings.UNDO_DAYS)
    for model, column, change_set in (
        (Memory, "deleted_at", "revisions__change_set"),
        (Artifact, "deleted_at", "revisions__change_set"),
        (ThreadRecord, "cleared_at", "cleared_by"),
    ):
        gone = model.objects.filter(**{f"{column}__lt": undoable_since})
        keys = list(gone.values_list("pk", flat=True)[:_BATCH])
        touched = set(model.objects.filter(pk__in=keys).values_list(change_set, flat=True))
        model.objects.filter(pk__in=keys).delete()
        _empty_purge(touched)
    ClearCode.objects.filter(expires_at__lt=now).delete()
    Invalidation.objects.filter(created_at__lt=now - timedelta(days=1)).delete()
    scan_days_purge(now)
    verdicts_renew()


def _empty_purge(change_sets: set[UUID | None]) -> None:
    """Delete those of these change sets that nothing belongs to any more."""
    rows = ChangeSet.objects.filter(
        ~Exists(Revision.objects.filter(change_set=OuterRef("pk"))),
        ~Exists(ArtifactRevision.objects.filter(change_set=OuterRef("pk"))),
        ~Exists(ThreadRecord.objects.filter(cleared_by=OuterRef("pk"))),
        pk__in=[key for key in change_sets if key],
    )
    ChangeSet.objects.filter(pk__in=list(rows.values_list("pk", flat=True))).delete()
