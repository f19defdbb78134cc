"""Verdicts of the scan that are older than its rules: looked at again in the worker, a few hundred texts in each sweep.

Until then a text keeps the verdict that it has; what has none is scanned before it is used (memories.book_views). Where
a verdict changes, the book's generation is raised, so that every process reads it anew."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.db.models import Model

import scanning
from memories.models import Artifact, Memory, ScanRenewal
from memories.services import verdicts_store
from memories.verdicts import Judged, verdict_of, verdict_of_document

SWEEP_SECONDS = 1.0  # how long one sweep scans at most, roughly
_ROWS = 50


@dataclass(frozen=True, slots=True)
class _Kind:
    model: type[Model]
    judge: Callable[[Any], Judged]


_KINDS = (
    _Kind(Memory, lambda row: verdict_of(row.content, row.keywords, row.metadata)),
    _Kind(Artifact, lambda row: verdict_of_document(row.content)),
)


def verdicts_renew() -> int:
    """Scan some more texts, if any have not been looked at under these rules; return how many. Idempotent; several
    workers at once do some of it twice."""
    looked_at = 0
    until = time.monotonic() + SWEEP_SECONDS
    for kind in _KINDS:
        renewal, _ = ScanRenewal.objects.get_or_create(rules=scanning.RULES_VERSION, texts=kind.model._meta.label_lower)
        while not renewal.over and time.monotonic() < until:
            looked_at += _renew_some(kind, renewal)
    if not ScanRenewal.objects.filter(rules=scanning.RULES_VERSION, over=False).exists():
        ScanRenewal.objects.exclude(rules=scanning.RULES_VERSION).delete()
    return looked_at


def _renew_some(kind: _Kind, renewal: ScanRenewal) -> int:
    rows: list[Any] = list(kind.model._default_manager.filter(pk__gt=renewal.reached).order_by("pk")[:_ROWS])
    # Scanning is most of the work, and is done without a lock.
    judged = [(row, kind.judge(row)) for row in rows]
    verdicts_store([(row, verdict) for row, verdict in judged if row.scan_hash != verdict.scan_hash])
    reached = rows[-1].pk if rows else renewal.reached
    renewal.over = len(rows) < _ROWS
    ScanRenewal.objects.filter(pk=renewal.pk, reached=renewal.reached).update(reached=reached, over=renewal.over)
    renewal.reached = reached
    return len(rows)
