"""/v1/messages: how Claude Code names its sessions, and what of its requests is no turn"""

import json
from typing import Any

import pytest

from gateway.api.anthropic_answer import assemble
from gateway.models import Agent, Message, Run, Session
from memories.database.access import in_thread
from memories.models import Owner
from tests.conftest import Api
from tests.factories import agent_make, memory_make
from tests.gateway.messages import PATH, asks, result, send, stream
from tests.scripted_model import ScriptedModel, calls

pytestmark = pytest.mark.any_database

ID = "0f1e2d3c-4b5a-4978-8877-665544332211"
LOOKUP = {"name": "lookup", "input_schema": {"type": "object"}}


@pytest.mark.parametrize(
    ("headers", "user_id"),
    [
        ({"x_claude_code_session_id": ID}, None),
        ({}, f"user_abc_account__session_{ID}"),
        ({}, json.dumps({"device_id": "d", "session_id": ID})),
    ],
)
async def test_claude_code_s_session_is_a_session(
    alice_api: Api, agent: Agent, model: ScriptedModel, headers: dict[str, str], user_id: str | None
) -> None:
    model.script("One.", "Two.")
    metadata = {"user_id": user_id} if user_id else {}
    first = await send(alice_api, "hi", headers=headers, metadata=metadata)
    second = await send(alice_api, "something else", headers=headers, metadata=metadata)
    assert first.session == second.session
    session = await in_thread(Session.objects.get)
    assert (session.external_id, session.turns) == (ID, 2)
    assert "metadata" not in model.calls[0].parameters


async def test_its_agents_and_ours_have_sessions_of_their_own(
    alice_api: Api, agent: Agent, model: ScriptedModel
) -> None:
    await in_thread(agent_make, "small")
    model.script("One.", "Two.", "Three.", "Four.")
    headers = {"x_claude_code_session_id": ID}
    main = await send(alice_api, "hi", headers=headers)
    part = await send(alice_api, "Find it", headers={**headers, "x_claude_code_agent_id": "a1"})
    small = await send(alice_api, "hi", model="small", headers=headers)
    assert len({main.session, part.session, small.session}) == 3
    again = await send(alice_api, "more", headers={**headers, "x_claude_code_agent_id": "a1"})
    assert again.session == part.session


@pytest.mark.parametrize("user_id", ["somebody", "{", "[1]", '{"session_id": 3}', f"_session_{'a' * 300}", 5])
async def test_other_users_ids_name_no_session(
    alice_api: Api, agent: Agent, model: ScriptedModel, user_id: Any
) -> None:
    model.script("One.")
    await send(alice_api, "hi", metadata={"user_id": user_id})
    assert (await in_thread(Session.objects.get)).external_id is None


async def test_the_header_of_daybook_wins(alice_api: Api, agent: Agent, model: ScriptedModel) -> None:
    model.script("One.")
    await send(alice_api, "hi", headers={"x_daybook_session": "mine", "x_claude_code_session_id": ID})
    assert (await in_thread(Session.objects.get)).external_id == "mine"


def with_reminder(words: str) -> dict[str, Any]:
    reminder = {"type": "text", "text": f"<system-reminder>\nThe user's notes, at {words}\n</system-reminder>\n"}
    return {"role": "user", "content": [reminder, {"type": "text", "text": words}]}


async def test_reminders_are_nobody_s_words(alice_api: Api, agent: Agent, model: ScriptedModel) -> None:
    model.script("Hello.", "Fine.")
    first = await send(alice_api, with_reminder("hi"))
    assert "at hi" in model.calls[0].messages[0]["content"]
    second = await send(alice_api, "hi", "Hello.", with_reminder("How are you?"))
    assert second.session == first.session  # although the first reminder is gone
    roles = [message["role"] for message in model.calls[1].messages]
    assert roles == ["system", "user", "assistant", "system", "user"]
    assert "at How are you?" in model.calls[1].messages[3]["content"]
    texts = await in_thread(lambda: list(Message.objects.order_by("seq").values_list("text", flat=True)))
    assert texts == ["hi", "Hello.", "How are you?", "Fine."]


async def test_a_reminder_alone_is_a_message(alice_api: Api, agent: Agent, model: ScriptedModel) -> None:
    model.script("Hello.")
    message = with_reminder("hi")
    await send(alice_api, {**message, "content": message["content"][:1]})
    assert model.calls[0].messages[-1] == {"role": "user", "content": message["content"][0]["text"]}


def title() -> dict[str, Any]:
    return {"system": "Generate a concise, sentence-case title (3-7 words) that captures the main topic."}


TASKS: list[tuple[list[Any], dict[str, Any], dict[str, str]]] = [
    (["quota"], {"max_tokens": 1}, {}),
    (["Fix the tests"], title(), {}),
    (["Fix the tests"], {"system": "Analyze if this message indicates a new conversation topic."}, {}),
    (["hi", "Hello.", "[SUGGESTION MODE: Suggest what the user might type next.]"], {"tools": [LOOKUP]}, {}),
    (["<policy_spec>\n# Prefixes\n</policy_spec>\n\nCommand: git status"], {}, {}),
    (["hi", "Hello.", "Your task is to create a detailed summary of the conversation so far, …"], {}, {}),
    (["Whatever it is"], {}, {"x_claude_code_request_class": "auxiliary"}),
]


@pytest.mark.parametrize(("messages", "body", "headers"), TASKS)
async def test_its_own_tasks_are_no_turns(
    alice_api: Api,
    agent: Agent,
    model: ScriptedModel,
    messages: list[Any],
    body: dict[str, Any],
    headers: dict[str, str],
) -> None:
    model.script("Yes.")
    headers = {**headers, "x_claude_code_session_id": ID}
    got = await send(alice_api, *messages, headers=headers, **body)
    assert (got.status, got.text, got.session) == (200, "Yes.", "")
    assert not await in_thread(Session.objects.exists)
    assert model.calls[0].messages[-1] == {"role": "user", "content": messages[-1]}
    assert "You are terse." not in str(model.calls[0].messages)


@pytest.mark.parametrize(
    ("messages", "body"),
    [
        (["hi", "Hello.", "Yes or no?"], {"max_tokens": 1}),
        (["Yes or no?"], {"max_tokens": 1, "tools": [LOOKUP]}),
        (["hi"], {"max_tokens": 2}),
        (["Write a sentence-case title for my essay"], {}),
        (["hi", "Hello.", "more"], title()),
        (["Please summarise: Your task is to create a detailed summary of the conversation so far"], {}),
    ],
)
async def test_what_only_looks_like_one_is_a_turn(
    alice_api: Api, agent: Agent, model: ScriptedModel, messages: list[Any], body: dict[str, Any]
) -> None:
    model.script("Yes.")
    assert (await send(alice_api, *messages, **body)).session
    assert await in_thread(Run.objects.count) == 1


async def test_a_task_is_streamed_with_its_calls(alice_api: Api, agent: Agent, model: ScriptedModel) -> None:
    model.script(calls(("lookup", '{"q": "a"}')))
    events = await stream(alice_api, "[SUGGESTION MODE: now]", tools=[LOOKUP])
    assert events[1]["content_block"]["name"] == "lookup"
    assert events[-2]["delta"]["stop_reason"] == "tool_use"
    model.script("Yes.")
    made = assemble(events)["content"]
    tail = [{"role": "assistant", "content": made}, {"role": "user", "content": [result(made[0])]}]
    assert (await send(alice_api, "[SUGGESTION MODE: now]", *tail, tools=[LOOKUP])).text == "Yes."
    assert not await in_thread(Message.objects.exists)


async def count(api: Api, *messages: Any, **body: Any) -> int:
    status, got = await api.post(f"{PATH}/count_tokens", asks(*messages, **body))
    assert (status, list(got)) == (200, ["input_tokens"])
    return int(got["input_tokens"])


async def test_tokens_are_counted_with_what_daybook_adds(alice_api: Api, alice: Owner, agent: Agent) -> None:
    few = await count(alice_api, "hi")
    assert few > 0
    assert await count(alice_api, "hi " * 400) >= few + 250
    assert await count(alice_api, "hi", tools=[LOOKUP]) > few
    assert await count(alice_api, "hi", system="Be kind.") > few
    await in_thread(memory_make, alice, "Likes tea with milk and sugar.")
    assert await count(alice_api, "hi") > few
    assert await count(alice_api, "quota", max_tokens=1) < few  # a task of the client gets nothing of ours
    assert not await in_thread(Session.objects.exists)
    assert not await in_thread(Run.objects.exists)


async def test_tokens_for_an_agent_that_is_not_there(alice_api: Api, agent: Agent) -> None:
    status, got = await alice_api.post(f"{PATH}/count_tokens", asks("hi", model="other"))
    assert (status, got["error"]["type"]) == (404, "not_found_error")
