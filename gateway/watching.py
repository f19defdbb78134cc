"""Access of those who watch a turn. A stream ends once its key or login is no longer valid, even if somebody else
started the turn, and a key that several people share is shown nothing from memory."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any
from uuid import UUID

from django.db import Error as DatabaseError

from gateway.authentication import still_allowed
from gateway.runs.active import RECHECK_SECONDS
from gateway.sse import with_pauses
from gateway.turns.live import LiveEvent, error_event
from memories.caller import ApiRequest, Caller
from memories.database.access import in_read_thread
from memories.errors import Unauthorized

_OVER = "Your key or login is no longer valid. The turn may continue without you."
_OF_MEMORY = frozenset({"recalled", "tool"})


def turn_shown(turn: dict[str, Any], caller: Caller) -> dict[str, Any]:
    """Return a turn as the caller may see it."""
    return turn if caller.remembers else turn | {"recalled": [], "memory_changes": []}


async def watched_by(
    request: ApiRequest, run_id: UUID, events: AsyncGenerator[tuple[int, LiveEvent]]
) -> AsyncGenerator[tuple[int, LiveEvent]]:
    """Yield the events of a turn that the caller may see. If the key or login becomes invalid, the last event is an
    error, and the turn continues."""
    caller, at = request.auth, 0
    async with aclosing(_while_allowed(request, events)) as allowed:
        try:
            async for at, (name, data) in allowed:
                if caller.remembers or name not in _OF_MEMORY:
                    yield at, (name, turn_shown(data, caller) if name == "done" else data)
        except Unauthorized as error:
            yield at, error_event(error, run_id)


async def _while_allowed(
    request: ApiRequest, events: AsyncGenerator[tuple[int, LiveEvent]]
) -> AsyncGenerator[tuple[int, LiveEvent]]:
    """Yield events, and raise Unauthorized once access has ended, even while no event arrives."""
    clock = asyncio.get_running_loop().time
    due = clock() + RECHECK_SECONDS
    async with aclosing(with_pauses(events, lambda: max(0.0, due - clock()))) as watched:
        async for event in watched:
            if clock() >= due:
                await _recheck(request)
                due = clock() + RECHECK_SECONDS
            if event is not None:
                yield event


async def _recheck(request: ApiRequest) -> None:
    try:
        allowed = await in_read_thread(still_allowed, request)
    except DatabaseError:  # busy: left to the next check
        return
    if not allowed:
        raise Unauthorized(_OVER)
