"""Limits the request rates of keys, and of network addresses without a key, with a sliding window of one minute. It is
kept in Redis if configured, otherwise, and while Redis does not answer, in this process."""

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

from gateway.limits.rate_headers import REQUESTS, Window, record_window
from memories.errors import RateLimited
from memories.messaging.redis_clients import ANSWER_SECONDS, waiting_pool

logger = logging.getLogger("daybook.rates")
# After a failure this process counts for this time, so that not every request waits for a Redis that does not answer.
_BACKOFF_SECONDS = 5.0
_backoff_until = 0.0
# Storages belong to the loop in which they were created. By the address of Redis, "" for this process.
_limiters: "WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, SlidingWindowCounterRateLimiter]]" = (
    WeakKeyDictionary()
)


async def count_request(key: str, per_minute: int) -> None:
    """Count a request of a key, and record the window for the response headers. A `per_minute` of 0 means no limit.
    Raises RateLimited with `limit` and `retry_after` (seconds)."""
    if not per_minute:
        return
    window, accepted = await _hit(key, per_minute)
    record_window(REQUESTS, window)
    if not accepted:
        raise _limited("This key may make", window)


async def count_for_address(what: str, address: str, per_minute: int) -> None:
    """Count a request for `what` from a network address; `per_minute` is at least 1. Raises RateLimited."""
    window, accepted = await _hit(f"{what}:{address}", per_minute)
    if not accepted:
        raise _limited("One address may make", window)


def _limited(who: str, window: Window) -> RateLimited:
    wait = window.reset_seconds
    return RateLimited(
        f"{who} {window.limit} requests a minute. Try again in {wait} s.", limit=window.limit, retry_after=wait
    )


async def _hit(name: str, per_minute: int) -> tuple[Window, bool]:
    """Count a request. Return the window after it, and whether it is within the limit."""
    global _backoff_until
    limit = RateLimitItemPerMinute(per_minute)
    if settings.REDIS_URL and time.monotonic() >= _backoff_until:
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await _count(_limiter(settings.REDIS_URL), limit, name)
        except (StorageError, TimeoutError) as error:
            _backoff_until = time.monotonic() + _BACKOFF_SECONDS
            logger.warning(
                "Request rates are counted in this process only for %s s: Redis does not answer. %s",
                _BACKOFF_SECONDS,
                error,
            )
    return await _count(_limiter(""), limit, name)


async def _count(
    limiter: SlidingWindowCounterRateLimiter, limit: RateLimitItemPerMinute, name: str
) -> tuple[Window, bool]:
    accepted = await limiter.hit(limit, name)
    reset_time, remaining = await limiter.get_window_stats(limit, name)
    wait = max(1, math.ceil(reset_time - time.time()))
    return Window.resetting_in(wait, limit=limit.amount, remaining=remaining if accepted else 0), accepted


def _limiter(redis_url: str) -> SlidingWindowCounterRateLimiter:
    limiters = _limiters.setdefault(asyncio.get_running_loop(), {})
    found = limiters.get(redis_url)
    if found is None:
        storage: Storage = MemoryStorage()
        if redis_url:
            storage = RedisStorage(
                f"async+{redis_url}",
                wrap_exceptions=True,
                implementation="redispy",
                key_prefix="daybook:rate",
                connection_pool=waiting_pool(),  # type: ignore[arg-type]  # as the library documents
            )
        found = limiters[redis_url] = SlidingWindowCounterRateLimiter(storage)
    return found
