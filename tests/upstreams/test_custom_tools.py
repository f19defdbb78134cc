"""Custom tools: servers that support only functions get functions, and clients get calls of custom tools."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.models import Agent
from gateway.upstream.calls import CallAccumulator
from gateway.upstream.custom_tools import with_functions
from gateway.upstream.dialects import DIALECTS
from gateway.upstream.kept import SizeBudget
from gateway.upstream.outgoing import request_body
from memories.storable import storable_text
from tests.conftest import Api
from tests.scripted_model import ScriptedModel
from tests.upstreams.server import Serve, Step

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
    kind: str, alice_api: Api, agent: Agent, serve: Serve
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
    alice_api: Api, agent: Agent, serve: Serve
) -> None:
    serve("vllm").script(STEP)
    _, answer = await alice_api.post("/v1/responses", {"model": "assistant", "input": "Edit it.", "tools": [FLAT]})
    assert [item["type"] for item in answer["output"]][-1] == "custom_tool_call"
    assert answer["output"][-1]["input"] == PATCH


async def test_parallel_calls_of_a_server_that_does_not_number_them_stay_apart(
    alice_api: Api, agent: Agent, serve: Serve
) -> None:
    serve("gemini").script(Step(calls=(("patch", {"input": "a"}), ("patch", {"input": "b"}), ("look", {"at": "tea"}))))
    tools = [FLAT, {"type": "function", "name": "look", "parameters": {"type": "object"}}]
    body = {"model": "assistant", "input": "Edit it.", "tools": tools, "stream": True}
    _, text = await alice_api.stream("/v1/responses", body)
    items = events(text)[-1]["response"]["output"]
    assert [(item["type"], item.get("input") or item.get("arguments")) for item in items] == [
        ("function_call", '{"at": "tea"}'), ("custom_tool_call", "a"), ("custom_tool_call", "b"),
    ]  # fmt: skip


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


def collected(*pieces: dict[str, Any]) -> list[tuple[bool, str, str]]:
    """Return the calls in a stream of these pieces as (custom, name, arguments)."""
    calls = CallAccumulator(SizeBudget(1000), lambda _: None)
    calls.custom_names = frozenset({"patch"})
    for piece in pieces:
        calls.add(piece, whole=False)
    assert all(call.held for call in calls.calls if call.name == "patch")
    calls.by_id()
    return [(call.custom, call.name, "".join(call.arguments)) for call in calls.calls]


def fragment(index: int, arguments: str, name: str = "") -> dict[str, Any]:
    return {"index": index, "function": {"arguments": arguments, **({"name": name} if name else {})}}


@given(st.text(), st.integers(1, 5))
def test_an_input_in_fragments_is_joined(text: str, size: int) -> None:
    arguments = json.dumps({"input": text})
    fragments = [arguments[at : at + size] for at in range(0, len(arguments), size)]
    pieces = [fragment(0, "", "patch"), fragment(1, "{}", "look"), *(fragment(0, part) for part in fragments)]
    assert collected(*pieces) == [(True, "patch", storable_text(text)), (False, "look", "{}")]


@pytest.mark.parametrize("arguments", ["plain words", '{"other": 1}', "[" * 100_000, '{"input": 7}'])
def test_arguments_of_another_form_become_the_input(arguments: str) -> None:
    assert collected(fragment(0, arguments, "patch")) == [(True, "patch", arguments)]


@pytest.mark.parametrize("malformed", [{"type": "custom"}, {"type": "custom", "custom": 7}])
def test_malformed_tools_and_calls_are_passed_through(malformed: dict[str, Any]) -> None:
    messages = [{"role": "assistant", "tool_calls": [malformed]}]
    body = {"tools": [malformed], "tool_choice": malformed, "messages": messages}
    assert with_functions(body) == body
    assert with_functions({"tool_choice": 7}) == {"tool_choice": 7}
