"""Jobs of background reviews."""

from uuid import UUID

import scanning
from gateway.jobs import run_async
from reviews.runner import execute


def review_execute(run_id: str) -> None:
    """Execute one review, in the worker's event loop."""
    scanning.warm()  # once per process, so that the first review does not spend its timeout on it
    execute(UUID(run_id), run_async)
