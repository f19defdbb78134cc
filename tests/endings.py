"""What a process still does when its test is over, ended."""

import asyncio

from gateway import live
from gateway.runs import held
from gateway.runs.held import StoppedBy
from memories import database


async def end_all() -> None:
    """Stop every run of this process and wait until they are closed."""
    turns = [turn._task for turn in live._live.values() if turn._task is not None]
    await held.stop_all(StoppedBy.REQUEST)
    if turns:
        await asyncio.wait(turns)


def close_lanes() -> None:
    """End the database threads and close their connections; the next call makes new ones. Not from a coroutine: Django
    closes no connection there."""
    for lane in (database._write_lane, database._read_lane, database._spare_lane, database._checkpoint_lane):
        lane.close()
