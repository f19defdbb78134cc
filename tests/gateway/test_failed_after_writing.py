"""A turn that fails after its model wrote to memory: the error, the turn and the page list what was written"""

import json
from typing import Any

import pytest
from django.test import Client

from gateway.chat.labels import ERROR_WORDS
from gateway.models import Agent, Run, Session
from gateway.turns.engine import Turn
from memories.database.access import in_thread
from memories.errors import DomainError, UpstreamError, UpstreamTimeout
from memories.models import Memory, Owner
from tests.conftest import Api
from tests.gateway.v1 import PATH, ask
from tests.pages import client_of, html_of, text_of
from tests.scripted_model import Says, ScriptedModel, calls

pytestmark = pytest.mark.any_database

ADD = calls(("add_memory", '{"content": "Is vegetarian.", "target": "user"}'))
BODY = {"model": "assistant", "messages": [{"role": "user", "content": "Hi"}]}


def fault(kind: type[DomainError] = UpstreamError) -> DomainError:
    return kind("The model server is not well.")


async def assert_undoable(api: Api, error: Any) -> None:
    (change,) = error["details"]["memory_changes"]
    assert (change["action"], change["after"]) == ("add", "Is vegetarian.")
    assert (await api.post(f"/api/changes/{change['change_set']}/undo"))[0] == 200
    assert not await in_thread(Memory.objects.filter(deleted_at=None).exists)


@pytest.mark.parametrize("streamed", [False, True])
async def test_the_v1_error_lists_the_writes(
    alice_api: Api, agent: Agent, model: ScriptedModel, streamed: bool
) -> None:
    model.script(ADD, fault())
    response = await ask(alice_api, "I'm vegetarian", stream=streamed)
    assert (response.status, response.code) == (502, "upstream_error")
    await assert_undoable(alice_api, response.json["error"])


async def test_the_last_chunk_lists_the_writes(alice_api: Api, agent: Agent, model: ScriptedModel) -> None:
    model.script(Says(pieces=("One moment.",), calls=ADD.calls), fault())
    status, text = await alice_api.stream(PATH, {**BODY, "stream": True})
    assert (status, '"memory_changes":[{"action":"add"' in text) == (200, True)


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_native_turn_lists_the_writes(
    alice_api: Api, session: Session, model: ScriptedModel, streamed: bool
) -> None:
    model.script(ADD, fault())
    path, event = f"/api/sessions/{session.pk}/turns", ""
    if streamed:
        _, text = await alice_api.stream(path, {"content": "Hi", "stream": True})
        event = text.strip().rpartition("data: ")[2]
        assert '"memory_changes": [{"action": "add"' in event
    else:
        await assert_undoable(alice_api, (await alice_api.post(path, {"content": "Hi"}))[1]["error"])
    turn = (await alice_api.get(f"{path}/{(await in_thread(Run.objects.get)).pk}"))[1]
    assert (turn["state"], [change["after"] for change in turn["memory_changes"]]) == ("failed", ["Is vegetarian."])
    assert "Is vegetarian." not in str(turn["error"]), "a forgotten memory would stay in the error"
    events = (await alice_api.raw("GET", f"{path}/{turn['id']}/events")).streaming_content
    later = b"".join([piece async for piece in events]).decode().strip().rpartition("data: ")[2]
    assert '"memory_changes": [{"action": "add"' in later
    assert not streamed or json.loads(later) == json.loads(event)


async def test_an_internal_error_lists_the_writes(
    alice_api: Api, agent: Agent, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(turn: Turn, *args: Any) -> None:
        raise KeyError("secret")

    monkeypatch.setattr(Turn, "_record_step", fail)
    model.script(ADD)
    response = await ask(alice_api, "I'm vegetarian")
    assert (response.status, response.code) == (500, "internal_error")
    assert "secret" not in str(response.json)
    await assert_undoable(alice_api, response.json["error"])


async def test_writes_made_before_waiting_for_the_client_are_listed(
    alice_api: Api, agent: Agent, model: ScriptedModel
) -> None:
    lookup = {"type": "function", "function": {"name": "lookup"}}
    model.script(calls(*ADD.calls, ("lookup", "{}")), fault())
    first = await ask(alice_api, "I'm vegetarian", tools=[lookup])
    made = first.json["choices"][0]["message"]
    result = {"role": "tool", "tool_call_id": made["tool_calls"][0]["id"], "content": "42"}
    response = await ask(alice_api, "I'm vegetarian", made, result, tools=[lookup])
    assert (response.status, response.run) == (502, first.run)
    await assert_undoable(alice_api, response.json["error"])


async def test_an_error_without_writes_lists_none(alice_api: Api, agent: Agent, model: ScriptedModel) -> None:
    model.script(calls(("search_memories", '{"query": "tea"}')), fault())
    assert "memory_changes" not in (await ask(alice_api, "Hi")).json["error"]["details"]


@pytest.mark.parametrize("kind", [UpstreamError, UpstreamTimeout])
async def test_the_page_shows_the_writes_with_undo(
    alice: Owner, alice_api: Api, session: Session, model: ScriptedModel, kind: type[DomainError]
) -> None:
    model.script(ADD, fault(kind))
    await alice_api.post(f"/api/sessions/{session.pk}/turns", {"content": "I'm vegetarian"})
    run = await in_thread(Run.objects.get)
    page: Client = await in_thread(client_of, alice)
    for path in (f"/c/{session.pk}/", f"/fragments/turn/{session.pk}/{run.pk}/"):
        html = await in_thread(html_of, page, path)
        turn = html[html.index('<section class="turn" id=') :].split("</section>")[0]
        assert "data-undo" in turn
        assert "Memory saved" in text_of(turn)
        assert "Is vegetarian." in text_of(turn)
        assert "Nothing was saved" not in turn
        assert "Your message is kept" in text_of(turn)
    assert "Nothing was saved" in ERROR_WORDS["upstream_timeout"].rest
