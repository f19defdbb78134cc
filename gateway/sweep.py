"""The gateway's sweeps in the worker: runs and branches of dead processes, runs that wait for client tools, usage
counters, memories without search words or vectors, records of failed jobs, deleted and temporary sessions, the index of
messages, and accounts."""

from datetime import timedelta

from django.conf import settings
from django.contrib.sessions.models import Session as LoginSession
from django.utils import timezone

from gateway import embeddings, keyword_generation
from gateway.accounts.invitations import invitations_purge
from gateway.accounts.sign_in import attempts_purge
from gateway.jobs import jobs_purge
from gateway.models import ApiKey
from gateway.oauth.connections import connections_sweep
from gateway.oauth.registration import registrations_sweep
from gateway.recall_counts import count_recalls
from gateway.runs.branch_lease import branches_sweep
from gateway.runs.lapsed import stop_lapsed
from gateway.runs.waiting import complete_waiting
from gateway.sessions.keeping import sessions_purge
from gateway.sessions.message_index import erased_purge, history_sweep
from gateway.upstream.learned import learned_purge


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
    """Delete sessions that can no longer be restored, and temporary ones unused for a day, and keep the index of
    messages up to date. Idempotent."""
    sessions_purge(timezone.now())
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
    connections_sweep(now)
    registrations_sweep(now)
