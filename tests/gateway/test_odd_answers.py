"""Answers of model servers that are not quite what the protocol says"""

from typing import Any

import pytest

from gateway.steps import Step, usage_of


def step() -> Step:
    return Step(deadline=0, bytes_left=1000)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("plain", "plain"),
        ([{"type": "text", "text": "in "}, {"type": "text", "text": "parts"}, {"type": "image_url"}, 7], "in parts"),
        (None, ""),
        (5, ""),
        ({"text": "x"}, ""),
    ],
)
def test_text_is_taken_in_parts_and_nothing_else(content: Any, text: str) -> None:
    assert step().take({}, {"content": content}) == text


def test_arguments_may_come_as_an_object() -> None:
    taken = step()
    function = {"name": "add_memory", "arguments": {"content": "Likes tea."}}
    taken.take({}, {"tool_calls": [{"id": 7, "function": function}, None]})
    (call,) = taken.result().calls
    assert (call.id, call.name, call.arguments) == ("7", "add_memory", '{"content": "Likes tea."}')


@pytest.mark.parametrize("calls", [{"a": 1}, "x", 5, None, []])
def test_calls_that_are_no_list_are_none(calls: Any) -> None:
    taken = step()
    taken.take({}, {"tool_calls": calls})
    assert taken.result().calls == []


@pytest.mark.parametrize(
    ("given", "tokens"),
    [(7, 7), ("7", 7), (1.5, 1), (None, 0), ("many", 0), (-5, 0), (10**25, 1_000_000_000), (float("inf"), 0)],
)
def test_figures_of_a_usage_can_be_added_up_and_stored(given: Any, tokens: int) -> None:
    assert usage_of({"usage": {"total_tokens": given, "cost": 0.5}}) == {"total_tokens": tokens, "cost": 0.5}


@pytest.mark.parametrize("usage", [None, [1], "many", 5])
def test_a_usage_that_is_no_object_is_none(usage: Any) -> None:
    assert usage_of({"usage": usage}) == {}
