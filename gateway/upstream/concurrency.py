"""The limit on concurrent requests from this process to one upstream. Waiting owners take turns; the requests of one
owner are sent in order."""

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from memories.errors import Overloaded

MAX_WAITING = 1000


@dataclass(slots=True)
class ConcurrencyLimit:
    """The slots of one upstream. For use in the event loop only: a process asks its models in a single one."""

    limit: int
    running: int = 0
    waiting: int = 0
    _queues: OrderedDict[str, deque[asyncio.Future[None]]] = field(default_factory=OrderedDict)

    @asynccontextmanager
    async def slot(self, owner: str, *, seconds: float) -> AsyncGenerator[None]:
        """Hold a slot. Raises Overloaded after waiting for `seconds`, or immediately if too many requests wait."""
        if self.running < self.limit:  # the queue is empty
            self.running += 1
        else:
            await self._wait(owner, seconds)
        try:
            yield
        finally:
            self._leave()

    async def _wait(self, owner: str, seconds: float) -> None:
        if self.waiting >= MAX_WAITING or seconds <= 0:
            raise _too_many(seconds)
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queues.setdefault(owner, deque()).append(turn)
        self.waiting += 1
        try:
            async with asyncio.timeout(seconds):
                await turn
        except TimeoutError:
            self._give_up(owner, turn)
            raise _too_many(seconds) from None
        except asyncio.CancelledError:
            self._give_up(owner, turn)
            raise

    def _give_up(self, owner: str, turn: asyncio.Future[None]) -> None:
        queue = self._queues.get(owner)
        if queue is None or turn not in queue:  # it was given the slot at the same moment
            self._leave()
            return
        queue.remove(turn)
        self.waiting -= 1
        if not queue:
            del self._queues[owner]

    def _leave(self) -> None:
        """Give the slot to the next owner's oldest request."""
        if not self._queues:
            self.running -= 1
            return
        owner, queue = self._queues.popitem(last=False)
        turn = queue.popleft()
        if queue:
            self._queues[owner] = queue  # behind the other owners
        self.waiting -= 1
        if not turn.done():  # otherwise it is being cancelled, and gives the slot to the next one
            turn.set_result(None)


def _too_many(seconds: float) -> Overloaded:
    return Overloaded(
        "The model server has as many concurrent requests as are allowed. Try again later.",
        retry_after=max(1, round(seconds)),
    )
