"""Waiting for a fact, with a deadline. The only place of the test suite that sleeps, in small steps."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

Found = TypeVar("Found")
_STEP_SECONDS = 0.02


def eventually(fact: Callable[[], Found], *, within: float, saying: str = "") -> Found:
    """Call `fact` until it returns something true, and return that. Fails after `within` seconds."""
    deadline = time.monotonic() + within
    while True:
        if found := fact():
            return found
        if time.monotonic() > deadline:
            raise AssertionError(_never(within, saying, found))
        time.sleep(_STEP_SECONDS)  # noqa: TID251 - this is the place


async def eventually_async(fact: Callable[[], Found | Awaitable[Found]], *, within: float, saying: str = "") -> Found:
    """The same inside a running loop; `fact` may be a coroutine function."""
    deadline = time.monotonic() + within
    while True:
        answer = fact()
        found = await answer if inspect.isawaitable(answer) else answer
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(_never(within, saying, found))
        await asyncio.sleep(_STEP_SECONDS)


def _never(within: float, saying: str, last: object) -> str:
    return f"{saying or 'The awaited fact'} did not come true within {within} s; the last answer was {last!r}."
