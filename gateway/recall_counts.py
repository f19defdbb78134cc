"""Counts how often memories were recalled, in batches after runs have ended."""

from collections import Counter
from datetime import datetime
from uuid import UUID

from django.db import connection, transaction
from django.db.models import QuerySet

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
    owners = Run.objects.filter(pk__in=ids).order_by().values_list("owner_id", flat=True).distinct()
    return sum(_count(owner_id, uncounted.filter(pk__in=ids)) for owner_id in list(owners))


@transaction.atomic
def _count(owner_id: UUID, uncounted: "QuerySet[Run]") -> int:
    """Count the recalls of an owner's runs, and return the number of runs."""
    skip = connection.features.has_select_for_update_skip_locked
    rows = uncounted.filter(owner_id=owner_id).select_for_update(skip_locked=skip)
    runs = list(rows.only("recalled", "started_at"))
    counts: Counter[int] = Counter()
    used_at: list[datetime] = []
    for run in runs:
        for item in run.recalled:
            if item.get("lane") == "long_term" and item.get("memory_id"):
                counts[int(item["memory_id"])] += 1
                used_at.append(run.started_at)
    if counts:
        usage_add(owner_id, counts, max(used_at))
    Run.objects.filter(pk__in=[run.pk for run in runs]).update(usage_counted=True)
    return len(runs)
