"""Stops a turn on request, whether this process, another one or none executes it."""

import asyncio
from uuid import UUID

from django.utils import timezone

from gateway.models import Run
from gateway.runs import active, leases
from gateway.runs.active import StoppedBy
from gateway.runs.lapsed import is_lapsed, stop_run
from gateway.runs.waiting import stop_waiting
from memories.caller import UNLIMITED, KeyLimits
from memories.database.access import in_read_thread, in_thread

# Another process checks for requests to stop twice a second. If the run is still open after this time, that process is
# gone, or too busy to wait for, and the run is stopped from here: its own close then comes too late.
PATIENCE_SECONDS = 2.0
_POLL_SECONDS = 0.05


async def stop_turn(
    owner_id: UUID, session_id: UUID | None, run_id: UUID | None, *, limits: KeyLimits = UNLIMITED
) -> Run:
    """Stop a turn that is running or waits for client tools, wait for its end, and return its row. Raises NotFound."""
    run = await in_thread(leases.request_stop, owner_id, session_id, run_id, limits=limits)
    if run.state == Run.State.AWAITING_CLIENT_TOOLS:
        await in_thread(stop_waiting, run.pk)
        run = await in_thread(leases.request_stop, owner_id, session_id, run_id)  # it may have been resumed first
    active.stop(run.pk, StoppedBy.REQUEST)
    deadline = asyncio.get_running_loop().time() + PATIENCE_SECONDS
    while run.state == Run.State.RUNNING:
        if is_lapsed(run, timezone.now()) or asyncio.get_running_loop().time() > deadline:
            await in_thread(stop_run, run.pk)
        else:
            await asyncio.sleep(_POLL_SECONDS)
        run = await in_read_thread(leases.run_get, owner_id, session_id, run_id)
    return run
