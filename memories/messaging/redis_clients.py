"""Redis as channel layer and queue, with short timeouts: a stopped or frozen Redis must not delay anybody.
It only carries hints and jobs, which are also rows in the database."""

import asyncio
import threading
from collections.abc import Coroutine
from functools import cache
from typing import Any

from channels_redis.core import RedisChannelLayer
from django.conf import settings
from django_q.brokers.redis_broker import Redis as RedisBroker
from redis import Redis
from redis.asyncio import BlockingConnectionPool
from redis.asyncio import Redis as AsyncRedis
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from memories.messaging.background import Faults

ANSWER_SECONDS = 1.0
# Longer than the second after which BLPOP returns without a job.
_DEQUEUE_SECONDS = 5.0
_CONNECTIONS = 20
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
    """Return True if Redis responds within ANSWER_SECONDS."""
    client = AsyncRedis.from_url(settings.REDIS_URL, socket_timeout=ANSWER_SECONDS, retry=AsyncRetry(NoBackoff(), 0))
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            return bool(await client.ping())
    except _FAILURES:
        return False
    finally:
        await client.connection_pool.disconnect(inuse_connections=True)


def waiting_pool() -> BlockingConnectionPool:
    """Return a pool for small calls of many simultaneous requests in this event loop, which wait up to a second for a
    connection. The default pool refuses the 101st, which looks like a Redis that does not answer."""
    return BlockingConnectionPool.from_url(
        settings.REDIS_URL,
        max_connections=_CONNECTIONS,
        timeout=ANSWER_SECONDS,
        socket_timeout=ANSWER_SECONDS,
        retry=AsyncRetry(NoBackoff(), 0),
    )


class HintLayer(Faults, RedisChannelLayer):  # type: ignore[misc]  # channels_redis has no types
    """Channels' layer on Redis. Joining a group and listening wait a second at most and raise no errors: without Redis
    there are no hints, and consumers poll the outbox."""

    _fault = "Redis delivers no hints (%s); websockets poll the database instead."

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._tasks: set[asyncio.Task[None]] = set()

    async def group_add(self, group: str, channel: str) -> None:
        """Join a group, or log that it failed. After a fault, consumers have to join again."""
        await self._wait_briefly(super().group_add(group, channel))

    async def group_discard(self, group: str, channel: str) -> None:
        """Leave a group, if Redis responds."""
        await self._wait_briefly(super().group_discard(group, channel))

    async def receive(self, channel: str) -> Any:
        """Return the next message of a channel, retrying through failures of Redis."""
        while True:
            receiving = asyncio.create_task(super().receive(channel))
            try:
                await asyncio.wait([receiving])
            finally:
                await _ended(receiving)
            try:
                return receiving.result()
            except _FAILURES as error:
                self._warn(error)
                await asyncio.sleep(ANSWER_SECONDS)

    async def _wait_briefly(self, operation: Coroutine[Any, Any, Any]) -> None:
        # Not asyncio.timeout: redis-py may swallow the cancellation, and the caller would wait for the socket timeout.
        task = asyncio.create_task(self._tried(operation))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            _, waiting = await asyncio.wait([task], timeout=ANSWER_SECONDS)
        finally:
            task.cancel()
        if waiting:
            self._warn(TimeoutError())

    async def _tried(self, operation: Coroutine[Any, Any, Any]) -> None:
        try:
            await operation
        except _FAILURES as error:
            self._warn(error)


async def _ended(task: "asyncio.Task[Any]") -> None:
    """Cancel a task until it ends, since redis-py swallows a cancellation while it connects."""
    while not task.done():
        task.cancel()
        await asyncio.wait([task], timeout=_CANCEL_AGAIN_SECONDS)
    if not task.cancelled():
        task.exception()  # retrieve it, so that asyncio does not log it as never retrieved


class QueueBroker(Faults, RedisBroker):  # type: ignore[misc]  # django-q2 has no types
    """django-q2's queue on Redis, with timeouts and without retries inside the client."""

    _fault = "Redis delivers no jobs (%s); it is asked again every few seconds."
    _blocking_client: Redis | None = None

    @staticmethod
    def get_connection(list_key: str | None = None) -> Redis:
        """Return a new client, as the library expects. Its calls raise RedisError within a second."""
        return _client(ANSWER_SECONDS)

    def dequeue(self) -> list[tuple[None, bytes | str]] | None:
        """Return the next job, or None. Only workers call this, so it uses a client with a longer timeout. After an
        error the library would log a traceback, end the process and start it again, for as long as Redis is away."""
        if self._blocking_client is None:
            self._blocking_client = _client(_DEQUEUE_SECONDS)
        try:
            job = self._blocking_client.blpop([self.list_key], timeout=1)
        except _FAILURES as error:
            self._warn(error)
            threading.Event().wait(ANSWER_SECONDS)
            return None
        return [(None, job[1])] if job else None

    def set_stat(self, key: str, value: str, timeout: int) -> None:
        """Store nothing. Nobody reads the library's statistics, and it logs each one that cannot be stored."""


@cache
def brief_client() -> Redis:
    """Return the shared client for small calls that no request waits for. They raise RedisError within a second."""
    return _client(ANSWER_SECONDS)


def _client(seconds: float) -> Redis:
    return Redis.from_url(
        settings.REDIS_URL, socket_timeout=seconds, socket_connect_timeout=ANSWER_SECONDS, retry=Retry(NoBackoff(), 0)
    )
