"""Circuit breakers and the queue for places, by themselves"""

import asyncio

import pytest

from gateway.upstream import concurrency
from gateway.upstream.breakers import Breaker
from gateway.upstream.concurrency import ConcurrencyLimit
from memories.errors import Overloaded
from tests.upstreams.failing import Clock


def outcomes(breaker: Breaker, marks: str) -> None:
    """Requests one after the other: `+` succeeded, `-` failed."""
    for mark in marks:
        breaker.record(ok=mark == "+", probe=breaker.enter())


@pytest.mark.parametrize(
    ("marks", "is_open"),
    [("----", False), ("-----", True), ("++---", True), ("+++--", False), ("+++---", False), ("+++----", True)],
)
def test_it_opens_when_more_than_half_of_at_least_five_failed(marks: str, is_open: bool) -> None:
    breaker = Breaker(Clock())
    outcomes(breaker, marks)
    assert (breaker.is_open, breaker.seconds()) == (is_open, 5.0 if is_open else 0.0)


def test_what_is_a_minute_old_does_not_count() -> None:
    clock = Clock()
    breaker = Breaker(clock)
    outcomes(breaker, "----")
    clock.now += 61
    outcomes(breaker, "-")
    assert not breaker.is_open


def test_one_probe_decides() -> None:
    clock = Clock()
    breaker = Breaker(clock)
    outcomes(breaker, "-----")
    rests = []
    for _ in range(5):
        rests.append(breaker.seconds())
        clock.now += rests[-1]
        assert breaker.seconds() == 0
        assert breaker.enter()
        assert breaker.seconds() > 0, "only one"
        assert not breaker.enter()
        breaker.record(ok=False, probe=True)
    assert rests == [5, 10, 20, 30, 30]
    clock.now += 30
    outcomes(breaker, "+")
    assert not breaker.is_open
    outcomes(breaker, "----")
    assert not breaker.is_open, "what was before is forgotten"


def test_a_probe_that_says_nothing_leaves_the_place_to_the_next() -> None:
    clock = Clock()
    breaker = Breaker(clock)
    outcomes(breaker, "-----")
    clock.now += 5
    breaker.release(probe=breaker.enter())
    assert (breaker.is_open, breaker.seconds(), breaker.enter()) == (True, 0.0, True)


def test_what_began_before_it_opened_does_not_close_it() -> None:
    breaker = Breaker(Clock())
    breaker.hold(20)
    breaker.record(ok=True, probe=False)
    assert breaker.seconds() == 20


async def served_in_order(places: ConcurrencyLimit, *owners: str) -> list[str]:
    """Ask for a place for each of these while one is taken; return who was served, in order."""
    served: list[str] = []
    taken = places.slot("first", seconds=60)
    await taken.__aenter__()

    async def ask(name: str) -> None:
        async with places.slot(name[0], seconds=60):
            served.append(name)
            await asyncio.sleep(0)

    waiting = []
    for name in owners:
        waiting.append(asyncio.create_task(ask(name)))
        await asyncio.sleep(0)
    await taken.__aexit__(None, None, None)
    await asyncio.gather(*waiting)
    return served


async def test_owners_take_turns_and_each_keeps_its_order() -> None:
    places = ConcurrencyLimit(1)
    assert await served_in_order(places, "a1", "a2", "a3", "b1", "c1", "b2") == ["a1", "b1", "c1", "a2", "b2", "a3"]
    assert (places.running, places.waiting, len(places._queues)) == (0, 0, 0)


async def held(places: ConcurrencyLimit, owner: str = "b") -> None:
    async with places.slot(owner, seconds=60):
        pass


async def test_who_leaves_the_queue_leaves_nothing_behind() -> None:
    places = ConcurrencyLimit(1)
    async with places.slot("a", seconds=1):
        with pytest.raises(Overloaded) as refused:
            await places.slot("b", seconds=0.001).__aenter__()
        assert refused.value.details == {"retry_after": 1}
        gone = asyncio.create_task(held(places))
        stays = asyncio.create_task(held(places))
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.gather(gone, return_exceptions=True)
        assert places.waiting == 1
    await asyncio.wait_for(stays, 5)
    assert (places.running, places.waiting) == (0, 0)


async def test_one_who_goes_when_called_passes_the_place_on() -> None:
    places = ConcurrencyLimit(1)
    taken = places.slot("a", seconds=1)
    await taken.__aenter__()
    called, next_one = (asyncio.create_task(held(places, owner)) for owner in "bc")
    await asyncio.sleep(0)
    await taken.__aexit__(None, None, None)
    called.cancel()
    await asyncio.wait_for(next_one, 5)
    assert (called.cancelled(), places.running, places.waiting) == (True, 0, 0)


async def test_not_more_wait_than_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(concurrency, "MAX_WAITING", 0)
    places = ConcurrencyLimit(1)
    async with places.slot("a", seconds=1):
        with pytest.raises(Overloaded):
            await places.slot("b", seconds=60).__aenter__()
