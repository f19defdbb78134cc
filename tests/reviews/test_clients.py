"""What clients of /v1 do that is no new user turn"""

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


async def counted() -> tuple[int, int]:
    """Turns since the last review of the one session, and the number of reviews."""
    session = await in_thread(Session.objects.get)
    return session.turns_since_memory_review, await in_thread(ReviewRun.objects.count)


async def test_the_results_of_a_clients_own_tools_are_no_new_turn(
    alice: Owner, alice_api: Api, model: ScriptedModel
) -> None:
    await in_thread(reviewing_agent, memory_review_interval=2)
    model.script(calls(("weather", "{}")), "Sunny.")
    body = {"model": "assistant", "messages": [user("How is the weather?")], "tools": [WEATHER]}
    _, first = await alice_api.post(PATH, body)
    assert await counted() == (0, 0)  # the turn is not over yet
    asked = first["choices"][0]["message"]
    result = {"role": "tool", "tool_call_id": asked["tool_calls"][0]["id"], "content": "sun"}
    status, _ = await alice_api.post(PATH, body | {"messages": [*body["messages"], asked, result]})
    assert (status, await counted()) == (200, (1, 0))


async def test_asking_for_another_answer_is_no_new_turn(alice: Owner, alice_api: Api, model: ScriptedModel) -> None:
    await in_thread(reviewing_agent, memory_review_interval=3)
    model.script("One.", "Two.", "Two, again.")
    said = [user("First"), {"role": "assistant", "content": "One."}, user("Second")]
    await alice_api.post(PATH, {"model": "assistant", "messages": said[:1]})
    for _ in range(2):
        await alice_api.post(PATH, {"model": "assistant", "messages": said})
    assert await counted() == (2, 0)


async def test_a_temporary_request_is_not_counted(
    alice: Owner, agent: Agent, alice_api: Api, model: ScriptedModel
) -> None:
    await in_thread(reviewing_agent)
    model.script("Hello.")
    body = {"model": "assistant", "messages": [user("I'm vegan.")], "metadata": {"temporary": "true"}}
    await alice_api.post(PATH, body)
    assert await counted() == (0, 0)


async def test_a_clients_request_for_a_title_is_not_counted(alice: Owner, alice_api: Api, model: ScriptedModel) -> None:
    await in_thread(reviewing_agent, memory_review_interval=2)
    model.script("Hello.", "A greeting")
    said = [user("Hi there")]
    await alice_api.post(PATH, {"model": "assistant", "messages": said})
    asked = "### Task:\nGenerate a concise title.\n### Guidelines:\n- Short.\n<chat_history>\nUSER: Hi\n</chat_history>"
    status, _ = await alice_api.post(PATH, {"model": "assistant", "messages": [user(asked)]})
    assert (status, await counted()) == (200, (1, 0))
