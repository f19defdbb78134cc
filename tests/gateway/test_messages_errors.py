"""/v1/messages: every error has Anthropic's form, also those made before the view"""

import asyncio
import json
from typing import Any

import pytest
from asgiref.testing import ApplicationCommunicator

from config.asgi import application
from gateway import sse
from gateway.errors import RequestRefused
from gateway.models import Agent
from memories.database.access import in_thread
from memories.errors import Overloaded, RateLimited
from memories.models import Owner
from tests.conftest import Api
from tests.factories import agent_make, key_make
from tests.gateway.messages import PATH, request_body, send
from tests.scripted_model import ScriptedModel, says

pytestmark = pytest.mark.any_database


async def raw(
    method: str, path: str, body: bytes = b"{}", kind: str = "application/json", **headers: str
) -> tuple[int, Any, dict[str, str]]:
    """A request through the whole of the server: status, JSON, headers."""
    given = {"host": "localhost", "content-type": kind, "content-length": str(len(body)), **headers}
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": b"",
        "headers": [(name.replace("_", "-").encode(), value.encode()) for name, value in given.items()],
    }
    talk = ApplicationCommunicator(application, scope)
    await talk.send_input({"type": "http.request", "body": body})
    start = await talk.receive_output(5)
    answer = await talk.receive_output(5)
    told = {name.decode().lower(): value.decode() for name, value in start["headers"]}
    return start["status"], json.loads(answer["body"]), told


@pytest.mark.parametrize(
    ("method", "path", "kind", "with_key", "expected"),
    [
        ("POST", PATH, "application/json", False, (401, "authentication_error")),
        ("POST", f"{PATH}/count_tokens", "application/json", False, (401, "authentication_error")),
        ("POST", PATH, "text/plain", True, (415, "invalid_request_error")),
        ("GET", PATH, "application/json", True, (405, "invalid_request_error")),
        ("POST", f"{PATH}/batches", "application/json", True, (404, "not_found_error")),
        ("POST", PATH, "application/json", True, (400, "invalid_request_error")),
    ],
)
async def test_errors_made_before_the_view(
    alice: Owner, method: str, path: str, kind: str, with_key: bool, expected: tuple[int, str]
) -> None:
    headers = {"x_api_key": (await in_thread(key_make, alice))[1]} if with_key else {}
    status, body, told = await raw(method, path, kind=kind, x_request_id="mine", **headers)
    assert (status, body["error"]["type"]) == expected
    assert (body["type"], body["request_id"]) == ("error", "mine")
    assert body["error"].keys() == {"type", "message"}
    assert (told["request-id"], told["x-request-id"]) == ("mine", "mine")


async def test_a_body_that_is_too_large(alice: Owner, settings: Any) -> None:
    settings.DAYBOOK_MAX_BODY = 1000
    headers = {"x_api_key": (await in_thread(key_make, alice))[1], "x_request_id": "mine"}
    status, body, told = await raw("POST", PATH, b" " * 2000, **headers)
    assert (status, body["error"]["type"], body["request_id"]) == (413, "request_too_large", "mine")
    assert told["request-id"] == "mine"


async def test_errors_elsewhere_stay_openai_s(alice: Owner) -> None:
    status, body, told = await raw("POST", "/v1/chat/completions")
    assert (status, body["error"]["code"]) == (401, "unauthorized")
    assert "request-id" not in told


@pytest.mark.parametrize(
    ("error", "expected", "words"),
    [
        (RateLimited("Too much.", retry_after="7"), (429, "rate_limit_error"), "Too much."),
        (Overloaded("Busy."), (529, "overloaded_error"), "Busy."),
        (
            RequestRefused("It has 9 tokens.", upstream_code="context_length_exceeded"),
            (400, "invalid_request_error"),
            "prompt is too long: It has 9 tokens.",
        ),
    ],
)
async def test_errors_of_a_turn(
    alice_api: Api, agent: Agent, model: ScriptedModel, error: Exception, expected: tuple[int, str], words: str
) -> None:
    model.script(error)
    got = await send(alice_api, "hi")
    assert (got.error, got.json["error"]["message"]) == (expected, words)
    if got.status == 429:
        assert got.headers["retry-after"] == "7"


@pytest.mark.parametrize(
    "wrong",
    [
        {"stream": "false"},
        {"max_tokens": "9"},
        {"max_tokens": 0},
        {"max_tokens": True},
        {"tools": "zz"},
        {"tools": [7]},
        {"tool_choice": "auto"},
        {"tool_choice": {"type": "tool"}},
        {"stop_sequences": "END"},
        {"messages": [{"role": "user", "content": [{"text": "hi"}, {"type": "text", "text": "there"}]}]},
    ],
)
async def test_fields_of_another_type_are_refused(alice_api: Api, agent: Agent, wrong: dict[str, Any]) -> None:
    assert (await send(alice_api, "hi", **wrong)).error == (400, "invalid_request_error")


async def test_an_agent_that_is_not_there(alice_api: Api, agent: Agent) -> None:
    got = await send(alice_api, "hi", model="claude-opus")
    assert got.error == (404, "not_found_error")
    assert "claude-opus" in got.json["error"]["message"]
    assert "/v1/models" in got.json["error"]["message"]


async def test_what_is_not_there_names_what_is(alice_api: Api) -> None:
    status, body = await alice_api.post(f"{PATH}/batches")
    assert (status, body["error"]["type"]) == (404, "not_found_error")
    assert f"POST {PATH}/count_tokens" in body["error"]["message"]


async def test_keys_that_may_less(alice: Owner, agent: Agent) -> None:
    reads = Api((await in_thread(key_make, alice, read_only=True))[1])
    assert (await send(reads, "hi")).error == (403, "permission_error")
    assert (await reads.post(f"{PATH}/count_tokens", request_body("hi")))[0] == 200
    await in_thread(agent_make, "other")
    limited = Api((await in_thread(key_make, alice, agents=["other"]))[1])
    assert (await send(limited, "hi")).error == (404, "not_found_error")
    assert (await limited.post(f"{PATH}/count_tokens", request_body("hi")))[0] == 404


async def test_a_key_s_rate_holds_here_too(alice: Owner, agent: Agent, model: ScriptedModel) -> None:
    model.script("Hello.")
    api = Api((await in_thread(key_make, alice, requests_per_minute=1))[1])
    assert (await send(api, "hi")).status == 200
    refused = await send(api, "hi")
    assert refused.error == (429, "rate_limit_error")
    assert int(refused.headers["retry-after"]) > 0


async def test_a_silent_stream_sends_pings(
    alice_api: Api, agent: Agent, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sse, "KEEP_ALIVE_SECONDS", 0.01)
    goes_on, streamed = asyncio.Event(), model.stream
    model.script(says("Yes."))

    async def slow(request: Any) -> Any:
        await goes_on.wait()
        async for chunk in streamed(request):
            yield chunk

    monkeypatch.setattr(model, "stream", slow)
    response = await alice_api.raw("POST", PATH, request_body("hi", stream=True))
    async with asyncio.timeout(2):
        assert await anext(response.source) == b'event: ping\ndata: {"type": "ping"}\n\n'
    goes_on.set()
    rest = b"".join([piece async for piece in response.source])
    assert b"event: message_start" in rest
    assert b"event: message_stop" in rest
