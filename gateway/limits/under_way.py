"""Counts the answers under way of a limited key: in all processes with Redis, otherwise in this process. Each answer
takes a slot ("place") until it is complete; slots of dead processes expire after the maximum time of a run."""

import asyncio
import logging
import time
from uuid import UUID
from weakref import WeakKeyDictionary

from django.conf import settings
from redis.asyncio import Redis as AsyncRedis
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from memories.ids import uuid7
from memories.messaging.background import redis_calls
from memories.messaging.redis_clients import ANSWER_SECONDS, brief_client

logger = logging.getLogger("daybook.rates")
_MARGIN_SECONDS = 60.0  # added to the maximum time of a run
# After a failure, only the answers of this process are counted for this time.
_BACKOFF_SECONDS = 5.0
_backoff_until = 0.0
_places: dict[UUID, dict[UUID, float]] = {}
# Connections belong to the loop in which they were created.
_clients: "WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncRedis]" = WeakKeyDictionary()


async def enter(key_id: UUID) -> tuple[UUID, int]:
    """Take a slot for an answer. Return it and the number of the key's other answers. Of two concurrent requests, one
    sees the other. While Redis does not answer, only the answers of this process are counted."""
    global _backoff_until
    place, now = uuid7(), time.monotonic()
    places = _places.setdefault(key_id, {})
    for expired in [other for other, until in places.items() if until <= now]:
        del places[expired]
    others = len(places)
    places[place] = now + _longest()
    if not settings.REDIS_URL or now < _backoff_until:
        return place, others
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            return place, max(others, await _enter_in_redis(_name(key_id), str(place)))
    except (RedisError, OSError, TimeoutError) as error:
        _backoff_until = time.monotonic() + _BACKOFF_SECONDS
        logger.warning("Answers under way are counted in this process only: Redis does not answer. %s", error)
        return place, others
    except BaseException:
        leave(key_id, place)
        raise


def leave(key_id: UUID, place: UUID) -> None:
    """Release a slot without waiting. May be called more than once."""
    places = _places.get(key_id, {})
    if places.pop(place, None) is None:
        return
    if not places:
        _places.pop(key_id, None)
    if settings.REDIS_URL:
        redis_calls.submit(("answer under way", place), lambda: brief_client().zrem(_name(key_id), str(place)))


async def _enter_in_redis(name: str, place: str) -> int:
    loop = asyncio.get_running_loop()
    client = _clients.get(loop)
    if client is None:
        client = _clients[loop] = AsyncRedis.from_url(
            settings.REDIS_URL, socket_timeout=ANSWER_SECONDS, retry=AsyncRetry(NoBackoff(), 0)
        )
    now = time.time()
    async with client.pipeline(transaction=True) as together:
        together.zremrangebyscore(name, 0, now)
        together.zadd(name, {place: now + _longest()})
        together.expire(name, int(_longest()) + 1)
        together.zcard(name)
        return int((await together.execute())[-1]) - 1


def _longest() -> float:
    return float(settings.RUN_SECONDS) + _MARGIN_SECONDS


def _name(key_id: UUID) -> str:
    return f"daybook:under-way:{key_id}"
