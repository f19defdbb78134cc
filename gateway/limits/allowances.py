"""Checks a key's limits before a model is asked: tokens and money per UTC day, and concurrent answers.

The usage of an answer is counted when the answer is complete. Until then it counts as a hundredth of each daily limit,
so that fewer answers may start at once the nearer the limit is; the last hundredth admits only one answer. A limit can
be exceeded only by the answers that were under way when it was reached."""

import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from uuid import UUID

from gateway.limits import under_way
from gateway.limits.rate_headers import TOKENS, Window, record_window
from gateway.limits.spending import seconds_to_midnight, spent_today
from memories.caller import Caller, SpendingLimits
from memories.database.access import in_read_thread
from memories.errors import RateLimited

SHARE = 100
"""An answer under way counts as one part in this many of a daily limit."""
_RETRY_SECONDS = 2


@dataclass(frozen=True, slots=True)
class Allowance:
    """A key's permission to ask models for one answer. Call `leave` when the answer is complete."""

    key_id: UUID | None = None
    slot: UUID | None = None  # among the answers under way; None for a key without limits

    def leave(self) -> None:
        """Release the slot, once the answer is complete and counted. May be called more than once."""
        if self.key_id is not None and self.slot is not None:
            under_way.leave(self.key_id, self.slot)


NO_ALLOWANCE = Allowance()


@asynccontextmanager
async def allowed(caller: Caller) -> AsyncIterator[Allowance]:
    """Yield the permission for one answer. The block, or what it starts, calls `leave` when the answer is complete; if
    the block raises, it is called here. One query for a key with daily limits, otherwise none.

    Raises RateLimited with `reason` (`tokens_per_day`, `money_per_day`, `streams_at_once`), `limit`, `retry_after`."""
    key_id, limits = caller.key_id, caller.spending_limits
    if key_id is None or not limits:
        yield Allowance(key_id)
        return
    slot, others = await under_way.enter(key_id)
    try:
        if 0 < limits.streams_at_once <= others:
            raise RateLimited(
                f"This key may have {limits.streams_at_once} answers at once. Try again when one is complete.",
                reason="streams_at_once",
                limit=limits.streams_at_once,
                retry_after=_RETRY_SECONDS,
            )
        if limits.daily:
            _require(limits, others, *await in_read_thread(spent_today, key_id))
        yield Allowance(key_id, slot)
    except BaseException:
        under_way.leave(key_id, slot)
        raise


async def record_tokens_left(caller: Caller) -> None:
    """Record the remaining tokens of the day for the response headers. One query if the key has that limit."""
    if caller.key_id is not None and caller.spending_limits.tokens_per_day:
        tokens, _ = await in_read_thread(spent_today, caller.key_id)
        _record_tokens(caller.spending_limits.tokens_per_day, tokens)


def _require(limits: SpendingLimits, others: int, tokens: int, money: float) -> None:
    """Raise RateLimited if the daily limits do not admit another answer."""
    if limits.tokens_per_day:
        _record_tokens(limits.tokens_per_day, tokens + others * math.ceil(limits.tokens_per_day / SHARE))
    for reason, unit, limit, spent in (
        ("tokens_per_day", " tokens", limits.tokens_per_day, tokens),
        ("money_per_day", " of money", limits.money_per_day, money),
    ):
        if not limit or spent + others * limit / SHARE < limit:
            continue
        over = spent >= limit
        when = "A new day begins at midnight UTC." if over else "The rest is for answers under way. Try again soon."
        raise RateLimited(
            f"This key may spend {limit:.15g}{unit} a day. {when}",
            reason=reason,
            limit=limit,
            retry_after=seconds_to_midnight() if over else _RETRY_SECONDS,
        )


def _record_tokens(limit: int, spent: int) -> None:
    record_window(TOKENS, Window.resetting_in(seconds_to_midnight(), limit=limit, remaining=max(0, limit - spent)))
