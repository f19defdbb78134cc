"""What the queue's worker calls."""

from uuid import UUID

from gateway.worker_loop import worker_runner
from reviews.runner import execute


def review_execute(run_id: str) -> None:
    """Execute one review, in the worker's event loop."""
    execute(UUID(run_id), worker_runner())
