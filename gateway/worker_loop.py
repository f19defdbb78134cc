"""The event loop of a queue worker: one per process, and with it one upstream client, however many jobs it runs."""

import asyncio
from collections.abc import Coroutine
from multiprocessing.util import Finalize
from typing import Any, TypeVar

from gateway.upstream import disconnect

T = TypeVar("T")
_runner: asyncio.Runner | None = None


def worker_runner() -> asyncio.Runner:
    """Return the event loop's runner of this process. It is made at first use, which is after the worker was forked;
    closed, with the upstream's connections, when the worker ends."""
    global _runner
    if _runner is None:
        _runner = asyncio.Runner()
        Finalize(None, _close, args=(_runner,), exitpriority=0)  # a forked child ends without atexit
    return _runner


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end."""
    return worker_runner().run(work)


def _close(runner: asyncio.Runner) -> None:
    runner.run(disconnect())
    runner.close()
