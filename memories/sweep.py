"""What the worker looks after for memories: expiries, tombstones, notifications and counts that are old
enough to go."""

from datetime import timedelta

from django.conf import settings
from django.utils import timezone

from memories.models import Artifact, Book, ClearCode, Invalidation, Memory, Notification, ThreadRecord
from memories.services import book_expire, scan_days_purge

_BATCH = 200


def memories_sweep() -> None:
    """One sweep. Idempotent; safe in several workers."""
    now = timezone.now()
    for book in Book.objects.filter(next_expiry_at__lte=now)[:_BATCH]:
        book_expire(book)
    old = Notification.objects.filter(created_at__lt=now - timedelta(days=settings.NOTIFICATION_DAYS))
    Notification.objects.filter(pk__in=old.values_list("pk", flat=True)[:_BATCH]).delete()
    undoable_since = now - timedelta(days=settings.UNDO_DAYS)
    for model, column in ((Memory, "deleted_at"), (Artifact, "deleted_at"), (ThreadRecord, "cleared_at")):
        gone = model.objects.filter(**{f"{column}__lt": undoable_since}).values_list("pk", flat=True)[:_BATCH]
        model.objects.filter(pk__in=list(gone)).delete()
    ClearCode.objects.filter(expires_at__lt=now).delete()
    Invalidation.objects.filter(created_at__lt=now - timedelta(days=1)).delete()
    scan_days_purge(now)
