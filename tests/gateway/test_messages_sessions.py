"""/v1/messages: sessions of Claude Code, and which of its requests are not turns"""

import json
from typing import Any

import pytest

from gateway.api.anthropic_answer import assemble
from gateway.models import Message, Run, Session
from memories.database.access import in_thread
from memories.models import Owner
from tests.conftest import Api
from tests.factories import agent_make, memory_make
from tests.gateway.messages import PATH, request_body, send, stream, tool_result
from tests.scripted_model import ScriptedModel, calls

pytestmark = [pytest.mark.any_database, pytest.mark.usefixtures("agent")]

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
async def test_a_session_of_claude_code_is_a_session_here(
    alice_api: Api, model: ScriptedModel, headers: dict[str, str], user_id: str | None
) -> None:
    model.script("One.", "Two.")
    metadata = {"user_id": user_id} if user_id else {}
    first = await send(alice_api, "hi", headers=headers, metadata=metadata)
    second = await send(alice_api, "something else", headers=headers, metadata=metadata)
    assert first.session == second.session
    session = await in_thread(Session.objects.get)
    assert (session.external_id, session.turns) == (ID, 2)
    assert "metadata" not in model.calls[0].parameters


async def test_subagents_and_agents_have_separate_sessions(alice_api: Api, model: ScriptedModel) -> None:
    await in_thread(agent_make, "small")
    model.script("One.", "Two.", "Three.", "Four.")
    headers = {"x_claude_code_session_id": ID}
    main = await send(alice_api, "hi", headers=headers)
    part = await send(alice_api, "Find it", headers={**headers, "x_claude_code_agent_id": "a1"})
    small = await send(alice_api, "hi", model="small", headers=headers)
    assert len({main.session, part.session, small.session}) == 3
    again = await send(alice_api, "more", headers={**headers, "x_claude_code_agent_id": "a1"})
    assert again.session == part.session


@pytest.mark.parametrize(
    "user_id", ["somebody", "{", "[1]", '{"session_id": 3}', "[" * 5000, f"_session_{'a' * 300}", 5]
)
async def test_other_user_ids_name_no_session(alice_api: Api, model: ScriptedModel, user_id: Any) -> None:
    model.script("One.")
    await send(alice_api, "hi", metadata={"user_id": user_id})
    assert (await in_thread(Session.objects.get)).external_id is None


@pytest.mark.parametrize("escaped", ["\\ud800", "\\u0000"])
async def test_an_id_that_no_database_stores_still_names_a_session(
    alice_api: Api, model: ScriptedModel, escaped: str
) -> None:
    model.script("One.", "Two.")
    metadata = {"user_id": f'{{"session_id": "a{escaped}"}}'}
    first = await send(alice_api, "hi", metadata=metadata)
    second = await send(alice_api, "again", metadata=metadata)
    assert (first.status, second.status, first.session) == (200, 200, second.session)


async def test_the_daybook_header_takes_precedence(alice_api: Api, model: ScriptedModel) -> None:
    model.script("One.")
    await send(alice_api, "hi", headers={"x_daybook_session": "mine", "x_claude_code_session_id": ID})
    assert (await in_thread(Session.objects.get)).external_id == "mine"


def with_reminder(words: str) -> dict[str, Any]:
    reminder = {"type": "text", "text": f"<system-reminder>\nThe user's notes, at {words}\n</system-reminder>\n"}
    return {"role": "user", "content": [reminder, {"type": "text", "text": words}]}


async def test_reminders_are_not_part_of_the_message(alice_api: Api, model: ScriptedModel) -> None:
    model.script("Hello.", "Fine.")
    first = await send(alice_api, with_reminder("hi"))
    assert "at hi" in model.calls[0].messages[0]["content"]
    second = await send(alice_api, "hi", "Hello.", with_reminder("How are you?"))
    assert second.session == first.session  # although the client no longer sends the first reminder
    roles = [message["role"] for message in model.calls[1].messages]
    assert roles == ["system", "user", "assistant", "system", "user"]
    assert "at How are you?" in model.calls[1].messages[3]["content"]
    texts = await in_thread(lambda: list(Message.objects.order_by("seq").values_list("text", flat=True)))
    assert texts == ["hi", "Hello.", "How are you?", "Fine."]


async def test_a_reminder_alone_is_a_message(alice_api: Api, model: ScriptedModel) -> None:
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
async def test_background_tasks_of_claude_code_are_not_turns(
    alice_api: Api, model: ScriptedModel, messages: list[Any], body: dict[str, Any], headers: dict[str, str]
) -> None:
    model.script("Yes.")
    headers = {**headers, "x_claude_code_session_id": ID}
    answer = await send(alice_api, *messages, headers=headers, **body)
    assert (answer.status, answer.text, answer.session) == (200, "Yes.", "")
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
async def test_a_turn_that_resembles_a_task_is_a_turn(
    alice_api: Api, model: ScriptedModel, messages: list[Any], body: dict[str, Any]
) -> None:
    model.script("Yes.")
    assert (await send(alice_api, *messages, **body)).session
    assert await in_thread(Run.objects.count) == 1


async def test_a_task_with_tool_calls_is_streamed(alice_api: Api, model: ScriptedModel) -> None:
    model.script(calls(("lookup", '{"q": "a"}')))
    events = await stream(alice_api, "[SUGGESTION MODE: now]", tools=[LOOKUP])
    assert events[1]["content_block"]["name"] == "lookup"
    assert events[-2]["delta"]["stop_reason"] == "tool_use"
    model.script("Yes.")
    content = assemble(events)["content"]
    tail = [{"role": "assistant", "content": content}, {"role": "user", "content": [tool_result(content[0])]}]
    assert (await send(alice_api, "[SUGGESTION MODE: now]", *tail, tools=[LOOKUP])).text == "Yes."
    assert not await in_thread(Message.objects.exists)


async def count(api: Api, *messages: Any, **body: Any) -> int:
    status, answer = await api.post(f"{PATH}/count_tokens", request_body(*messages, **body))
    assert (status, list(answer)) == (200, ["input_tokens"])
    return int(answer["input_tokens"])


async def test_token_counts_include_what_daybook_adds(alice_api: Api, alice: Owner) -> None:
    few = await count(alice_api, "hi")
    assert few > 0
    assert await count(alice_api, "hi " * 400) >= few + 250
    assert await count(alice_api, "hi", tools=[LOOKUP]) > few
    assert await count(alice_api, "hi", system="Be kind.") > few
    await in_thread(memory_make, alice, "Likes tea with milk and sugar.")
    assert await count(alice_api, "hi") > few
    assert await count(alice_api, "quota", max_tokens=1) < few  # nothing is added to a task of the client
    assert not await in_thread(Session.objects.exists)
    assert not await in_thread(Run.objects.exists)


async def test_counting_tokens_for_an_unknown_agent_is_not_found(alice_api: Api) -> None:
    status, answer = await alice_api.post(f"{PATH}/count_tokens", request_body("hi", model="other"))
    assert (status, answer["error"]["type"]) == (404, "not_found_error")
