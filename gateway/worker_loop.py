"""The event loop of a queue worker: one per process, and with it one upstream client, however many jobs it runs."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
_runner: asyncio.Runner | None = None


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end. Made at first use, which is after the worker was forked."""
    global _runner
    if _runner is None:
        _runner = asyncio.Runner()
    return _runner.run(work)
