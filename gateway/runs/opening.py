"""Opens a run from async code, so that a client that disconnects meanwhile leaves no open run behind."""

import asyncio
import contextlib
import functools
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import ParamSpec

from django.db import OperationalError

from gateway.attachments.reading import contents_read
from gateway.errors import RunSuperseded, SessionBusy
from gateway.models import Run
from gateway.runs import active, closing
from gateway.runs.branches import BranchLease, later_hide_slices
from gateway.runs.context import TurnContext
from gateway.runs.rows import LaterTurnsShown
from memories.database.access import in_shared_thread
from memories.database.batches import in_slices
from memories.errors import DomainError

logger = logging.getLogger("daybook.turns")
P = ParamSpec("P")


async def open_run(opener: Callable[P, TurnContext], *args: P.args, **kwargs: P.kwargs) -> TurnContext:
    """Call an opening transaction in a database thread; if it replaces a turn that very many follow, hide these first.
    Raises what it raises, and Restarting at shutdown.

    A thread cannot be cancelled: if the caller is, the run that still opens is closed as stopped."""
    opening = functools.partial(opener, *args, **kwargs)
    try:
        return await _open_shielded(opening)
    except LaterTurnsShown as refused:
        hiding = asyncio.ensure_future(in_slices(later_hide_slices(refused.replaced)))
    opened = False
    try:
        lease = await asyncio.shield(hiding)
        context = await _open_shielded(functools.partial(opening, lease=lease.until) if lease else opening)
        opened = lease is None or context.session_id == lease.session.pk
        return context
    finally:
        if not opened:
            showing = asyncio.ensure_future(_show_again(hiding))
            active.await_at_shutdown(showing)
            await asyncio.shield(showing)


async def _show_again(hiding: "asyncio.Future[BranchLease | None]") -> None:
    """Show the turns that were hidden, also if the request was cancelled before all were."""
    with contextlib.suppress(SessionBusy):  # the lease is lost: the run did open, or others show the branch
        if lease := await hiding:
            await in_slices(lease.show_slices())


async def _open_shielded(opener: Callable[[], TurnContext]) -> TurnContext:
    active.refuse_at_shutdown()
    opening = asyncio.ensure_future(_opened(opener))
    active.await_at_shutdown(opening)
    try:
        return await asyncio.shield(opening)
    except asyncio.CancelledError:
        active.await_at_shutdown(asyncio.get_running_loop().create_task(_stop_when_open(opening)))
        raise


async def _opened(opener: Callable[[], TurnContext]) -> TurnContext:
    """Return the context with the attachments' bytes, which are read after the transaction."""
    context = await in_shared_thread(_open, opener)
    messages = await contents_read(context.owner_id, context.messages)
    return context if messages is context.messages else replace(context, messages=tuple(messages))


def _open(opener: Callable[[], TurnContext]) -> TurnContext:
    active.refuse_at_shutdown()  # again, since it may have waited for a thread
    return opener()


async def _stop_when_open(opening: "asyncio.Future[TurnContext]") -> None:
    try:
        context = await opening
    except (DomainError, OperationalError):
        return  # no run was opened
    try:
        output = context.output_so_far()
        output.trace["stopped_by"] = active.StoppedBy.CLIENT.value
        await active.in_closing_thread(closing.close, context, output, state=Run.State.STOPPED)
    except RunSuperseded:
        logger.info("run %s was given up before its client was seen to disconnect", context.run_id)
