"""Request rates of keys: a sliding window of a minute, counted in this process, or in Redis for all of them."""

import asyncio
import logging
import math
import time
from weakref import WeakKeyDictionary

from django.conf import settings
from limits import RateLimitItemPerMinute
from limits.aio.storage import MemoryStorage, RedisStorage, Storage
from limits.aio.strategies import SlidingWindowCounterRateLimiter
from limits.errors import StorageError

from memories.errors import RateLimited

logger = logging.getLogger("daybook.rates")
_ANSWER_SECONDS = 1.0
# After a failure nothing is counted for so long: only one request in this time waits for a Redis that does not answer.
_REST_SECONDS = 5.0
_rest_until = 0.0
# Storages belong to the loop they were made in.
_limiters: "WeakKeyDictionary[asyncio.AbstractEventLoop, SlidingWindowCounterRateLimiter]" = WeakKeyDictionary()


async def count_request(key: str, per_minute: int) -> None:
    """Count one request of a key; 0 = no limit. Raises RateLimited with `limit` and `retry_after` (seconds). While
    Redis does not answer, nothing is counted and no request is refused."""
    if not per_minute:
        return
    global _rest_until
    if time.monotonic() < _rest_until:
        return
    limit = RateLimitItemPerMinute(per_minute)
    limiter = _limiter()
    try:
        async with asyncio.timeout(_ANSWER_SECONDS):
            if await limiter.hit(limit, key):
                return
            reset_time, _ = await limiter.get_window_stats(limit, key)
    except (StorageError, TimeoutError) as error:
        _rest_until = time.monotonic() + _REST_SECONDS
        logger.warning("Request rates are not counted for %s s: Redis does not answer. %s", _REST_SECONDS, error)
        return
    wait = max(1, math.ceil(reset_time - time.time()))
    raise RateLimited(
        f"This key may make {per_minute} requests a minute. Try again in {wait} s.", limit=per_minute, retry_after=wait
    )


def _limiter() -> SlidingWindowCounterRateLimiter:
    loop = asyncio.get_running_loop()
    found = _limiters.get(loop)
    if found is None:
        storage: Storage = MemoryStorage()
        if settings.REDIS_URL:
            address = f"async+{settings.REDIS_URL}"
            storage = RedisStorage(address, wrap_exceptions=True, implementation="redispy", key_prefix="daybook:rate")
        found = _limiters[loop] = SlidingWindowCounterRateLimiter(storage)
    return found
