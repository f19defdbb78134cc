"""Custom tools: servers that support only functions get functions, and clients get calls of custom tools."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.models import Agent
from gateway.upstream.custom_tools import CustomCalls, with_functions
from gateway.upstream.dialects import DIALECTS
from gateway.upstream.outgoing import request_body
from tests.conftest import Api
from tests.scripted_model import ScriptedModel
from tests.upstreams.server import RuledServer, Step

pytestmark = pytest.mark.any_database

PATCH = "*** Begin Patch\n+“ä”\n"
GRAMMAR = {"syntax": "lark", "definition": "start: /.+/"}
TOOL = {
    "type": "custom",
    "custom": {"name": "patch", "description": "Edits.", "format": {"type": "grammar", "grammar": GRAMMAR}},
}
FLAT = {"type": "custom", "name": "patch", "description": "Edits.", "format": {"type": "grammar", **GRAMMAR}}
LOOK = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
HI = [{"role": "user", "content": "Hi"}]
STEP = Step(text="Now.", calls=(("look", {"at": "tea"}), ("patch", {"input": PATCH})))


def events(text: str) -> list[dict[str, Any]]:
    lines = [line[6:] for line in text.splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


@pytest.mark.parametrize("kind", ["vllm", "ollama", "mistral"])
async def test_a_server_with_only_functions_serves_custom_tools_in_responses(
    kind: str, alice_api: Api, agent: Agent, serve: Callable[[str], RuledServer]
) -> None:
    server = serve(kind)
    server.script(STEP, Step(text="Done."))
    body = {
        "model": "assistant",
        "input": "Edit it.",
        "tools": [FLAT],
        "tool_choice": {"type": "custom", "name": "patch"},
    }
    _, text = await alice_api.stream("/v1/responses", {**body, "stream": True})
    received = events(text)
    done = next(
        event["item"] for event in received if event["type"] == "response.output_item.done" and "input" in event["item"]
    )
    assert (done["type"], done["name"], done["input"]) == ("custom_tool_call", "patch", PATCH)
    pieces = [event["delta"] for event in received if event["type"] == "response.custom_tool_call_input.delta"]
    assert "".join(pieces) == PATCH
    offered = next(tool for tool in server.bodies[0]["tools"] if tool["function"]["name"] == "patch")
    assert offered["type"] == "function"
    assert offered["function"]["parameters"]["required"] == ["input"]
    assert "start: /.+/" in offered["function"]["description"]
    assert server.bodies[0]["tool_choice"]["type"] == "function"
    response = received[-1]["response"]
    results = {"type": "custom_tool_call_output", "call_id": done["call_id"], "output": "Edited."}
    _, answer = await alice_api.post(
        "/v1/responses", {**body, "input": [results], "previous_response_id": response["id"], "tool_choice": "auto"}
    )
    assert answer["output"][-1]["content"][0]["text"] == "Done."
    sent_calls = [call for message in server.bodies[1]["messages"] for call in message.get("tool_calls") or ()]
    assert {"name": "patch", "arguments": json.dumps({"input": PATCH}, ensure_ascii=False)} in [
        call["function"] for call in sent_calls
    ]
    assert server.refused == []


async def test_custom_calls_come_back_in_an_answer_that_is_not_streamed(
    alice_api: Api, agent: Agent, serve: Callable[[str], RuledServer]
) -> None:
    serve("vllm").script(STEP)
    _, answer = await alice_api.post("/v1/responses", {"model": "assistant", "input": "Edit it.", "tools": [FLAT]})
    assert [item["type"] for item in answer["output"]][-1] == "custom_tool_call"
    assert answer["output"][-1]["input"] == PATCH


def test_calls_of_custom_tools_in_a_completion_are_converted() -> None:
    made = {"id": "up_0", "type": "function", "function": {"name": "patch", "arguments": json.dumps({"input": PATCH})}}
    other = {**made, "id": "up_1", "function": {"name": "look", "arguments": "{}"}}
    answer = {
        "choices": [{"message": {"role": "assistant", "tool_calls": [made, other]}, "finish_reason": "tool_calls"}]
    }
    calls = CustomCalls(frozenset({"patch"})).convert_completion(answer)["choices"][0]["message"]["tool_calls"]
    assert calls == [other, {"id": "up_0", "type": "custom", "custom": {"name": "patch", "input": PATCH}}]


@pytest.mark.parametrize("path", ["/v1/responses", "/v1/chat/completions"])
async def test_for_an_unknown_server_the_clients_api_decides(
    path: str, alice_api: Api, agent: Agent, model: ScriptedModel
) -> None:
    model.script("Yes.")
    tools, content = ([FLAT], {"input": "Hi"}) if "responses" in path else ([TOOL], {"messages": HI})
    await alice_api.post(path, {"model": "assistant", "tools": tools, **content})
    offered = model.calls[0].body(stream=False)["tools"][0]
    assert offered["type"] == ("function" if "responses" in path else "custom")


def test_a_server_that_supports_custom_tools_gets_them() -> None:
    for name in ("openai", "azure"):
        body = {"model": "m", "messages": [], "tools": [TOOL]}
        assert request_body(body, DIALECTS[name], upstream="default")["tools"] == [TOOL]


def fragment(index: int, arguments: str, name: str = "", call_id: str = "") -> dict[str, Any]:
    named = {"id": call_id, "type": "function"} if call_id else {}
    return {"index": index, **named, "function": {"arguments": arguments, **({"name": name} if name else {})}}


def chunk(*pieces: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"tool_calls": list(pieces)}, "finish_reason": finish}]}


@given(st.text(), st.integers(1, 5))
def test_an_input_in_fragments_is_joined(text: str, size: int) -> None:
    arguments = json.dumps({"input": text})
    fragments = [arguments[at : at + size] for at in range(0, len(arguments), size)]
    calls = CustomCalls(frozenset({"patch"}))
    converted = [calls.convert_chunk(chunk(fragment(0, "", "patch", "up_0"), fragment(1, "{}", "look", "up_1")))]
    converted += [calls.convert_chunk(chunk(fragment(0, part))) for part in fragments]
    last = calls.convert_chunk({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
    assert [chunk["choices"][0]["delta"] for chunk in converted] == [
        {"tool_calls": [fragment(1, "{}", "look", "up_1")]},
        *({} for _ in fragments),
    ]
    (whole,) = last["choices"][0]["delta"]["tool_calls"]
    assert whole == {"index": 0, "id": "up_0", "type": "custom", "custom": {"name": "patch", "input": text}}
    assert calls.flush() is None


def test_a_stream_without_a_finish_reason_loses_no_call() -> None:
    calls = CustomCalls(frozenset({"patch"}))
    calls.convert_chunk(chunk(fragment(0, '{"input": "a"}', "patch", "up_0")))
    flushed = calls.flush()
    assert flushed is not None
    assert flushed["choices"][0]["delta"]["tool_calls"][0]["custom"] == {"name": "patch", "input": "a"}


@pytest.mark.parametrize("arguments", ["plain words", '{"other": 1}', "[" * 100_000, '{"input": 7}'])
def test_arguments_of_another_form_become_the_input(arguments: str) -> None:
    calls = CustomCalls(frozenset({"patch"}))
    converted = calls.convert_chunk(chunk(fragment(0, arguments, "patch", "up_0"), finish="tool_calls"))
    assert converted["choices"][0]["delta"]["tool_calls"][0]["custom"]["input"] == arguments


@pytest.mark.parametrize("malformed", [None, "x", 7, {"type": "custom"}, {"type": "custom", "custom": 7}])
def test_malformed_tools_and_calls_are_passed_through(malformed: Any) -> None:
    body = {
        "tools": [malformed],
        "tool_choice": malformed,
        "messages": [{"role": "assistant", "tool_calls": [malformed]}, malformed],
    }
    assert with_functions(body) == body
