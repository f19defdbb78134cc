"""Circuit breakers and the queue of the concurrency limit, on their own."""

import asyncio

import pytest

from gateway.upstream import concurrency
from gateway.upstream.breakers import Breaker
from gateway.upstream.concurrency import ConcurrencyLimit
from memories.errors import Overloaded
from tests.upstreams.failing_servers import Clock


def record_outcomes(breaker: Breaker, marks: str) -> None:
    """Record requests one after the other: `+` succeeded, `-` failed."""
    for mark in marks:
        breaker.leave(ok=mark == "+", probe=breaker.enter())


@pytest.mark.parametrize(
    ("marks", "is_open"),
    [("----", False), ("-----", True), ("++---", True), ("+++--", False), ("+++---", False), ("+++----", True)],
)
def test_a_breaker_opens_when_more_than_half_of_at_least_five_requests_failed(marks: str, is_open: bool) -> None:
    breaker = Breaker(Clock())
    record_outcomes(breaker, marks)
    assert (breaker.is_open, breaker.seconds()) == (is_open, 5.0 if is_open else 0.0)


def test_outcomes_older_than_a_minute_do_not_count() -> None:
    clock = Clock()
    breaker = Breaker(clock)
    record_outcomes(breaker, "----")
    clock.now += 61
    record_outcomes(breaker, "-")
    assert not breaker.is_open


def test_a_single_probe_decides_whether_the_breaker_closes() -> None:
    clock = Clock()
    breaker = Breaker(clock)
    record_outcomes(breaker, "-----")
    pauses = []
    for _ in range(5):
        pauses.append(breaker.seconds())
        clock.now += pauses[-1]
        assert breaker.seconds() == 0
        assert breaker.enter()
        assert breaker.seconds() > 0, "only one probe at a time"
        assert not breaker.enter()
        breaker.leave(ok=False, probe=True)
    assert pauses == [5, 10, 20, 30, 30]
    clock.now += 30
    record_outcomes(breaker, "+")
    assert not breaker.is_open
    record_outcomes(breaker, "----")
    assert not breaker.is_open, "earlier outcomes are forgotten"


def test_a_released_probe_is_left_to_the_next_request() -> None:
    clock = Clock()
    breaker = Breaker(clock)
    record_outcomes(breaker, "-----")
    clock.now += 5
    breaker.leave(ok=None, probe=breaker.enter())
    assert (breaker.is_open, breaker.seconds(), breaker.enter()) == (True, 0.0, True)


def test_a_request_that_began_before_the_breaker_opened_does_not_close_it() -> None:
    breaker = Breaker(Clock())
    breaker.hold(20)
    breaker.leave(ok=True, probe=False)
    assert breaker.seconds() == 20


async def served_in_order(limit: ConcurrencyLimit, *owners: str) -> list[str]:
    """Request a slot for each of these while the only slot is taken; return them in the order served."""
    served: list[str] = []
    taken = limit.slot("first", seconds=60)
    await taken.__aenter__()

    async def ask(name: str) -> None:
        async with limit.slot(name[0], seconds=60):
            served.append(name)
            await asyncio.sleep(0)

    waiting = []
    for name in owners:
        waiting.append(asyncio.create_task(ask(name)))
        await asyncio.sleep(0)
    await taken.__aexit__(None, None, None)
    await asyncio.gather(*waiting)
    return served


async def test_owners_take_turns_and_each_owners_requests_keep_their_order() -> None:
    limit = ConcurrencyLimit(1)
    assert await served_in_order(limit, "a1", "a2", "a3", "b1", "c1", "b2") == ["a1", "b1", "c1", "a2", "b2", "a3"]
    assert (limit.running, limit.waiting, len(limit._queues)) == (0, 0, 0)


async def take_slot(limit: ConcurrencyLimit, owner: str = "b") -> None:
    async with limit.slot(owner, seconds=60):
        pass


async def test_leaving_the_queue_leaves_nothing_behind() -> None:
    limit = ConcurrencyLimit(1)
    async with limit.slot("a", seconds=1):
        with pytest.raises(Overloaded) as refused:
            await limit.slot("b", seconds=0.001).__aenter__()
        assert refused.value.details == {"retry_after": 1}
        cancelled = asyncio.create_task(take_slot(limit))
        waiting = asyncio.create_task(take_slot(limit))
        await asyncio.sleep(0)
        cancelled.cancel()
        await asyncio.gather(cancelled, return_exceptions=True)
        assert limit.waiting == 1
    await asyncio.wait_for(waiting, 5)
    assert (limit.running, limit.waiting) == (0, 0)


async def test_a_waiter_cancelled_on_its_turn_passes_the_slot_on() -> None:
    limit = ConcurrencyLimit(1)
    taken = limit.slot("a", seconds=1)
    await taken.__aenter__()
    first_in_queue, next_in_queue = (asyncio.create_task(take_slot(limit, owner)) for owner in "bc")
    await asyncio.sleep(0)
    await taken.__aexit__(None, None, None)
    first_in_queue.cancel()
    await asyncio.wait_for(next_in_queue, 5)
    assert (first_in_queue.cancelled(), limit.running, limit.waiting) == (True, 0, 0)


async def test_the_number_of_waiters_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(concurrency, "MAX_WAITING", 0)
    limit = ConcurrencyLimit(1)
    async with limit.slot("a", seconds=1):
        with pytest.raises(Overloaded):
            await limit.slot("b", seconds=60).__aenter__()
