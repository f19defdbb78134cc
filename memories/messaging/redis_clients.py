"""Redis as channel layer and as queue, with short waits: a Redis that stopped or froze must hold up nobody.
What it carries are hints and jobs, which the database holds as rows."""

import asyncio
import logging
import time
from collections.abc import Coroutine
from functools import cache
from typing import Any

from channels_redis.core import RedisChannelLayer
from django.conf import settings
from django_q.brokers.redis_broker import Redis as RedisBroker
from redis import Redis
from redis.asyncio import Redis as AsyncRedis
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

logger = logging.getLogger("daybook.redis")
ANSWER_SECONDS = 1.0
# A worker's question for the next job is answered after a second where there is none.
_DEQUEUE_SECONDS = 5.0
_QUIET_SECONDS = 30.0
_CANCEL_AGAIN_SECONDS = 0.1
_FAILURES = (RedisError, OSError, TimeoutError)


def url_problem(url: str) -> str:
    """Return what is wrong with the options of an address, such as `?socket_timeout=2`; "" if they can be used."""
    try:
        Redis.from_url(url).connection_pool.make_connection()
    except (TypeError, ValueError) as error:
        return str(error)
    return ""


async def redis_answers() -> bool:
    """Return True if Redis answers within a second."""
    client = AsyncRedis.from_url(settings.REDIS_URL, socket_timeout=ANSWER_SECONDS, retry=AsyncRetry(NoBackoff(), 0))
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            return bool(await client.ping())
    except _FAILURES:
        return False
    finally:
        await client.connection_pool.disconnect(inuse_connections=True)


class HintLayer(RedisChannelLayer):  # type: ignore[misc]  # channels_redis has no types
    """Channels' layer on Redis. Joining a group and listening raise no error and wait a second at most: without Redis
    there are no hints, and consumers look at the outbox by themselves."""

    _told_at = -_QUIET_SECONDS

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._asked: set[asyncio.Task[None]] = set()

    async def group_add(self, group: str, channel: str) -> None:
        """Join a group, or note in the log that it was not possible; repeat it to be in it after a fault."""
        await self._wait_briefly(super().group_add(group, channel))

    async def group_discard(self, group: str, channel: str) -> None:
        """Leave a group, if Redis answers."""
        await self._wait_briefly(super().group_discard(group, channel))

    async def receive(self, channel: str) -> Any:
        """Return the next message of a channel, whatever happens to Redis meanwhile."""
        while True:
            receiving = asyncio.create_task(super().receive(channel))
            try:
                await asyncio.wait([receiving])
            finally:
                await _ended(receiving)
            try:
                return receiving.result()
            except _FAILURES as error:
                self._tell(error)
                await asyncio.sleep(ANSWER_SECONDS)

    async def _wait_briefly(self, asked: Coroutine[Any, Any, Any]) -> None:
        # Not asyncio.timeout: the caller would wait until the socket gives up where redis-py swallows the cancellation.
        task = asyncio.create_task(self._tried(asked))
        self._asked.add(task)
        task.add_done_callback(self._asked.discard)
        try:
            _, waiting = await asyncio.wait([task], timeout=ANSWER_SECONDS)
        finally:
            task.cancel()
        if waiting:
            self._tell(TimeoutError())

    async def _tried(self, asked: Coroutine[Any, Any, Any]) -> None:
        try:
            await asked
        except _FAILURES as error:
            self._tell(error)

    def _tell(self, error: Exception) -> None:
        if time.monotonic() - self._told_at >= _QUIET_SECONDS:
            self._told_at = time.monotonic()
            reason = str(error) or "no answer"
            logger.warning("Redis gives no hints (%s); websockets look at the database instead.", reason)


async def _ended(task: "asyncio.Task[Any]") -> None:
    """Cancel a task until it ends: redis-py swallows a cancellation that arrives while it connects."""
    while not task.done():
        task.cancel()
        await asyncio.wait([task], timeout=_CANCEL_AGAIN_SECONDS)
    if not task.cancelled():
        task.exception()  # looked at, so that asyncio does not log it where nobody waits for the result any more


class QueueBroker(RedisBroker):  # type: ignore[misc]  # django-q2 has no types
    """django-q2's queue on Redis, with limits on its waits and without repetitions inside the client."""

    _waiting: Redis | None = None

    @staticmethod
    def get_connection(list_key: str | None = None) -> Redis:
        """Return a client of its own, as the library makes them. Its calls raise RedisError within a second."""
        return _client(ANSWER_SECONDS)

    def dequeue(self) -> list[tuple[None, bytes | str]] | None:
        """Return the next job, waited for on a client that may wait: only workers do."""
        if self._waiting is None:
            self._waiting = _client(_DEQUEUE_SECONDS)
        job = self._waiting.blpop([self.list_key], timeout=1)
        return [(None, job[1])] if job else None


@cache
def brief_client() -> Redis:
    """Return the process's client for small calls that no request waits for. They raise RedisError within a second."""
    return _client(ANSWER_SECONDS)


def _client(seconds: float) -> Redis:
    return Redis.from_url(
        settings.REDIS_URL, socket_timeout=seconds, socket_connect_timeout=ANSWER_SECONDS, retry=Retry(NoBackoff(), 0)
    )
