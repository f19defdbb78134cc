"""Opening a run from async code, so that a client who hangs up meanwhile leaves no open run behind."""

import asyncio
import logging
from collections.abc import Callable
from typing import ParamSpec

from gateway.errors import RunSuperseded
from gateway.models import Run
from gateway.runs import closing
from gateway.runs.context import TurnContext
from memories.database import in_thread
from memories.errors import DomainError

logger = logging.getLogger("daybook.turns")
P = ParamSpec("P")
_abandoned: "set[asyncio.Task[None]]" = set()


async def open_run(opener: Callable[P, TurnContext], *args: P.args, **kwargs: P.kwargs) -> TurnContext:
    """Run an opening transaction in a database thread. Raises what it raises.

    A thread cannot be cancelled: when the caller is, the run that opens all the same is closed as stopped."""
    opening = asyncio.ensure_future(in_thread(opener, *args, **kwargs))
    try:
        return await asyncio.shield(opening)
    except asyncio.CancelledError:
        closing = asyncio.get_running_loop().create_task(_stop_when_open(opening))
        _abandoned.add(closing)
        closing.add_done_callback(_abandoned.discard)
        raise


async def _stop_when_open(opening: "asyncio.Future[TurnContext]") -> None:
    try:
        context = await opening
    except DomainError:
        return  # it was refused: there is nothing to close
    try:
        await in_thread(closing.close, context, closing.said_before(context), state=Run.State.STOPPED)
    except RunSuperseded:
        logger.info("run %s was given up before its client's going was noticed", context.run_id)
