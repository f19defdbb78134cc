import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from memories.database.access import in_thread, working_for
from memories.models import Owner
from tests.waiting import eventually_async


@asynccontextmanager
async def busy_thread(
    lane: Any = in_thread, *, owner: Owner | None = None, calls: int = 1
) -> AsyncIterator["list[asyncio.Task[None]]"]:
    """Keep a thread of a lane busy with work for an owner. Further calls wait behind it or occupy more threads."""
    entered, gate = threading.Event(), threading.Event()

    def hold() -> None:
        entered.set()
        gate.wait(30)

    before = working_for.set(owner.pk if owner else None)
    tasks = [asyncio.create_task(lane(hold)) for _ in range(calls)]
    working_for.reset(before)
    try:
        await eventually_async(entered.is_set, within=10)
        yield tasks
    finally:
        gate.set()
        await asyncio.gather(*tasks, return_exceptions=True)
