"""Refusals, which models send in a separate field: the text becomes the answer in every API and in the transcript"""

import pytest

from gateway.models import Agent, Message, Run
from memories.database.access import in_thread
from tests.conftest import Api
from tests.gateway.v1 import ask, stream
from tests.scripted_model import Says, ScriptedModel

NO = "I can't help with that."
REFUSED = {"role": "assistant", "content": None, "refusal": NO}


@pytest.fixture(autouse=True)
def refusing_model(model: ScriptedModel) -> None:
    model.script(Says(refuses=NO), "Gladly.")


async def native(api: Api, content: str, session: str = "") -> tuple[str, str]:
    """Return the answer of a turn and its session."""
    if not session:
        _, created = await api.post("/api/sessions", {"agent": "assistant"})
        session = created["id"]
    status, turn = await api.post(f"/api/sessions/{session}/turns", {"content": content})
    assert status == 200, turn
    return turn["content"], session


async def test_the_native_api_shows_a_refusal_and_resends_it(
    alice_api: Api, agent: Agent, model: ScriptedModel
) -> None:
    said, session = await native(alice_api, "Hack it")
    assert said == NO
    await native(alice_api, "Bake it", session)
    assert model.calls[1].messages[-2] == {"role": "assistant", "content": NO}


async def test_the_messages_api_returns_a_refusal_as_text(alice_api: Api, agent: Agent, model: ScriptedModel) -> None:
    body = {"model": "assistant", "max_tokens": 9, "messages": [{"role": "user", "content": "Hack it"}]}
    status, message = await alice_api.post("/v1/messages", body)
    assert (status, message["content"]) == (200, [{"type": "text", "text": NO}])
    assert (await in_thread(Run.objects.get)).text == NO
    model.script()
    await ask(alice_api, "Bake it")


@pytest.mark.parametrize("streamed", [False, True])
async def test_chat_completions_keep_the_refusal_field_and_find_the_session(
    alice_api: Api, agent: Agent, model: ScriptedModel, streamed: bool
) -> None:
    if streamed:
        deltas = [chunk["choices"][0]["delta"] for chunk in await stream(alice_api, "Hack it")]
        assert [delta["refusal"] for delta in deltas if "refusal" in delta] == [NO]
        assert not any(delta.get("content") for delta in deltas)
    else:
        answer = await ask(alice_api, "Hack it")
        assert answer.json["choices"][0]["message"] == REFUSED
    first = await in_thread(Run.objects.get)
    answer = await ask(alice_api, "Hack it", REFUSED, "Bake it")
    assert answer.session == str(first.session_id)
    assert model.calls[1].messages[-2] == {"role": "assistant", "content": NO}


async def test_a_response_contains_the_refusal_and_is_continued_with_it(
    alice_api: Api, agent: Agent, model: ScriptedModel
) -> None:
    _, response = await alice_api.post("/v1/responses", {"model": "assistant", "input": "Hack it"})
    assert response["output"][0]["content"] == [{"type": "refusal", "refusal": NO}]
    _, stored = await alice_api.get(f"/v1/responses/{response['id']}")
    assert stored == response
    body = {"model": "assistant", "input": "Bake it", "previous_response_id": response["id"]}
    status, _ = await alice_api.post("/v1/responses", body)
    assert status == 200
    assert model.calls[1].messages[-2] == {"role": "assistant", "content": NO}


async def test_a_refusal_resent_as_an_item_becomes_text(alice_api: Api, agent: Agent, model: ScriptedModel) -> None:
    _, response = await alice_api.post("/v1/responses", {"model": "assistant", "input": "Hack it"})
    items = [{"role": "user", "content": "Hack it"}, *response["output"], {"role": "user", "content": "Bake it"}]
    await alice_api.post("/v1/responses", {"model": "assistant", "input": items})
    assert model.calls[1].messages[-2] == {"role": "assistant", "content": NO}
    assert await in_thread(Message.objects.values("session_id").distinct().count) == 1
