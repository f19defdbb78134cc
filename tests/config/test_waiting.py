"""tests.waiting: the waiting itself."""

import pytest

from tests.waiting import eventually, eventually_async


def test_it_returns_the_first_true_answer() -> None:
    answers = iter(["", "", "here"])
    assert eventually(lambda: next(answers), within=5) == "here"


def test_it_fails_with_the_last_answer_after_the_deadline() -> None:
    with pytest.raises(AssertionError, match=r"The tea did not come true within 0 s; the last answer was \[\]"):
        eventually(list, within=0, saying="The tea")


async def test_it_awaits_coroutine_functions() -> None:
    answers = iter([0, 7])

    async def fact() -> int:
        return next(answers)

    assert await eventually_async(fact, within=5) == 7
