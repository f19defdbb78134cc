"""POST /v1/messages: turns in the format of the Anthropic Messages API"""

import json
from typing import Any

import pytest

from gateway.api.openai_body import short_name
from gateway.models import Run, Session
from memories.database.access import in_thread
from memories.errors import UpstreamError
from memories.models import Memory
from tests.conftest import Api
from tests.gateway.client_tools import ADD, FIRST, SECOND
from tests.gateway.messages import PATH, request_body, send, stream, tool_result
from tests.scripted_model import Says, ScriptedModel, calls, says

pytestmark = [pytest.mark.any_database, pytest.mark.usefixtures("agent")]

LOOKUP = {"name": "lookup", "description": "Looks up.", "input_schema": {"type": "object"}}


async def test_a_message_is_answered(alice_api: Api, model: ScriptedModel) -> None:
    model.script(says("Hel", "lo."))
    response = await send(alice_api, "hi", system="Be kind.", temperature=0.5, stop_sequences=["END"], top_k=3)
    assert response.status == 200
    assert response.json == {
        "id": response.json["id"],
        "type": "message",
        "role": "assistant",
        "model": "assistant",
        "content": [{"type": "text", "text": "Hello."}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {
            "input_tokens": 7,
            "output_tokens": 3,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
        },
    }
    assert response.json["id"].startswith("msg_")
    assert response.headers["request-id"] == response.headers["x-request-id"]
    asked = model.calls[0]
    assert asked.parameters == {"max_tokens": 500, "temperature": 0.5, "stop": ["END"], "top_k": 3}
    assert asked.messages == (
        {"role": "system", "content": "You are terse.\n\nBe kind."},
        {"role": "user", "content": "hi"},
    )
    run = await in_thread(Run.objects.get)
    assert (str(run.pk), str(run.session_id), run.text) == (response.run, response.session, "Hello.")


async def test_the_events_of_a_stream_are_in_order(alice_api: Api, model: ScriptedModel) -> None:
    model.script(says("Hel", "lo."))
    events = await stream(alice_api, "hi")
    assert [event["type"] for event in events] == [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    assert [event["delta"] for event in events[2:4]] == [
        {"type": "text_delta", "text": "Hel"},
        {"type": "text_delta", "text": "lo."},
    ]
    assert events[-2]["delta"] == {"stop_reason": "end_turn", "stop_sequence": None}
    assert (events[-2]["usage"]["input_tokens"], events[-2]["usage"]["output_tokens"]) == (7, 3)


async def test_a_stream_begins_with_an_estimate_of_the_input_tokens(alice_api: Api, model: ScriptedModel) -> None:
    """Cline and similar clients read the size of a conversation from this event only."""
    model.script("Hello.", "Hello.", "A title.")
    asked: list[tuple[str, dict[str, Any]]] = [
        ("hi", {}),
        ("hi " * 400, {"tools": [LOOKUP]}),
        (
            "Please write a 5-10 word title for the following conversation: hi",
            {"metadata": {"task": "title_generation"}},
        ),
    ]
    starts = [(await stream(alice_api, text, **body))[0]["message"]["usage"] for text, body in asked]
    few, many, title = [usage["input_tokens"] for usage in starts]
    assert 0 < few < title < 100 < 300 < many < 1_000
    assert all(usage["output_tokens"] == 0 for usage in starts)


async def test_a_run_waits_for_the_tools_of_the_client_and_resumes(alice_api: Api, model: ScriptedModel) -> None:
    model.script(Says(pieces=("One moment.",), calls=(FIRST, SECOND)), "Found it.", "Yes.")
    first = await send(alice_api, "Look it up", tools=[LOOKUP])
    text, one, two = first.json["content"]
    assert (first.json["stop_reason"], text["text"]) == ("tool_use", "One moment.")
    assert [(call["type"], call["name"], call["input"]) for call in (one, two)] == [
        ("tool_use", "lookup", {"q": "a"}),
        ("tool_use", "lookup", {"q": "b"}),
    ]
    assert model.calls[0].tools[0] == {
        "type": "function",
        "function": {"name": "lookup", "description": "Looks up.", "parameters": {"type": "object"}},
    }
    said = {"role": "assistant", "content": first.json["content"]}
    results = {"role": "user", "content": [tool_result(one, "A"), tool_result(two, [{"type": "text", "text": "B"}])]}
    second = await send(alice_api, "Look it up", said, results, tools=[LOOKUP])
    assert (second.run, second.session, second.text) == (first.run, first.session, "Found it.")
    assert second.json["id"] != first.json["id"]  # clients merge messages with the same ID
    assert second.json["usage"]["output_tokens"] == 3
    assert [(sent["role"], sent.get("content")) for sent in model.calls[1].messages[-2:]] == [
        ("tool", "A"),
        ("tool", "B"),
    ]
    done = {"role": "assistant", "content": second.json["content"]}
    third = await send(alice_api, "Look it up", said, results, done, {"role": "user", "content": "Good"})
    assert third.session == first.session
    assert (await in_thread(Session.objects.get)).turns == 2


async def test_tool_names_longer_than_64_characters_are_shortened_upstream(
    alice_api: Api, model: ScriptedModel
) -> None:
    name = "mcp__" + "very_" * 20 + "long"
    tools = [{**LOOKUP, "name": name}]
    upstream_name = short_name(name)
    assert len(upstream_name) == 64
    model.script(calls((upstream_name, "{}")), "Found.")
    first = await send(alice_api, "Look", tools=tools, tool_choice={"type": "tool", "name": name})
    (use,) = first.json["content"]
    assert (use["name"], model.calls[0].tools[0]["function"]["name"]) == (name, upstream_name)
    assert model.calls[0].parameters["tool_choice"]["function"]["name"] == upstream_name
    said = {"role": "assistant", "content": [use]}
    second = await send(alice_api, "Look", said, {"role": "user", "content": [tool_result(use, "A")]}, tools=tools)
    assert (second.text, second.run) == ("Found.", first.run)
    assert model.calls[1].messages[2]["tool_calls"][0]["function"]["name"] == upstream_name


async def test_text_beside_results_starts_a_new_turn_unless_it_is_a_reminder(
    alice_api: Api, model: ScriptedModel
) -> None:
    model.script(calls(FIRST), calls(SECOND), "Stopped.")
    first = await send(alice_api, "Look it up", tools=[LOOKUP])
    reminder = {"type": "text", "text": "<system-reminder>\nNo todos.\n</system-reminder>"}
    tail = [
        {"role": "assistant", "content": first.json["content"]},
        {"role": "user", "content": [tool_result(first.json["content"][0]), reminder]},
    ]
    second = await send(alice_api, "Look it up", *tail, tools=[LOOKUP])
    assert second.run == first.run
    assert model.calls[1].messages[-1]["content"] == f"42\n\n{reminder['text']}"
    tail += [
        {"role": "assistant", "content": second.json["content"]},
        {"role": "user", "content": [tool_result(second.json["content"][0]), {"type": "text", "text": "Enough."}]},
    ]
    tail[-1]["content"].append(reminder)
    third = await send(alice_api, "Look it up", *tail, tools=[LOOKUP])
    assert (third.session, third.text) == (first.session, "Stopped.")
    assert third.run != first.run
    assert (await in_thread(Session.objects.get)).turns == 2


async def test_our_calls_are_executed_and_hidden(alice_api: Api, model: ScriptedModel) -> None:
    model.script(calls(ADD, FIRST), "Done.")
    first = await send(alice_api, "Look it up", tools=[LOOKUP])
    (call,) = first.json["content"]
    assert call["name"] == "lookup"
    assert await in_thread(Memory.objects.filter(content="Is vegetarian.").exists)
    tail = [{"role": "assistant", "content": [call]}, {"role": "user", "content": [tool_result(call)]}]
    assert (await send(alice_api, "Look it up", *tail, tools=[LOOKUP])).text == "Done."


async def test_a_command_is_answered_by_the_gateway(alice_api: Api, model: ScriptedModel) -> None:
    response = await send(alice_api, "/memory help")
    assert "/memory view" in response.text
    assert response.json["stop_reason"] == "end_turn"
    events = await stream(alice_api, "/memory help")
    assert "/memory view" in "".join(
        event["delta"]["text"] for event in events if "index" in event and "delta" in event
    )
    assert model.calls == []


async def test_a_temporary_session_neither_reads_nor_writes_memory(alice_api: Api, model: ScriptedModel) -> None:
    model.script("Hello.")
    await send(alice_api, "I am vegetarian", metadata={"temporary": "true"})
    assert (await in_thread(Session.objects.get)).temporary
    assert model.calls[0].tools == ()


async def test_a_failure_during_a_stream_ends_it_with_an_error_event(alice_api: Api, model: ScriptedModel) -> None:
    model.script(calls(ADD), Says(pieces=("Well",), calls=(ADD,)), UpstreamError("It is down."))
    _, text = await alice_api.stream(PATH, request_body("hi", stream=True))
    name, data = text.strip().split("\n\n")[-1].split("\n")
    assert name == "event: error"
    error_event = json.loads(data.removeprefix("data: "))
    assert (error_event["type"], error_event["error"]["type"], error_event["error"]["message"]) == (
        "error",
        "api_error",
        "It is down.",
    )
    assert len(error_event["error"]["details"]["memory_changes"]) == 1
