"""A client that drops a tool call, or sends its result together with a new message, stays in its session"""

from typing import Any

import pytest

from gateway.models import Agent, Message, Run, Session
from memories.database.access import in_thread
from memories.models import ThreadRecord
from prompts.conversation import NO_RESULT
from tests.conftest import Api
from tests.gateway.client_tools import FIRST, LOOKUP, SECOND, USER, results, tool_calls_of
from tests.gateway.v1 import Answer, Chat, ask
from tests.scripted_model import Says, ScriptedModel, calls, says

INSTEAD = {"role": "user", "content": "Never mind"}


async def states() -> list[tuple[int, str, bool]]:
    rows = Run.objects.order_by("id").values_list("turn", "state", "superseded")
    return await in_thread(lambda: list(rows))


async def tool_messages() -> list[str]:
    rows = Message.objects.filter(role="tool").order_by("seq").values_list("text", flat=True)
    return await in_thread(lambda: list(rows))


async def waiting_turn(api: Api, model: ScriptedModel, *before: Any, text: str = "One moment.") -> Answer:
    """Start a turn that waits for the result of one call."""
    model.script(Says(pieces=(text,) if text else (), calls=(FIRST,)))
    first = await ask(api, *before, USER, tools=[LOOKUP])
    assert first.json["choices"][0]["finish_reason"] == "tool_calls"
    return first


@pytest.mark.any_database
@pytest.mark.parametrize("text", ["One moment.", ""])
@pytest.mark.parametrize("resent", ["nothing", "the call", "its text"])
async def test_a_dropped_call_stays_in_its_session(
    alice_api: Api, agent: Agent, model: ScriptedModel, text: str, resent: str
) -> None:
    first = await waiting_turn(alice_api, model, text=text)
    message = first.json["choices"][0]["message"]
    between = {"nothing": [], "the call": [message], "its text": [{"role": "assistant", "content": text}]}[resent]
    model.script("As you like.", "Yes.")
    second = await ask(alice_api, USER, *between, INSTEAD, tools=[LOOKUP])
    assert (second.status, second.session, second.text) == (200, first.session, "As you like.")
    assert second.run != first.run
    assert await states() == [(1, "completed", False), (2, "completed", False)]
    assert await tool_messages() == [NO_RESULT]
    session = await in_thread(Session.objects.get)
    assert (session.turns, session.turns_since_memory_review) == (2, 2)
    answer = {"role": "assistant", "content": "As you like."}
    third = await ask(alice_api, USER, *between, INSTEAD, answer, {"role": "user", "content": "Good"})
    assert third.session == first.session
    assert await in_thread(Session.objects.count) == 1


async def test_the_text_of_the_waiting_run_is_recorded(alice_api: Api, agent: Agent, model: ScriptedModel) -> None:
    await waiting_turn(alice_api, model)
    model.script("As you like.")
    await ask(alice_api, USER, {"role": "assistant", "content": "One moment."}, INSTEAD)
    assert await in_thread(ThreadRecord.objects.count) == 2
    assert (await in_thread(Run.objects.earliest, "id")).text == "One moment."


async def test_results_followed_by_a_message_are_kept(alice_api: Api, agent: Agent, model: ScriptedModel) -> None:
    first = await waiting_turn(alice_api, model)
    model.script("So it is.")
    second = await ask(alice_api, USER, *results(first, "A"), INSTEAD, tools=[LOOKUP])
    assert (second.session, second.text) == (first.session, "So it is.")
    assert await tool_messages() == ["A"]
    assert [message["role"] for message in model.calls[-1].messages[1:]] == ["user", "assistant", "tool", "user"]


async def test_replacing_a_turn_supersedes_its_waiting_run(alice_api: Api, agent: Agent, model: ScriptedModel) -> None:
    chat = Chat(alice_api, model)
    await chat.say("hi", "Hello.")
    first = await waiting_turn(alice_api, model, *chat.messages)
    model.script("Something else.")
    second = await ask(alice_api, *chat.messages, INSTEAD, tools=[LOOKUP])
    assert second.session == first.session
    assert await states() == [(1, "completed", False), (2, "stopped", True), (2, "completed", False)]
    assert (await in_thread(Session.objects.get)).turns_since_memory_review == 2


async def test_resending_the_turn_without_results_replaces_the_waiting_run(
    alice_api: Api, agent: Agent, model: ScriptedModel
) -> None:
    chat = Chat(alice_api, model)
    await chat.say("hi", "Hello.")
    first = await waiting_turn(alice_api, model, *chat.messages)
    model.script("Found without it.")
    second = await ask(alice_api, *chat.messages, USER)
    assert second.session == first.session
    assert await states() == [(1, "completed", False), (2, "stopped", True), (2, "completed", False)]
    late = await ask(alice_api, *chat.messages, USER, *results(first, "A"), model="nobody")
    assert late.status == 404


async def test_a_named_session_continues_with_the_next_message_alone(
    alice_api: Api, agent: Agent, model: ScriptedModel
) -> None:
    named = {"x-daybook-session": "mine"}
    model.script(calls(FIRST, SECOND), says("As you like."))
    first = await ask(alice_api, USER, headers=named, tools=[LOOKUP])
    assert len(tool_calls_of(first)) == 2
    second = await ask(alice_api, INSTEAD, headers=named)
    assert second.session == first.session
    assert await states() == [(1, "completed", False), (2, "completed", False)]
    assert await tool_messages() == [NO_RESULT] * 2


async def test_identical_waiting_requests_stay_separate_sessions(
    alice_api: Api, agent: Agent, model: ScriptedModel
) -> None:
    first = await waiting_turn(alice_api, model)
    second = await waiting_turn(alice_api, model)
    assert first.session != second.session
    assert await states() == [(1, "awaiting_client_tools", False)] * 2


async def test_the_native_api_can_continue_the_session(alice_api: Api, agent: Agent, model: ScriptedModel) -> None:
    """Every call that is sent upstream must have a result."""
    first = await waiting_turn(alice_api, model)
    model.script("As you like.", "Yes.")
    await ask(alice_api, USER, INSTEAD)
    status, _ = await alice_api.post(f"/api/sessions/{first.session}/turns", {"content": "And now?"})
    assert status == 200
    sent = model.calls[-1].messages
    made = [call["id"] for message in sent for call in message.get("tool_calls", ())]
    assert made == [message["tool_call_id"] for message in sent if message["role"] == "tool"] != []


async def test_a_waiting_turn_ends_with_its_session_and_its_results_begin_a_new_one(
    alice_api: Api, agent: Agent, model: ScriptedModel
) -> None:
    model.script(calls(FIRST), "It is 5.")
    asked = await ask(alice_api, USER, tools=[LOOKUP])
    status, ended = await alice_api.post(f"/api/sessions/{asked.session}/end")
    assert (status, ended["state"], ended["turns"]) == (200, "ended", 1)
    _, turn = await alice_api.get(f"/api/sessions/{asked.session}/turns/{asked.run}")
    assert turn["state"] == "completed"
    answered = await ask(alice_api, USER, *results(asked, "5"), tools=[LOOKUP])
    assert (answered.status, answered.text) == (200, "It is 5.")
    assert answered.session != asked.session
