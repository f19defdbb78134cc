"""Keep-alive comments in idle streams: proxies and clients close connections that stay silent"""

import asyncio
import json
from typing import Any

import pytest

from gateway import sse
from gateway.models import Agent, Run, Session
from memories.database.access import in_thread
from memories.errors import UpstreamError
from tests.conftest import Api
from tests.gateway.v1 import PATH
from tests.scripted_model import ScriptedModel, calls

pytestmark = pytest.mark.any_database

BODY = {"model": "assistant", "messages": [{"role": "user", "content": "Hi"}], "stream": True}


@pytest.fixture(autouse=True)
def _frequent_keep_alives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "KEEP_ALIVE_SECONDS", 0.02)


class SlowModel:
    """A model whose steps wait for `may_continue`."""

    def __init__(self, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch) -> None:
        self.may_continue = asyncio.Event()
        self._scripted_stream = model.stream
        monkeypatch.setattr(model, "stream", self.stream)

    async def stream(self, request: Any) -> Any:
        await self.may_continue.wait()
        async for chunk in self._scripted_stream(request):
            yield chunk


@pytest.fixture
def slow(model: ScriptedModel, monkeypatch: pytest.MonkeyPatch) -> SlowModel:
    return SlowModel(model, monkeypatch)


async def rest_of(response: Any) -> list[str]:
    return [piece.decode() async for piece in response.source]


def data_of(pieces: list[str]) -> list[Any]:
    lines = [line.removeprefix("data: ") for piece in pieces for line in piece.split("\n") if line.startswith("data:")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


async def test_a_slow_answer_starts_with_comments(
    alice_api: Api, agent: Agent, model: ScriptedModel, slow: SlowModel
) -> None:
    model.script("Hello.")
    response = await alice_api.raw("POST", PATH, BODY)
    assert await anext(response.source) == sse.KEEP_ALIVE
    assert await anext(response.source) == sse.KEEP_ALIVE
    slow.may_continue.set()
    pieces = await rest_of(response)
    assert pieces[-1] == "data: [DONE]\n\n"
    assert "Hello." in "".join(choice["delta"].get("content") or "" for x in data_of(pieces) for choice in x["choices"])
    assert response.headers["x-daybook-session"]


async def test_an_error_after_comments_is_a_chunk(
    alice_api: Api, agent: Agent, model: ScriptedModel, slow: SlowModel
) -> None:
    model.script(UpstreamError("The model server answered with an error (500)."))
    response = await alice_api.raw("POST", PATH, BODY)
    slow.may_continue.set()
    pieces = await rest_of(response)
    assert response.status_code == 200
    assert data_of(pieces)[-1]["error"]["code"] == "upstream_error"
    assert (await in_thread(Run.objects.get)).state == "failed"


async def test_a_client_that_disconnects_meanwhile_stops_its_run(
    alice_api: Api, agent: Agent, model: ScriptedModel, slow: SlowModel
) -> None:
    response = await alice_api.raw("POST", PATH, BODY)
    await response.source.aclose()
    run = await in_thread(Run.objects.get)
    assert (run.state, run.trace["stopped_by"]) == ("stopped", "client")


async def test_a_stop_meanwhile_ends_the_stream_with_an_error(
    alice_api: Api, agent: Agent, model: ScriptedModel, slow: SlowModel
) -> None:
    response = await alice_api.raw("POST", PATH, BODY)
    run = await in_thread(Run.objects.get)
    stop = f"/api/sessions/{run.session_id}/turns/{run.pk}/stop"
    assert (await alice_api.post(stop))[1]["state"] == "stopped"
    assert data_of(await rest_of(response))[-1]["error"]["code"] == "conflict"


async def test_a_native_turn_is_kept_alive_too(
    alice_api: Api, session: Session, model: ScriptedModel, slow: SlowModel
) -> None:
    model.script(calls(("add_memory", '{"content": "Is vegetarian."}')), "Noted.")
    response = await alice_api.raw("POST", f"/api/sessions/{session.pk}/turns", {"content": "Hi", "stream": True})
    assert (await anext(response.source)).startswith(b"event: started")
    assert await anext(response.source) == sse.KEEP_ALIVE
    slow.may_continue.set()
    assert [data for data in data_of(await rest_of(response)) if data.get("state")][-1]["content"] == "Noted."


async def test_a_fast_answer_has_no_comments(
    alice_api: Api, agent: Agent, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sse, "KEEP_ALIVE_SECONDS", 10.0)
    model.script("Hello.")
    _, text = await alice_api.stream(PATH, BODY)
    assert ": keep-alive" not in text
