"""The limit on concurrent requests from this process to one upstream. Waiting owners take turns; the requests of one
owner are sent in order."""

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from threading import Lock

from memories.errors import Overloaded

MAX_WAITING = 1000


@dataclass(slots=True)
class _Ticket:
    """A waiting request. `served` is set once it has a slot."""

    woken: asyncio.Future[None]
    served: bool = False


@dataclass(slots=True)
class ConcurrencyLimit:
    """The slots of one upstream. A process may have several event loops, so each ticket is woken in its own."""

    limit: int
    running: int = 0
    waiting: int = 0
    _queues: OrderedDict[str, deque[_Ticket]] = field(default_factory=OrderedDict)
    _lock: Lock = field(default_factory=Lock)

    @asynccontextmanager
    async def slot(self, owner: str, *, seconds: float) -> AsyncGenerator[None]:
        """Hold a slot. Raises Overloaded after waiting for `seconds`, or immediately if too many requests wait."""
        await self._enter(owner, seconds)
        try:
            yield
        finally:
            self._leave()

    async def _enter(self, owner: str, seconds: float) -> None:
        with self._lock:
            if self.running < self.limit:  # the queue is empty
                self.running += 1
                return
            if self.waiting >= MAX_WAITING or seconds <= 0:
                raise _too_many(seconds)
            ticket = _Ticket(asyncio.get_running_loop().create_future())
            self._queues.setdefault(owner, deque()).append(ticket)
            self.waiting += 1
        try:
            async with asyncio.timeout(seconds):
                await ticket.woken
        except TimeoutError:
            self._give_up(owner, ticket)
            raise _too_many(seconds) from None
        except BaseException:
            self._give_up(owner, ticket)
            raise

    def _give_up(self, owner: str, ticket: _Ticket) -> None:
        with self._lock:
            if not ticket.served:
                self.waiting -= 1
                queue = self._queues[owner]
                queue.remove(ticket)
                if not queue:
                    del self._queues[owner]
                return
        self._leave()

    def _leave(self) -> None:
        """Give the slot to the next owner's oldest request."""
        with self._lock:
            if not self._queues:
                self.running -= 1
                return
            owner, queue = self._queues.popitem(last=False)
            ticket = queue.popleft()
            if queue:
                self._queues[owner] = queue  # behind the other owners
            self.waiting -= 1
            ticket.served = True
        try:
            ticket.woken.get_loop().call_soon_threadsafe(_wake, ticket.woken)
        except RuntimeError:  # its loop is closed, so it will never use the slot
            self._leave()


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _too_many(seconds: float) -> Overloaded:
    return Overloaded(
        "The model server has as many concurrent requests as are allowed. Try again later.",
        retry_after=max(1, round(seconds)),
    )
