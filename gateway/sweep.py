"""What the worker looks after for the gateway: runs whose process died, and runs that wait for a client's tools."""

from django.utils import timezone

from gateway.runs import complete_waiting, expire_runs


def runs_sweep() -> None:
    """One sweep. Idempotent; safe in several workers."""
    now = timezone.now()
    expire_runs(now)
    complete_waiting(now)
