"""Functions that the queue's worker calls."""

from uuid import UUID

import scanning
from gateway.jobs import run_async
from reviews.runner import execute


def review_execute(run_id: str) -> None:
    """Execute one review, in the worker's event loop."""
    scanning.warm()  # once a process, and not in the time of its first review
    execute(UUID(run_id), run_async)
