"""Answers of model servers that deviate from the protocol"""

import time
from typing import Any

import pytest

from gateway.steps import ModelStep
from gateway.upstream.calls import MAX_CALLS
from gateway.upstream.collected import CompletionBuilder
from gateway.upstream.usage import newer_usage, usage_of
from memories.errors import TooLarge


def new_step() -> ModelStep:
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
def test_text_may_be_a_list_of_parts(content: Any, text: str) -> None:
    assert new_step().take({}, {"content": content}) == text


def test_arguments_may_be_an_object() -> None:
    step = new_step()
    function = {"name": "add_memory", "arguments": {"content": "Likes tea."}}
    step.take({}, {"tool_calls": [{"id": 7, "function": function}, None]})
    (call,) = step.result().calls
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
def test_pieces_of_parallel_calls_are_told_apart(pieces: list[Any]) -> None:
    step = new_step()
    for delta in pieces:
        step.take({}, delta)
    found = [(call.id, call.name, call.arguments) for call in step.result().calls]
    assert found == [("a", "add", "{}"), ("b", "delete", "[]")]


@pytest.mark.parametrize(
    "names",
    [("get_", "weather", None), ("get", "get_wea", "get_weather", "get_weather"), ("get_weather", "get_weather", None)],
    ids=str,
)
def test_a_name_may_come_in_pieces_grow_or_be_repeated(names: tuple[str | None, ...]) -> None:
    step = new_step()
    for name in names[:-1]:
        step.take({}, piece(0, "a", name))
    step.take({}, piece(0, "a", names[-1], "{}"))
    (call,) = step.result().calls
    assert (call.name, call.arguments) == ("get_weather", "{}")


def test_calls_without_index_and_id_are_distinguished_by_name() -> None:
    step = new_step()
    for delta in (piece(name="add", arguments="{}"), piece(name="add", arguments="[]")):
        step.take({}, delta)
    first, second = step.result().calls
    assert (first.arguments, second.arguments) == ("{}", "[]")
    assert first.id != second.id
    assert all(len(call.id) == 9 and call.id.isalnum() for call in (first, second))


def test_calls_of_an_unstreamed_answer_are_not_merged() -> None:
    step = new_step()
    call = {"id": "a", "function": {"name": "add", "arguments": "{}"}}
    step.take({}, {"tool_calls": [call, call]}, whole=True)
    first, second = [call.id for call in step.result().calls]
    assert first == "a"
    assert len(second) == 9
    assert second.isalnum()


def test_arguments_count_towards_the_size_of_the_answer() -> None:
    step = new_step()
    step.take({}, piece(0, "a", "add", "x" * 900))
    with pytest.raises(TooLarge):
        step.take({}, piece(0, None, None, "x" * 100))


def test_the_number_of_calls_per_step_is_limited() -> None:
    step = ModelStep(deadline=0, bytes_left=1_000_000)
    for index in range(MAX_CALLS):
        step.take({}, piece(index, f"c{index}", "add"))
    with pytest.raises(TooLarge):
        step.take({}, piece(MAX_CALLS, "one more", "add"))


@pytest.mark.parametrize(
    "delta",
    [
        {"reasoning_details": [{"index": index} for index in range(30_000)]},
        {"tool_calls": piece(0, None, "a")["tool_calls"] * 30_000},
        {"tool_calls": piece(0, None, "a", "{")["tool_calls"] * 30_000},
    ],
    ids=["entries", "empty arguments", "arguments"],
)
def test_a_delta_of_many_pieces_takes_little_time(delta: dict[str, Any]) -> None:
    step = ModelStep(deadline=0, bytes_left=1_000_000)
    begun = time.process_time()
    step.take({}, delta)
    assert time.process_time() - begun < 1.5  # comparing each with all others takes many seconds


@pytest.mark.parametrize("index", ["0", [1], {}, 1.5])
def test_an_index_of_the_wrong_type_is_ignored(index: Any) -> None:
    step = new_step()
    step.take({}, piece(index, "a", "add", "{}"))
    assert [call.name for call in step.result().calls] == ["add"]


@pytest.mark.parametrize("calls", [{"a": 1}, "x", 5, None, []])
def test_calls_that_are_not_a_list_are_ignored(calls: Any) -> None:
    step = new_step()
    step.take({}, {"tool_calls": calls})
    assert step.result().calls == []


@pytest.mark.parametrize(
    ("given", "tokens"),
    [(7, 7), ("7", 7), (1.5, 1), (None, 0), ("many", 0), (-5, 0), (10**25, 1_000_000_000), (float("inf"), 0)],
)
def test_usage_figures_are_made_storable_integers(given: Any, tokens: int) -> None:
    assert usage_of({"usage": {"total_tokens": given, "cost": 0.5}}) == {"total_tokens": tokens, "cost": 0.5}


def test_of_a_sound_only_the_id_goes_back_to_its_model() -> None:
    """OpenAI accepts nothing else, and the sound would fill the database."""
    step = new_step()
    for audio in ({"id": "audio_1", "data": "UklG"}, {"data": "Rg==", "transcript": "Hi."}, {"expires_at": 7}):
        step.take({}, {"audio": audio})
    assert step.result().kept.fields == {"audio": {"id": "audio_1"}}


NO_TOKENS = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
TOKENS = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}


@pytest.mark.parametrize("sent", [[NO_TOKENS, TOKENS], [TOKENS, NO_TOKENS], [TOKENS, {}]], ids=str)
def test_a_usage_without_tokens_replaces_no_other(sent: list[dict[str, Any]]) -> None:
    """Some servers send zeros in chunks that come before they know the usage, or after they have sent it."""
    usage, builder = {}, CompletionBuilder()
    for given in sent:
        usage = newer_usage(usage, usage_of({"usage": given}))
        builder.add({"choices": [{"index": 0, "delta": {"content": "x"}}], "usage": given})
    assert usage == builder.completion()["usage"] == TOKENS
    assert newer_usage({}, NO_TOKENS) == NO_TOKENS


def test_a_usage_within_the_choice_is_found() -> None:
    """Kimi sends it there in a stream."""
    choice = {"index": 0, "delta": {}, "finish_reason": "stop", "usage": {"prompt_tokens": 7, "completion_tokens": 3}}
    assert usage_of({"choices": [choice]}) == choice["usage"]
    assert usage_of({"choices": [choice], "usage": {"total_tokens": 9}}) == {"total_tokens": 9}
    assert usage_of({"choices": [{"usage": [7]}]}) == {}


@pytest.mark.parametrize(
    ("prompt", "completion", "total", "written"), [(7, 3, 50, 43), (7, 3, 10, 3), (7, 3, 0, 3), (0, 3, 50, 3)]
)
def test_thoughts_that_only_the_total_contains_are_output(
    prompt: int, completion: int, total: int, written: int
) -> None:
    """Gemini and xAI leave them out of `completion_tokens`."""
    usage = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": total}
    assert usage_of({"usage": usage}) == usage | {"completion_tokens": written}


def test_a_finish_reason_that_is_not_text_is_ignored_and_a_long_one_truncated() -> None:
    step = new_step()
    step.take({"finish_reason": ["stop"]}, {})
    assert step.result().finish_reason == "stop"
    step.take({"finish_reason": "length" * 100}, {})
    assert len(step.result().finish_reason) == 200


def test_usage_details_are_cleaned_and_limited() -> None:
    details = {"cached\x00_tokens": 3, "\ud800": 10**50, "audio_tokens": "7", **dict.fromkeys(map(str, range(50)), 1)}
    found = usage_of({"usage": {"prompt_tokens": 1, "prompt_tokens_details": details}})["prompt_tokens_details"]
    assert (found["cached_tokens"], found["?"], len(found)) == (3, 1_000_000_000, 20)
    assert "audio_tokens" not in found
    assert usage_of({"usage": {"prompt_tokens_details": "many"}})["prompt_tokens_details"] == {}
