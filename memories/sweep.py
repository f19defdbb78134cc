"""The sweep of memories in the worker: expiries, and the purge of old tombstones, notifications and counts."""

from datetime import timedelta

from django.conf import settings
from django.utils import timezone

from memories.models import Book, ClearCode, Invalidation, Notification
from memories.renewal import verdicts_renew
from memories.services import book_expire, scan_days_purge, tombstones_purge

_BATCH = 200


def memories_sweep() -> None:
    """Run one sweep. It is idempotent and safe in several workers."""
    now = timezone.now()
    for book in Book.objects.filter(next_expiry_at__lte=now)[:_BATCH]:
        book_expire(book)
    old = Notification.objects.filter(created_at__lt=now - timedelta(days=settings.NOTIFICATION_DAYS))
    Notification.objects.filter(pk__in=old.values_list("pk", flat=True)[:_BATCH]).delete()
    tombstones_purge(now - timedelta(days=settings.UNDO_DAYS), _BATCH)
    ClearCode.objects.filter(expires_at__lt=now).delete()
    Invalidation.objects.filter(created_at__lt=now - timedelta(days=1)).delete()
    scan_days_purge(now)
    verdicts_renew()
