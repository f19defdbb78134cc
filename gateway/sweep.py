"""The gateway's sweeps in the worker: runs and branches of dead processes, runs that wait for client tools, usage
counters, memories without search words or vectors, records of failed jobs, deleted, temporary and old sessions, the
index of messages, and accounts."""

from collections import Counter
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.contrib.sessions.models import Session as LoginSession
from django.db import connection, transaction
from django.db.models import QuerySet
from django.utils import timezone
from oauth2_provider.models import clear_expired

from gateway import embeddings, keyword_generation
from gateway.accounts.invitations import invitations_purge
from gateway.accounts.sign_in import attempts_purge
from gateway.jobs import Throttle, jobs_purge
from gateway.models import ApiKey, Run
from gateway.oauth.registration import registrations_sweep
from gateway.runs.branches import branches_sweep
from gateway.runs.ending import complete_waiting, stop_lapsed
from gateway.sessions.ageing import run_details_expire, sessions_expire
from gateway.sessions.keeping import sessions_purge
from gateway.sessions.message_index import erased_purge, history_sweep
from gateway.upstream.cache import learned_purge
from memories.services import usage_add

_RUNS_COUNTED_AT_ONCE = 500
_CLEARING_PAUSE_SECONDS = 3600.0  # between two searches of a process for expired codes and tokens: they have no index
_clearing = Throttle()


def runs_sweep() -> None:
    """Run one sweep. It is idempotent and safe in several workers."""
    now = timezone.now()
    stop_lapsed(now)
    branches_sweep(now)
    complete_waiting(now)
    count_recalls()
    keyword_generation.enqueue_missing()
    embeddings.enqueue_missing()
    jobs_purge(now)


def sessions_sweep() -> None:
    """Delete sessions that can no longer be restored, temporary ones unused for a day, and what the operator does not
    keep for longer, and keep the index of messages up to date. Idempotent."""
    now = timezone.now()
    sessions_expire(now)
    run_details_expire(now)
    sessions_purge(now)
    history_sweep()
    erased_purge()


def accounts_sweep() -> None:
    """Delete expired logins, failed sign-ins that no longer count, ended invitations, keys and connected apps that were
    revoked long ago, expired tokens and app registrations, and expired changes learned from model servers. The audit
    log still mentions the keys. Idempotent; safe in several workers."""
    now = timezone.now()
    LoginSession.objects.filter(expire_date__lt=now).delete()
    attempts_purge()
    invitations_purge()
    ApiKey.objects.filter(revoked_at__lt=now - timedelta(days=settings.REVOKED_KEY_DAYS)).delete()
    learned_purge(now)
    if _clearing.check(pause=_CLEARING_PAUSE_SECONDS):
        clear_expired()  # codes and tokens; those of an ended connection were deleted with it
    registrations_sweep(now)


def count_recalls() -> int:
    """Count the long-term recalls of completed runs that have not been counted yet. Return the number of runs. Safe in
    several workers, since the worker that marks a run counts it."""
    uncounted = Run.objects.filter(state=Run.State.COMPLETED, usage_counted=False)
    ids = list(uncounted.order_by("id").values_list("pk", flat=True)[:_RUNS_COUNTED_AT_ONCE])
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
