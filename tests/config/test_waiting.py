"""Test tests.waiting."""

import pytest

from tests.waiting import eventually, eventually_async


def test_eventually_returns_the_first_true_value() -> None:
    answers = iter(["", "", "here"])
    assert eventually(lambda: next(answers), within=5) == "here"


def test_eventually_fails_after_the_deadline_with_the_last_value() -> None:
    with pytest.raises(AssertionError, match=r"Timed out after 0 s waiting for tea; the last value was \[\]"):
        eventually(list, within=0, description="tea")


async def test_eventually_async_awaits_coroutine_functions() -> None:
    answers = iter([0, 7])

    async def condition() -> int:
        return next(answers)

    assert await eventually_async(condition, within=5) == 7
