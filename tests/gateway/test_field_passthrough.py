"""POST /v1/chat/completions passes request fields to the model and returns the fields of its answer"""

from collections.abc import AsyncGenerator
from typing import Any

import pytest
from pytest_django.fixtures import Settings

from gateway.models import Message
from gateway.upstream import ModelRequest
from memories.database.access import in_thread
from memories.models import Owner
from tests.conftest import Api
from tests.factories import agent_make, memory_make
from tests.gateway.client_tools import LOOKUP
from tests.gateway.v1 import PATH, ask, stream, streamed_and_not
from tests.scripted_model import Says, ScriptedModel, calls

pytestmark = [pytest.mark.any_database, pytest.mark.usefixtures("agent")]

SHELL = {"type": "custom", "custom": {"name": "shell", "format": {"type": "text"}}}
NULLED = {**SHELL, "function": None}
CACHED = {"cache_control": {"type": "ephemeral"}}


def names(request: Any) -> list[str]:
    return [(tool.get("function") or tool["custom"])["name"] for tool in request.tools]


@pytest.mark.parametrize(
    "fields",
    [
        {"user": "me", "store": True, "session_id": "theirs", "metadata": {"project": "tea"}},
        {"n": 1, "logprobs": True, "top_logprobs": 2, "seed": 7, "service_tier": "flex", "something_new": {"x": [1]}},
        {"temperature": 0.1, "response_format": {"type": "json_object"}},
        {"modalities": ["text", "audio"], "audio": {"voice": "alloy", "format": "wav"}, "prediction": None},
        {"tools": [LOOKUP, SHELL], "tool_choice": "auto", "parallel_tool_calls": False},
        {"parallel_tool_calls": True, "tools": [NULLED]},
    ],
    ids=lambda fields: next(iter(fields)),
)
async def test_parameters_reach_the_model(alice_api: Api, model: ScriptedModel, fields: dict[str, Any]) -> None:
    model.script("Fine.")
    assert (await ask(alice_api, "Hi", **fields)).status == 200
    body = model.calls[0].body(stream=False)
    expected = {name: value for name, value in fields.items() if value is not None and name != "tools"}
    assert body.items() >= expected.items()
    assert fields.keys() - expected.keys() - {"tools"} == {name for name, value in fields.items() if value is None}
    assert body["tools"][: len(fields.get("tools", []))] == fields.get("tools", [])


async def test_metadata_keys_for_daybook_are_not_passed_on(alice_api: Api, model: ScriptedModel) -> None:
    model.script("Fine.", "Fine.")
    await ask(alice_api, "Hi", metadata={"session_id": "s", "temporary": "true"})
    await ask(alice_api, "Hi", metadata={"session_id": "s", "project": "tea"})
    first, second = [call.body(stream=False) for call in model.calls]
    assert "metadata" not in first
    assert second["metadata"] == {"project": "tea"}


@pytest.mark.parametrize(
    ("url", "dialect", "without_store"),
    [
        ("https://api.openai.com/v1", None, False),
        ("https://x.openai.azure.com/openai/v1", None, False),
        ("http://gpu.lan:8000/v1", "openai", False),
        ("http://gpu.lan:8000/v1", None, True),
        ("https://openrouter.ai/api/v1", None, True),
    ],
)
async def test_openai_receives_metadata_only_with_store(
    alice_api: Api, model: ScriptedModel, settings: Settings, url: str, dialect: str | None, without_store: bool
) -> None:
    upstream = {"url": url, "key": "", **({"dialect": dialect} if dialect else {})}
    settings.DAYBOOK_UPSTREAMS = {"default": upstream}
    model.script("Fine.", "Fine.")
    await ask(alice_api, "Hi", metadata={"project": "tea"})
    await ask(alice_api, "Hi", metadata={"project": "tea"}, store=True)
    first, second = [call.body(stream=False) for call in model.calls]
    assert ("metadata" in first) == without_store
    assert second["metadata"] == {"project": "tea"}


async def test_cache_control_survives_injection(alice_api: Api, alice: Owner, model: ScriptedModel) -> None:
    await in_thread(agent_make, inject_memories=True)
    await in_thread(memory_make, alice, "Likes green tea.")
    model.script("Fine.")
    system = [{"type": "text", "text": "Be kind."}, {"type": "text", "text": "A long handbook.", **CACHED}]
    fields = [{"type": "text", "text": "Which tea?", **CACHED}]
    await ask(alice_api, {"role": "system", "content": system}, {"role": "user", "content": fields})
    first, *_, last = model.calls[0].messages
    assert first["content"][:3] == [{"type": "text", "text": "You are terse."}, *system]
    assert "<memories>" in first["content"][3]["text"]
    assert last["content"] == fields


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "detail": "low"}},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,AAAA"}},
        {"type": "file", "file": {"file_id": "file-1"}},
        {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
        {"type": "video_url", "video_url": {"url": "https://example.org/a.mp4"}},
    ],
    ids=lambda part: part["type"],
)
async def test_content_parts_of_every_type_reach_the_model(
    alice_api: Api, model: ScriptedModel, part: dict[str, Any]
) -> None:
    parts = [{"type": "text", "text": "What is this?"}, part]
    model.script("A dot.")
    await ask(alice_api, {"role": "user", "content": parts})
    assert model.calls[0].messages[-1]["content"] == parts
    assert (await in_thread(Message.objects.get, role="user")).parts == parts


@pytest.mark.parametrize(
    "choice",
    [
        "required",
        {"type": "function", "function": {"name": "lookup"}},
        {"type": "custom", "custom": {"name": "shell"}},
        {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [LOOKUP]}},
    ],
    ids=str,
)
async def test_with_a_forced_tool_choice_our_tools_are_not_offered(
    alice_api: Api, model: ScriptedModel, choice: Any
) -> None:
    model.script(calls(("lookup", "{}")), "Found.")
    first = await ask(alice_api, "Look it up", tools=[LOOKUP, SHELL], tool_choice=choice)
    assert (names(model.calls[0]), model.calls[0].body(stream=False)["tool_choice"]) == (["lookup", "shell"], choice)
    made = first.json["choices"][0]["message"]
    result = {"role": "tool", "tool_call_id": made["tool_calls"][0]["id"], "content": "42"}
    await ask(alice_api, "Look it up", made, result, tools=[LOOKUP, SHELL], tool_choice="auto")
    assert "add_memory" in names(model.calls[1])


async def test_beside_functions_our_tools_are_not_offered(alice_api: Api, model: ScriptedModel) -> None:
    """OpenAI answers 400: 'functions' and 'tools' cannot both be provided."""
    model.script("Fine.")
    await ask(alice_api, "Look it up", functions=[LOOKUP["function"]], function_call="auto")
    body = model.calls[0].body(stream=False)
    assert (body["functions"], "tools" in body) == ([LOOKUP["function"]], False)


async def test_tool_choice_is_dropped_if_there_are_no_tools(alice_api: Api, model: ScriptedModel) -> None:
    model.script("Fine.")
    assert (await ask(alice_api, "Hi", tool_choice="required")).text == "Fine."
    body = model.calls[0].body(stream=False)
    assert body.keys().isdisjoint({"tools", "tool_choice"})


def _choice(index: int, text: str, finish_reason: str | None = None, **more: Any) -> dict[str, Any]:
    delta = {"content": text, **more}
    return {"index": index, "delta": delta, "message": delta, "finish_reason": finish_reason}


@streamed_and_not
async def test_each_further_choice_is_sent_once_however_many_steps_follow(
    alice_api: Api, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch, streamed: bool
) -> None:
    invented = {"index": 0, "id": "up_0", "type": "function", "function": {"name": "invented", "arguments": "{}"}}
    steps = [
        [_choice(0, "", "tool_calls", tool_calls=[invented]), _choice(1, "B", "stop"), _choice(2, "C", "stop")],
        [_choice(0, "A", "stop"), _choice(1, "B", "stop"), _choice(2, "C", "stop")],
    ]

    async def play(request: ModelRequest) -> AsyncGenerator[dict[str, Any]]:
        for choice in steps.pop(0):
            yield {"choices": [choice]}

    async def complete(request: ModelRequest) -> dict[str, Any]:
        return {"choices": steps.pop(0)}

    monkeypatch.setattr(model, "stream", play)
    monkeypatch.setattr(model, "complete", complete)
    if streamed:
        choices = [choice for chunk in await stream(alice_api, "Hi", n=2) for choice in chunk["choices"]]
        texts = [(choice["index"], text) for choice in choices if (text := choice["delta"].get("content"))]
        assert (steps, sorted(texts)) == ([], [(0, "A"), (1, "B")])
    else:
        answer = await ask(alice_api, "Hi", n=2)
        texts = [(choice["index"], choice["message"]["content"]) for choice in answer.json["choices"]]
        assert (steps, texts) == ([], [(0, "A"), (1, "B")])


async def test_a_stream_of_further_choices_has_the_limit_of_an_answer(
    alice_api: Api, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    settings.ANSWER_BYTES = 1_000

    async def play(request: ModelRequest) -> AsyncGenerator[dict[str, Any]]:
        for _ in range(100):
            yield {"choices": [_choice(1, "B" * 200)]}

    monkeypatch.setattr(model, "stream", play)
    messages = [{"role": "user", "content": "Hi"}]
    _, text = await alice_api.stream(PATH, {"model": "assistant", "messages": messages, "stream": True, "n": 2})
    assert (text.count("B" * 200) < 50, '"code":"too_large"' in text) == (True, True)


MESSAGE = {
    "role": "assistant",
    "content": None,
    "refusal": "No.",
    "annotations": [{"type": "url_citation", "url_citation": {"url": "https://example.org"}}],
    "audio": {"id": "audio_1", "data": "AAAA", "transcript": "Hello.", "expires_at": 1},
}
USAGE = {
    "prompt_tokens": 7,
    "completion_tokens": 3,
    "total_tokens": 10,
    "cost": 0.25,
    "prompt_tokens_details": {"cached_tokens": 4},
    "completion_tokens_details": {"reasoning_tokens": 2},
}
AROUND = {"system_fingerprint": "fp_1", "service_tier": "flex"}
ADD = {"name": "add_memory", "arguments": '{"content": "Is vegetarian.", "target": "user"}'}
SUMMED = {
    **{name: 2 * value for name, value in USAGE.items() if not isinstance(value, dict)},
    "prompt_tokens_details": {"cached_tokens": 8},
    "completion_tokens_details": {"reasoning_tokens": 4},
}


async def test_unstreamed_answers_are_returned_unchanged(
    alice_api: Api, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    logprobs = {"content": [{"token": half, "logprob": -1} for half in "\ud83d\ude00"]}  # a character in two tokens
    steps: list[Any] = [
        {"message": {"role": "assistant", "tool_calls": [{"id": "a", "type": "function", "function": ADD}]}},
        {"message": MESSAGE, "finish_reason": "stop", "logprobs": logprobs, "native_finish_reason": "STOP"},
    ]

    async def complete(request: Any) -> dict[str, Any]:
        return {**AROUND, "choices": [{"index": 0, **steps.pop(0)}], "usage": USAGE}

    monkeypatch.setattr(model, "complete", complete)
    answer = (await ask(alice_api, "Say no")).json
    assert answer.items() >= AROUND.items()
    choice = answer["choices"][0]
    assert choice["message"] == MESSAGE
    assert (choice["logprobs"], choice["native_finish_reason"]) == (logprobs, "STOP")
    assert answer["usage"] == SUMMED


async def test_streamed_answers_are_returned_unchanged(
    alice_api: Api, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    extra_fields = {name: value for name, value in MESSAGE.items() if name not in {"role", "content"}}
    logprobs = {"content": [{"token": "\\xf0", "bytes": [240], "logprob": -1, "top_logprobs": []}]}
    steps: list[list[dict[str, Any]]] = [
        [{"delta": {"tool_calls": [{"index": 0, "id": "a", "type": "function", "function": ADD}]}}],
        [
            *({"delta": {name: value}} for name, value in extra_fields.items()),
            {"delta": {"content": ""}, "logprobs": logprobs},
            {"delta": {"content": "No"}, "content_filter_results": {"hate": {"filtered": False}}},
            {"delta": {}, "finish_reason": "stop", "native_finish_reason": "STOP"},
        ],
    ]

    async def stream_steps(request: Any) -> AsyncGenerator[dict[str, Any]]:
        for choice in steps.pop(0):
            yield {**AROUND, "choices": [{"index": 0, "finish_reason": None, **choice}]}
        yield {**AROUND, "choices": [], "usage": USAGE}

    monkeypatch.setattr(model, "stream", stream_steps)
    chunks = await stream(alice_api, "Say no", stream_options={"include_usage": True})
    assert all(chunk.items() >= AROUND.items() for chunk in chunks[1:])
    choices = [chunk["choices"][0] for chunk in chunks if chunk["choices"]]
    assert {
        name: value for choice in choices for name, value in choice["delta"].items() if name in extra_fields
    } == extra_fields
    assert [choice["logprobs"] for choice in choices if choice.get("logprobs")] == [logprobs]
    (filtered,) = [choice for choice in choices if "content_filter_results" in choice]
    assert (filtered["delta"], filtered["finish_reason"]) == ({"content": "No"}, None)
    assert (choices[-1]["finish_reason"], choices[-1]["native_finish_reason"]) == ("stop", "STOP")
    assert chunks[-1]["usage"] == SUMMED


async def test_further_choices_are_returned(
    alice_api: Api, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    choices = [
        {"index": at, "message": {"role": "assistant", "content": f"{at}"}, "finish_reason": "stop"} for at in (0, 1)
    ]

    async def complete(request: Any) -> dict[str, Any]:
        return {"choices": choices, "usage": USAGE}

    monkeypatch.setattr(model, "complete", complete)
    assert (await ask(alice_api, "Hi", n=2)).json["choices"] == choices


async def test_the_finish_reason_of_a_truncated_answer_is_returned(alice_api: Api, model: ScriptedModel) -> None:
    model.script(Says(pieces=("Half an",), finish_reason="length"), Says(pieces=("H",), finish_reason="content_filter"))
    assert (await ask(alice_api, "Hi")).json["choices"][0]["finish_reason"] == "length"
    assert (await stream(alice_api, "Hi there"))[-1]["choices"][0]["finish_reason"] == "content_filter"
