"""Wait for a condition, with a deadline. This is the only place in the test suite that sleeps, in small steps."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

Value = TypeVar("Value")
_STEP_SECONDS = 0.02


def eventually(condition: Callable[[], Value], *, within: float, description: str = "") -> Value:
    """Call `condition` until it returns a true value, and return that. Fail after `within` seconds."""
    deadline = time.monotonic() + within
    while True:
        if value := condition():
            return value
        if time.monotonic() > deadline:
            raise AssertionError(_timed_out(within, description, value))
        time.sleep(_STEP_SECONDS)  # noqa: TID251


async def eventually_async(
    condition: Callable[[], Value | Awaitable[Value]], *, within: float, description: str = ""
) -> Value:
    """Do the same inside a running loop; `condition` may be a coroutine function."""
    deadline = time.monotonic() + within
    while True:
        result = condition()
        value = await result if inspect.isawaitable(result) else result
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(_timed_out(within, description, value))
        await asyncio.sleep(_STEP_SECONDS)


def _timed_out(within: float, description: str, last: object) -> str:
    return f"Timed out after {within} s waiting for {description or 'a condition'}; the last value was {last!r}."
