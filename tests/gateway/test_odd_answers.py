"""Answers of model servers that are not quite what the protocol says"""

from typing import Any

import pytest

from gateway.steps import ModelStep
from gateway.upstream.calls import MAX_CALLS
from gateway.upstream.usage import usage_of
from memories.errors import TooLarge


def step() -> ModelStep:
    return ModelStep(deadline=0, bytes_left=1000)


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


def piece(index: Any = None, call_id: str | None = None, name: str | None = None, arguments: str = "") -> Any:
    return {"tool_calls": [{"index": index, "id": call_id, "function": {"name": name, "arguments": arguments}}]}


@pytest.mark.parametrize(
    "pieces",
    [
        [piece(0, "a", "add", "{"), piece(0, None, None, "}"), piece(1, "b", "delete", "[]")],
        [piece(None, "a", "add", "{"), piece(None, None, None, "}"), piece(None, "b", "delete", "[]")],
        [piece(None, "a", "add", "{"), piece(None, "b", "delete", "[]"), piece(None, "a", None, "}")],
        [piece(None, "a"), piece(None, None, "add", "{}"), piece(None, "b", "delete", "[]")],
    ],
)
def test_parallel_calls_in_pieces_stay_apart(pieces: list[Any]) -> None:
    taken = step()
    for delta in pieces:
        taken.take({}, delta)
    found = [(call.id, call.name, call.arguments) for call in taken.result().calls]
    assert found == [("a", "add", "{}"), ("b", "delete", "[]")]


def test_calls_without_index_and_id_are_told_apart_by_their_names() -> None:
    taken = step()
    for delta in (piece(name="add", arguments="{}"), piece(name="add", arguments="[]")):
        taken.take({}, delta)
    first, second = taken.result().calls
    assert (first.arguments, second.arguments) == ("{}", "[]")
    assert first.id != second.id
    assert all(len(call.id) == 9 and call.id.isalnum() for call in (first, second))


def test_calls_of_a_whole_answer_are_one_each() -> None:
    taken = step()
    call = {"id": "a", "function": {"name": "add", "arguments": "{}"}}
    taken.take({}, {"tool_calls": [call, call]}, whole=True)
    first, second = [call.id for call in taken.result().calls]
    assert first == "a"
    assert len(second) == 9
    assert second.isalnum()


def test_arguments_count_as_part_of_the_answer() -> None:
    taken = step()
    taken.take({}, piece(0, "a", "add", "x" * 900))
    with pytest.raises(TooLarge):
        taken.take({}, piece(0, None, None, "x" * 100))


def test_a_step_has_a_bounded_number_of_calls() -> None:
    taken = ModelStep(deadline=0, bytes_left=1_000_000)
    for index in range(MAX_CALLS):
        taken.take({}, piece(index, f"c{index}", "add"))
    with pytest.raises(TooLarge):
        taken.take({}, piece(MAX_CALLS, "one more", "add"))


@pytest.mark.parametrize("index", ["0", [1], {}, 1.5])
def test_an_index_of_another_kind_is_none(index: Any) -> None:
    taken = step()
    taken.take({}, piece(index, "a", "add", "{}"))
    assert [call.name for call in taken.result().calls] == ["add"]


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


def test_names_that_are_no_text_are_left_out_and_long_ones_are_cut() -> None:
    taken = step()
    taken.take({"finish_reason": ["stop"]}, {})
    assert taken.result().finish_reason == "stop"
    taken.take({"finish_reason": "length" * 100}, {})
    assert len(taken.result().finish_reason) == 200


def test_details_of_a_usage_can_be_added_up_and_stored() -> None:
    details = {"cached\x00_tokens": 3, "\ud800": 10**50, "audio_tokens": "7", **dict.fromkeys(map(str, range(50)), 1)}
    found = usage_of({"usage": {"prompt_tokens": 1, "prompt_tokens_details": details}})["prompt_tokens_details"]
    assert (found["cached_tokens"], found["?"], len(found)) == (3, 1_000_000_000, 20)
    assert "audio_tokens" not in found
    assert usage_of({"usage": {"prompt_tokens_details": "many"}})["prompt_tokens_details"] == {}
