"""Jobs of consolidation."""

from uuid import UUID

from gateway.jobs import run_async
from reviews.consolidation.runner import execute


def consolidation_execute(run_id: str) -> None:
    """Execute a slice of one run, in the worker's event loop."""
    execute(UUID(run_id), run_async)
