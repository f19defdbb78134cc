"""What the worker looks after for the gateway: runs whose process died, runs that wait for a client's tools, usage
counters that are behind, and memories without search words or vectors."""

from django.utils import timezone

from gateway import embeddings, keyword_generation
from gateway.runs.closing import complete_waiting
from gateway.runs.lapsed import stop_lapsed
from gateway.usage import count_usage


def runs_sweep() -> None:
    """One sweep. Idempotent; safe in several workers."""
    now = timezone.now()
    stop_lapsed(now)
    complete_waiting(now)
    count_usage()
    keyword_generation.enqueue_missing()
    embeddings.enqueue_missing()
