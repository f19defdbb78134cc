"""The gateway's sweeps in the worker: runs whose process died, runs that wait for a client's tools, usage counters that
are behind, and memories without search words or vectors."""

from datetime import timedelta

from django.conf import settings
from django.contrib.sessions.models import Session as LoginSession
from django.utils import timezone

from gateway import embeddings, keyword_generation
from gateway.models import ApiKey
from gateway.runs.closing import complete_waiting
from gateway.runs.lapsed import stop_lapsed
from gateway.sign_in import attempts_purge
from gateway.upstream.learned import learned_purge
from gateway.usage import count_usage


def runs_sweep() -> None:
    """Run one sweep. It is idempotent and safe in several workers."""
    now = timezone.now()
    stop_lapsed(now)
    complete_waiting(now)
    count_usage()
    keyword_generation.enqueue_missing()
    embeddings.enqueue_missing()


def accounts_sweep() -> None:
    """Delete logins that ended, failed sign-ins that no longer count, keys that were revoked long ago, and what was
    learned of model servers and has expired. The audit log keeps that there were such keys. Idempotent; safe in several
    workers."""
    now = timezone.now()
    LoginSession.objects.filter(expire_date__lt=now).delete()
    attempts_purge()
    ApiKey.objects.filter(revoked_at__lt=now - timedelta(days=settings.REVOKED_KEY_DAYS)).delete()
    learned_purge(now)
