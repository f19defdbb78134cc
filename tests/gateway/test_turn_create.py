"""POST /api/sessions/{id}/turns"""

import json
from typing import Any

import pytest

from gateway.models import Message, Run, Session
from memories.database.access import in_thread
from memories.errors import UpstreamError
from memories.models import Memory, Owner
from tests.conftest import Api
from tests.factories import agent_make, session_make
from tests.gateway.native import Turns, turns
from tests.scripted_model import ScriptedModel, calls, says

__all__ = ["turns"]  # a fixture


async def test_a_turn_is_answered_and_stored(turns: Turns, model: ScriptedModel) -> None:
    model.script(says("Hel", "lo."))
    status, turn = await turns.send()
    assert (status, turn["state"], turn["content"]) == (200, "completed", "Hello.")
    assert turn["usage"]["total_tokens"] == 10
    stored = await in_thread(lambda: list(Message.objects.order_by("seq").values_list("role", "text")))
    assert stored == [("user", "Hi"), ("assistant", "Hello.")]


async def test_the_transcript_is_sent(turns: Turns, model: ScriptedModel) -> None:
    model.script("One.", "Two.")
    await turns.send("First")
    await turns.send("Second")
    assert [(m["role"], m["content"]) for m in model.calls[1].messages] == [
        ("system", "You are terse."),
        ("user", "First"),
        ("assistant", "One."),
        ("user", "Second"),
    ]


async def test_a_turn_is_streamed(turns: Turns, model: ScriptedModel) -> None:
    model.script(says("Hel", "lo."))
    status, body = await turns.api.stream(turns.path(), {"content": "Hi", "stream": True})
    assert status == 200
    names = [line.removeprefix("event: ") for line in body.splitlines() if line.startswith("event: ")]
    assert (names[0], names[-1]) == ("started", "done")
    assert '"completed"' in body


async def test_a_turn_is_streamed_as_html(turns: Turns, model: ScriptedModel) -> None:
    model.script(says("**Hel", "lo** <b>", "\n\n- x"))
    _, body = await turns.api.stream(turns.path(), {"content": "Hi", "stream": True, "render": "html"})
    events = [line.removeprefix("event: ") for line in body.splitlines() if line.startswith("event: ")]
    assert set(events) == {"started", "html", "done"}
    shown: dict[int, str] = {}
    for line in body.splitlines():
        data = json.loads(line.removeprefix("data: ")) if line.startswith("data: ") else {}
        for block in data.get("blocks", ()):
            shown[block["block"]] = shown.get(block["block"], "")[: block["keep"]] + block["html"]
    assert shown == {0: "<p><strong>Hello</strong> &lt;b&gt;</p>", 1: "<ul>\n<li>x</li>\n</ul>"}
    run = await in_thread(Run.objects.get)
    response = await turns.api.raw("GET", turns.path({"id": run.pk}, "/events?render=html&after=9"), None)
    again = b"".join([piece async for piece in response.streaming_content]).decode()
    assert "<strong>Hello</strong>" in again


async def test_a_failed_upstream_keeps_the_message_and_the_session(turns: Turns, model: ScriptedModel) -> None:
    model.script(UpstreamError("The model server answered with an error (500).", status=500), "Fine.")
    status, body = await turns.send()
    assert (status, body["error"]["code"]) == (502, "upstream_error")
    run = await in_thread(Run.objects.get)
    assert (run.state, run.error["code"]) == ("failed", "upstream_error")
    assert await in_thread(Message.objects.filter(role="user", text="Hi").exists)
    status, turn = await turns.send("Again")
    assert (status, turn["content"]) == (200, "Fine.")


async def test_memory_tools_run_and_the_turn_lists_the_change(turns: Turns, model: ScriptedModel) -> None:
    model.script(calls(("add_memory", '{"content": "Is vegetarian.", "target": "user"}')), "Noted.")
    status, turn = await turns.send("I'm vegetarian")
    assert (status, turn["content"]) == (200, "Noted.")
    assert [(c["action"], c["after"]) for c in turn["memory_changes"]] == [("add", "Is vegetarian.")]
    assert '"ok": true' in model.calls[1].messages[-1]["content"]


async def test_a_session_of_another_owner_is_not_found(
    charlie_api: Api, session: Session, model: ScriptedModel
) -> None:
    status, body = await Turns(charlie_api, session).send()
    assert (status, body["error"]["code"]) == (404, "not_found")


async def test_an_empty_message_is_refused(turns: Turns, model: ScriptedModel) -> None:
    status, body = await turns.send(" \n")
    assert (status, body["error"]["code"]) == (400, "invalid_request")


@pytest.mark.parametrize("name", ["web_search", "add_memory"])
async def test_a_call_of_an_unknown_tool_is_answered_with_an_error(
    alice: Owner, alice_api: Api, model: ScriptedModel, name: str
) -> None:
    session = await in_thread(lambda: session_make(alice, agent_make("plain", tools=[])))
    model.script(calls((name, '{"content": "Likes tea."}')), "Without it, then.")
    status, turn = await Turns(alice_api, session).send()
    assert (status, turn["state"], turn["content"]) == (200, "completed", "Without it, then.")
    result = model.calls[1].messages[-1]
    assert (result["role"], json.loads(result["content"])["error"]) == ("tool", "unknown_tool")
    assert (turn["memory_changes"], await in_thread(Memory.objects.exists)) == ([], False)


async def test_an_unknown_tool_is_answered_beside_calls_of_our_own(turns: Turns, model: ScriptedModel) -> None:
    model.script(calls(("web_search", "{}"), ("add_memory", '{"content": "Likes tea."}')), "Done.")
    _, turn = await turns.send()
    assert (turn["state"], [change["after"] for change in turn["memory_changes"]]) == ("completed", ["Likes tea."])
    call_message, *results = model.calls[1].messages[-3:]
    assert {call["id"] for call in call_message["tool_calls"]} == {message["tool_call_id"] for message in results}
    assert {json.loads(message["content"])["ok"] for message in results} == {True, False}


async def test_the_result_for_an_unknown_tool_names_the_others(turns: Turns, model: ScriptedModel) -> None:
    model.script(calls(("remember" * 1000, "{}")), "Done.")
    await turns.send()
    message = json.loads(model.calls[1].messages[-1]["content"])["message"]
    assert "There are: add_memory, delete_memory, get_memories, read, search_memories, update_memory." in message
    assert len(message) < 300


@pytest.mark.parametrize("name", ["functions.add_memory", "default_api:add_memory", "add_memory<|channel|>commentary"])
@pytest.mark.parametrize("client_tools", [[], [{"type": "function", "function": {"name": "look", "parameters": {}}}]])
@pytest.mark.parametrize("streamed", [False, True])
async def test_what_models_write_around_the_name_of_our_tool_is_ignored(
    turns: Turns, model: ScriptedModel, name: str, client_tools: list[Any], streamed: bool
) -> None:
    model.script(calls((name, '{"content": "Likes tea."}')), "Done.")
    body = {"content": "Hi", "tools": client_tools, "stream": streamed}
    status, answer = await (turns.api.stream if streamed else turns.api.post)(turns.path(), body)
    assert (status, "Done." in str(answer)) == (200, True)
    assert await in_thread(lambda: [memory.content for memory in Memory.objects.all()]) == ["Likes tea."]


async def test_a_client_tool_of_that_name_has_precedence(turns: Turns, model: ScriptedModel) -> None:
    model.script(calls(("functions.add_memory", '{"content": "Likes tea."}')))
    tools = [{"type": "function", "function": {"name": "functions.add_memory", "parameters": {}}}]
    _, turn = await turns.send("Hi", tools=tools)
    assert (turn["state"], len(turn["tool_calls"])) == ("awaiting_client_tools", 1)
    assert not await in_thread(Memory.objects.exists)
