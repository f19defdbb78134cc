"""Counts the answers under way of a limited key: in all processes with Redis, otherwise in this process. Each answer
takes a slot until it is complete; slots of dead processes expire after the maximum time of a run."""

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
_slots: dict[UUID, dict[UUID, float]] = {}
# Connections belong to the loop in which they were created.
_clients: "WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncRedis]" = WeakKeyDictionary()


async def enter(key_id: UUID) -> tuple[UUID, int]:
    """Take a slot for an answer. Return it and the number of the key's other answers. Of two concurrent requests, one
    sees the other. While Redis does not answer, only the answers of this process are counted."""
    global _backoff_until
    slot, now = uuid7(), time.monotonic()
    slots = _slots.setdefault(key_id, {})
    for expired in [other for other, until in slots.items() if until <= now]:
        del slots[expired]
    others = len(slots)
    slots[slot] = now + _longest()
    if not settings.REDIS_URL or now < _backoff_until:
        return slot, others
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            return slot, max(others, await _enter_in_redis(_name(key_id), str(slot)))
    except (RedisError, OSError, TimeoutError) as error:
        _backoff_until = time.monotonic() + _BACKOFF_SECONDS
        logger.warning("Answers under way are counted in this process only: Redis does not answer. %s", error)
        return slot, others
    except BaseException:
        leave(key_id, slot)
        raise


def leave(key_id: UUID, slot: UUID) -> None:
    """Release a slot without waiting. May be called more than once."""
    slots = _slots.get(key_id, {})
    if slots.pop(slot, None) is None:
        return
    if not slots:
        _slots.pop(key_id, None)
    if settings.REDIS_URL:
        redis_calls.submit(("answer under way", slot), lambda: brief_client().zrem(_name(key_id), str(slot)))


async def _enter_in_redis(name: str, slot: str) -> int:
    loop = asyncio.get_running_loop()
    client = _clients.get(loop)
    if client is None:
        client = _clients[loop] = AsyncRedis.from_url(
            settings.REDIS_URL, socket_timeout=ANSWER_SECONDS, retry=AsyncRetry(NoBackoff(), 0)
        )
    now = time.time()
    async with client.pipeline(transaction=True) as together:
        together.zremrangebyscore(name, 0, now)
        together.zadd(name, {slot: now + _longest()})
        together.expire(name, int(_longest()) + 1)
        together.zcard(name)
        return int((await together.execute())[-1]) - 1


def _longest() -> float:
    return float(settings.RUN_SECONDS) + _MARGIN_SECONDS


def _name(key_id: UUID) -> str:
    return f"daybook:under-way:{key_id}"
