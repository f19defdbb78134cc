"""Requests by clients of /v1 that are not new user turns"""

from typing import Any

import pytest

from gateway.models import Agent, Session
from memories.database.access import in_thread
from memories.models import Owner
from reviews.models import ReviewRun
from tests.conftest import Api
from tests.reviews.talk import reviewing_agent
from tests.scripted_model import ScriptedModel, calls

pytestmark = pytest.mark.any_database

PATH = "/v1/chat/completions"
WEATHER = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


async def counts() -> tuple[int, int]:
    """Return the number of turns since the only session's last review, and the number of reviews."""
    session = await in_thread(Session.objects.get)
    return session.turns_since_memory_review, await in_thread(ReviewRun.objects.count)


async def test_results_of_client_tools_are_not_a_new_turn(alice: Owner, alice_api: Api, model: ScriptedModel) -> None:
    await in_thread(reviewing_agent, memory_review_interval=2)
    model.script(calls(("weather", "{}")), "Sunny.")
    body = {"model": "assistant", "messages": [user("How is the weather?")], "tools": [WEATHER]}
    _, first = await alice_api.post(PATH, body)
    assert await counts() == (0, 0)  # the turn has not ended yet
    answer = first["choices"][0]["message"]
    result = {"role": "tool", "tool_call_id": answer["tool_calls"][0]["id"], "content": "sun"}
    status, _ = await alice_api.post(PATH, body | {"messages": [*body["messages"], answer, result]})
    assert (status, await counts()) == (200, (1, 0))


async def test_requesting_another_answer_is_not_a_new_turn(alice: Owner, alice_api: Api, model: ScriptedModel) -> None:
    await in_thread(reviewing_agent, memory_review_interval=3)
    model.script("One.", "Two.", "Two, again.")
    messages = [user("First"), {"role": "assistant", "content": "One."}, user("Second")]
    await alice_api.post(PATH, {"model": "assistant", "messages": messages[:1]})
    for _ in range(2):
        await alice_api.post(PATH, {"model": "assistant", "messages": messages})
    assert await counts() == (2, 0)


async def test_a_temporary_request_is_not_counted(
    alice: Owner, agent: Agent, alice_api: Api, model: ScriptedModel
) -> None:
    await in_thread(reviewing_agent)
    model.script("Hello.")
    body = {"model": "assistant", "messages": [user("I'm vegan.")], "metadata": {"temporary": "true"}}
    await alice_api.post(PATH, body)
    assert await counts() == (0, 0)


async def test_a_clients_request_for_a_title_is_not_counted(alice: Owner, alice_api: Api, model: ScriptedModel) -> None:
    await in_thread(reviewing_agent, memory_review_interval=2)
    model.script("Hello.", "A greeting")
    messages = [user("Hi there")]
    await alice_api.post(PATH, {"model": "assistant", "messages": messages})
    prompt = (
        "### Task:\nGenerate a concise title.\n### Guidelines:\n- Short.\n<chat_history>\nUSER: Hi\n</chat_history>"
    )
    status, _ = await alice_api.post(PATH, {"model": "assistant", "messages": [user(prompt)]})
    assert (status, await counts()) == (200, (1, 0))
