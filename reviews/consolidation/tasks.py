"""What the queue's worker calls."""

import asyncio
from uuid import UUID

from reviews.consolidation.runner import execute

_runner: asyncio.Runner | None = None


def consolidation_execute(run_id: str) -> None:
    """Execute a slice of one run. The worker keeps one event loop, and with it one upstream client."""
    global _runner
    if _runner is None:
        _runner = asyncio.Runner()
    execute(UUID(run_id), _runner)
