"""Counts the answers under way of a limited key: in all processes with Redis, otherwise in this process. Each answer
takes a slot until it is complete; slots of dead processes expire after the maximum time of a run."""

import asyncio
import logging
import time
from uuid import UUID
from weakref import WeakKeyDictionary

from django.conf import settings
from redis.asyncio import Redis as AsyncRedis
from redis.exceptions import RedisError

from memories.ids import uuid7
from memories.messaging.background import redis_calls
from memories.messaging.redis_clients import ANSWER_SECONDS, brief_client, waiting_pool

logger = logging.getLogger("daybook.rates")
_MARGIN_SECONDS = 60.0  # added to the maximum time of a run
# After a failure, only the answers of this process are counted for this time.
_BACKOFF_SECONDS = 5.0
_backoff_until = 0.0
_Slots = dict[UUID, dict[UUID, float]]  # by key and slot, when the slot expires
_slots: _Slots = {}
_released: _Slots = {}
"""Slots that Redis may still count: it is told without waiting, and may not answer."""
# Connections belong to the loop in which they were created.
_clients: "WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncRedis]" = WeakKeyDictionary()


async def enter(key_id: UUID) -> tuple[UUID, int]:
    """Take a slot for an answer. Return it and the number of the key's other answers. Of two concurrent requests, one
    sees the other. While Redis does not answer, only the answers of this process are counted."""
    global _backoff_until
    slot, now = uuid7(), time.monotonic()
    slots = _unexpired(_slots, key_id, now)
    others = len(slots)
    slots[slot] = now + _longest()
    if not settings.REDIS_URL or now < _backoff_until:
        return slot, others
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            return slot, max(others, await _enter_in_redis(key_id, slot))
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
    until = slots.pop(slot, None)
    if until is None:
        return
    if not slots:
        _slots.pop(key_id, None)
    if settings.REDIS_URL:
        _released.setdefault(key_id, {})[slot] = until
        redis_calls.submit(("answer under way", slot), lambda: _leave_in_redis(key_id, slot))


def _leave_in_redis(key_id: UUID, slot: UUID) -> None:
    brief_client().zrem(_name(key_id), str(slot))
    _released.get(key_id, {}).pop(slot, None)


def _unexpired(held: _Slots, key_id: UUID, now: float) -> dict[UUID, float]:
    slots = held.setdefault(key_id, {})
    for expired in [slot for slot, until in list(slots.items()) if until <= now]:
        slots.pop(expired, None)
    return slots


async def _enter_in_redis(key_id: UUID, slot: UUID) -> int:
    loop = asyncio.get_running_loop()
    client = _clients.get(loop)
    if client is None:
        client = _clients[loop] = AsyncRedis(connection_pool=waiting_pool())
    name, now = _name(key_id), time.time()
    waiting = _unexpired(_released, key_id, time.monotonic())
    released = list(waiting)
    async with client.pipeline(transaction=True) as together:
        together.zremrangebyscore(name, 0, now)
        if released:
            together.zrem(name, *map(str, released))
        together.zadd(name, {str(slot): now + _longest()})
        together.expire(name, int(_longest()) + 1)
        together.zcard(name)
        others = int((await together.execute())[-1]) - 1
    for other in released:
        waiting.pop(other, None)
    return others


def _longest() -> float:
    return float(settings.RUN_SECONDS) + _MARGIN_SECONDS


def _name(key_id: UUID) -> str:
    return f"daybook:under-way:{key_id}"
