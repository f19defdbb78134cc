"""End what a process is still doing when its test is over."""

import asyncio

from gateway.runs import active
from gateway.runs.active import StoppedBy
from gateway.turns import live
from memories.database import access


async def stop_all_turns() -> None:
    """Stop every run of this process and wait until all are closed."""
    turns = [turn._task for turn in live._live.values() if turn._task is not None]
    await active.stop_all(StoppedBy.REQUEST)
    if turns:
        await asyncio.wait(turns)


def close_lanes() -> None:
    """End the database threads and close their connections; the next call starts new ones.

    Do not call this from a coroutine: Django closes no connection there."""
    for lane in (access._write_lane, access._read_lane, access._spare_lane, access._checkpoint_lane):
        lane.close()
