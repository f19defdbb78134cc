"""Counts how often memories were recalled, in batches after runs have ended."""

from collections import Counter
from datetime import datetime
from uuid import UUID

from django.db import connection, transaction

from gateway.models import Run
from memories.services import usage_add

BATCH = 500


def count_recalls() -> int:
    """Count the long-term recalls of completed runs that have not been counted yet. Return the number of runs. Safe in
    several workers, since the worker that marks a run counts it."""
    uncounted = Run.objects.filter(state=Run.State.COMPLETED, usage_counted=False)
    ids = list(uncounted.order_by("id").values_list("pk", flat=True)[:BATCH])
    if not ids:
        return 0
    skip = connection.features.has_select_for_update_skip_locked
    with transaction.atomic():
        rows = Run.objects.select_for_update(skip_locked=skip).only("owner_id", "recalled", "started_at")
        runs = list(rows.filter(pk__in=ids, usage_counted=False))
        counts: dict[UUID, Counter[int]] = {}
        used_at: dict[UUID, datetime] = {}
        for run in runs:
            for item in run.recalled:
                if item.get("lane") == "long_term" and item.get("memory_id"):
                    counts.setdefault(run.owner_id, Counter())[int(item["memory_id"])] += 1
                    used_at[run.owner_id] = max(run.started_at, used_at.get(run.owner_id, run.started_at))
        for owner_id in sorted(counts):
            usage_add(owner_id, counts[owner_id], used_at[owner_id])
        Run.objects.filter(pk__in=[run.pk for run in runs]).update(usage_counted=True)
    return len(runs)
