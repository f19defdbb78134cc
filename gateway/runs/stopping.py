"""Stopping a turn on request, whichever process executes it, and also when none does (any more)."""

import asyncio
from uuid import UUID

from django.utils import timezone

from gateway.models import Run
from gateway.runs import held, leases
from gateway.runs.held import StoppedBy
from gateway.runs.lapsed import is_lapsed, stop_run
from gateway.runs.waiting import stop_waiting
from memories.caller import UNLIMITED, KeyLimits
from memories.database.access import in_thread

# Another process looks twice a second whether it is asked to stop. One that does not answer within this time is gone,
# or so busy that its end need not be waited for: its own close then comes too late.
PATIENCE_SECONDS = 2.0
_POLL_SECONDS = 0.05


async def stop_turn(
    owner_id: UUID, session_id: UUID | None, run_id: UUID | None, *, limits: KeyLimits = UNLIMITED
) -> Run:
    """End an open turn, or one that waits for its client's tools, and wait for its end; returns its row. Raises
    NotFound."""
    run = await in_thread(leases.request_stop, owner_id, session_id, run_id, limits=limits)
    if run.state == Run.State.AWAITING_CLIENT_TOOLS:
        await in_thread(stop_waiting, run.pk)
        run = await in_thread(leases.request_stop, owner_id, session_id, run_id)  # its results may have come first
    held.stop(run.pk, StoppedBy.REQUEST)
    deadline = asyncio.get_running_loop().time() + PATIENCE_SECONDS
    while run.state == Run.State.RUNNING:
        if is_lapsed(run, timezone.now()) or asyncio.get_running_loop().time() > deadline:
            await in_thread(stop_run, run.pk)
        else:
            await asyncio.sleep(_POLL_SECONDS)
        run = await in_thread(leases.run_get, owner_id, session_id, run_id)
    return run
