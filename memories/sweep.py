"""The worker's sweeps of memories: expiry, the purge of old tombstones, revisions, notifications and counters, the
renewal of scan verdicts after a change of the rules, and the truncation of SQLite's write-ahead log (WAL).

Verdicts are renewed for a few hundred texts per sweep. Until then a text keeps its old verdict; a text without one is
scanned before it is used (memories.recall.book_views). If a verdict changes, the book's generation is raised, so that
every process reads the book again."""

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db.models import Model
from django.utils import timezone

import scanning
from memories.database.access import truncate_wal
from memories.database.ageing import AgeScan
from memories.entry_rules import scanned_words
from memories.models import (
    Artifact,
    Book,
    ChangeSet,
    ClearCode,
    Invalidation,
    Memory,
    Notification,
    Revision,
    ScanRenewal,
    WriteOrigin,
)
from memories.selectors import undeleted
from memories.services import (
    Source,
    book_writing,
    revisions_purge,
    scan_days_purge,
    tombstones_purge,
    verdicts_store,
)
from memories.services.erasing import deleting
from memories.verdicts import ScanVerdict, verdict_of, verdict_of_document

_BATCH = 200
SCAN_SECONDS = 1.0  # approximate limit of the time that one sweep scans
REVISION_SECONDS = 1.0  # approximate limit of the time that one sweep looks for old revisions of one kind
WAL_SWEEP_SECONDS = 60.0
_wal_sweep_due = 0.0
_revision_scans = (AgeScan(), AgeScan())
_ROWS = 50
_SCANNERS: dict[type[Model], Callable[[Any], ScanVerdict]] = {
    Memory: lambda row: verdict_of(*scanned_words(row)),
    Artifact: lambda row: verdict_of_document(row.content),
}


def memories_sweep() -> None:
    """Run one sweep. It is idempotent and safe in several workers."""
    now = timezone.now()
    expired_delete()
    deleting(Notification.objects.filter(created_at__lt=now - timedelta(days=settings.NOTIFICATION_DAYS)))(_BATCH)
    tombstones_purge(now - timedelta(days=settings.UNDO_DAYS), _BATCH)
    if settings.REVISION_DAYS:
        before = now - timedelta(days=settings.REVISION_DAYS)
        revisions_purge(before, scans=_revision_scans, seconds=REVISION_SECONDS)
    ClearCode.objects.filter(expires_at__lt=now).delete()
    Invalidation.objects.filter(created_at__lt=now - timedelta(days=1)).delete()
    scan_days_purge(now)
    verdicts_renew()


def wal_sweep() -> None:
    """Truncate SQLite's WAL, at most every WAL_SWEEP_SECONDS. Idempotent; safe in several workers."""
    global _wal_sweep_due
    if time.monotonic() >= _wal_sweep_due:
        _wal_sweep_due = time.monotonic() + WAL_SWEEP_SECONDS
        truncate_wal()


def expired_delete() -> int:
    """Turn expired memories into tombstones and return their number. They left answers, lists and budgets when they
    expired, and can be restored like memories that a person deleted."""
    expired = Memory.objects.filter(deleted_at__isnull=True, expires_at__lte=timezone.now())
    source = Source(actor="system", origin=WriteOrigin.SYSTEM, kind=ChangeSet.Kind.SYSTEM)
    deleted = 0
    for book in Book.objects.filter(pk__in=expired.order_by("expires_at").values_list("book", flat=True)[:_ROWS]):
        with book_writing(book, source) as writer:
            for memory in undeleted(book).filter(expires_at__lte=timezone.now()).order_by("expires_at")[:_ROWS]:
                writer.gather_deleted(memory, Revision.Action.EXPIRE)
                deleted += 1
    return deleted


def verdicts_renew() -> int:
    """Scan some of the texts that were not yet scanned under the current rules, and return their number. Idempotent;
    concurrent workers may scan some texts twice."""
    scanned = 0
    until = time.monotonic() + SCAN_SECONDS
    for model in _SCANNERS:
        renewal, _ = ScanRenewal.objects.get_or_create(rules=scanning.RULES_VERSION, texts=model._meta.label_lower)
        while not renewal.over and time.monotonic() < until:
            scanned += _renew_some(model, renewal)
    if not ScanRenewal.objects.filter(rules=scanning.RULES_VERSION, over=False).exists():
        ScanRenewal.objects.exclude(rules=scanning.RULES_VERSION).delete()
    return scanned


def _renew_some(model: type[Model], renewal: ScanRenewal) -> int:
    rows: list[Any] = list(model._default_manager.filter(pk__gt=renewal.reached).order_by("pk")[:_ROWS])
    # Scanning is most of the work, and needs no lock.
    judged = [(row, _SCANNERS[model](row)) for row in rows]
    verdicts_store([(row, verdict) for row, verdict in judged if row.scan_hash != verdict.scan_hash])
    reached = rows[-1].pk if rows else renewal.reached
    renewal.over = len(rows) < _ROWS
    ScanRenewal.objects.filter(pk=renewal.pk, reached=renewal.reached).update(reached=reached, over=renewal.over)
    renewal.reached = reached
    return len(rows)
