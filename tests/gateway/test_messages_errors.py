"""/v1/messages: every error has Anthropic's format, including those raised before the view"""

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
from memories.errors import Overloaded, RateLimited, UpstreamError
from memories.models import Owner
from tests.conftest import Api
from tests.factories import agent_make, key_make
from tests.gateway.messages import PATH, request_body, send
from tests.scripted_model import ScriptedModel, says

pytestmark = pytest.mark.any_database


async def raw(
    method: str, path: str, body: bytes = b"{}", content_type: str = "application/json", **headers: str
) -> tuple[int, Any, dict[str, str]]:
    """Send a request through the whole ASGI application. Return status, JSON and headers."""
    all_headers = {"host": "localhost", "content-type": content_type, "content-length": str(len(body)), **headers}
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": b"",
        "headers": [(name.replace("_", "-").encode(), value.encode()) for name, value in all_headers.items()],
    }
    communicator = ApplicationCommunicator(application, scope)
    await communicator.send_input({"type": "http.request", "body": body})
    start = await communicator.receive_output(5)
    answer = await communicator.receive_output(5)
    response_headers = {name.decode().lower(): value.decode() for name, value in start["headers"]}
    return start["status"], json.loads(answer["body"]), response_headers


JSON = "application/json"


@pytest.mark.parametrize(
    ("method", "path", "content_type", "with_key", "expected"),
    [
        ("POST", PATH, JSON, False, (401, "authentication_error")),
        ("POST", f"{PATH}/count_tokens", JSON, False, (401, "authentication_error")),
        ("POST", PATH, "text/plain", True, (415, "invalid_request_error")),
        ("GET", PATH, JSON, True, (405, "invalid_request_error")),
        ("POST", f"{PATH}/batches", JSON, True, (404, "not_found_error")),
        ("POST", PATH, JSON, True, (400, "invalid_request_error")),
        ("POST", PATH, JSON, True, (413, "request_too_large")),
        # With the header of Anthropic's SDK
        ("POST", "/v1/files", JSON, False, (401, "authentication_error")),
        ("GET", "/v1/models", JSON, False, (401, "authentication_error")),
        ("GET", "/v1/models/no-such-agent", JSON, True, (404, "not_found_error")),
        ("GET", "/v1/files", JSON, True, (404, "not_found_error")),
        ("GET", "/v1/nothing/", JSON, True, (404, "not_found_error")),
        ("DELETE", "/v1/models", JSON, True, (405, "invalid_request_error")),
        ("POST", "/v1/files", "text/plain", True, (404, "not_found_error")),
        ("POST", "/v1/files", JSON, True, (413, "request_too_large")),
    ],
)
async def test_errors_before_the_view_have_anthropics_format(
    alice: Owner, settings: Any, method: str, path: str, content_type: str, with_key: bool, expected: tuple[int, str]
) -> None:
    settings.DAYBOOK_MAX_BODY = 1000
    headers = {"x_api_key": (await in_thread(key_make, alice))[1]} if with_key else {}
    if not path.startswith(PATH):
        headers["anthropic_version"] = "2023-06-01"
    content = b" " * 2000 if expected[0] == 413 else b"{}"
    status, body, response_headers = await raw(method, path, content, content_type, x_request_id="mine", **headers)
    assert (status, body["error"]["type"]) == expected
    assert (body["type"], body["request_id"]) == ("error", "mine")
    assert body["error"].keys() == {"type", "message"}
    assert (response_headers["request-id"], response_headers["x-request-id"]) == ("mine", "mine")


@pytest.mark.parametrize("path", ["/api/nothing", "/mcp"])
async def test_the_other_apis_have_their_own_error_format(alice: Owner, path: str) -> None:
    _, body, response_headers = await raw("POST", path, anthropic_version="2023-06-01")
    assert body["error"]["code"] == "unauthorized"
    assert "request-id" not in response_headers


async def test_other_paths_keep_openais_error_format(alice: Owner) -> None:
    status, body, response_headers = await raw("POST", "/v1/chat/completions")
    assert (status, body["error"]["code"]) == (401, "unauthorized")
    assert "request-id" not in response_headers


@pytest.mark.parametrize(
    ("error", "expected", "words"),
    [
        (RateLimited("Too much.", retry_after=7), (429, "rate_limit_error"), "Too much."),
        (Overloaded("Busy."), (529, "overloaded_error"), "Busy."),
        (UpstreamError("It is down."), (502, "api_error"), "It is down."),
        (
            RequestRefused("It has 9 tokens.", upstream_code="context_length_exceeded"),
            (400, "invalid_request_error"),
            "prompt is too long: It has 9 tokens.",
        ),
    ],
)
async def test_errors_of_a_turn_have_anthropics_format(
    alice_api: Api, agent: Agent, model: ScriptedModel, error: Exception, expected: tuple[int, str], words: str
) -> None:
    model.script(error, error)
    response = await send(alice_api, "hi")
    assert (response.error, response.json["error"]["message"]) == (expected, words)
    if response.status == 429:
        assert response.headers["retry-after"] == "7"
    status, text = await alice_api.stream(PATH, request_body("hi", stream=True))
    assert (status, json.loads(text)["error"]) == (expected[0], {"type": expected[1], "message": words})


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"messages": []}, "messages"),
        ({"model": ""}, "model"),
        ({"messages": [{"role": "robot", "content": "hi"}]}, "messages[0]"),
        ({"messages": [{"role": "user", "content": 3}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "without text"),
        ({"messages": [{"role": "user", "content": " "}]}, "empty"),
        (
            {
                "messages": [
                    {"role": "user", "content": [{"type": "image", "source": {"type": "file", "file_id": "f"}}]}
                ]
            },
            "base64 or url",
        ),
        ({"tools": [{"input_schema": {}}]}, "tools[0].name"),
        ({"tool_choice": {"type": "some"}}, "auto, any, tool, none"),
        ({"compaction": {"type": "summarize"}}, "`compaction` is not supported"),
        ({"messages": [{"role": "user", "content": [{"text": "hi"}, {"type": "text", "text": "there"}]}]}, "its type"),
        ({"stream": "false"}, "`stream`"),
        ({"max_tokens": "9"}, "`max_tokens`"),
        ({"max_tokens": 0}, "`max_tokens`"),
        ({"max_tokens": True}, "`max_tokens`"),
        ({"tools": "zz"}, "`tools`"),
        ({"tools": [7]}, "tools[0]"),
        ({"tool_choice": "auto"}, "`tool_choice`"),
        ({"tool_choice": {"type": "tool"}}, "no name of a tool"),
        ({"stop_sequences": "END"}, "`stop_sequences`"),
    ],
)
async def test_errors_name_the_invalid_field(alice_api: Api, agent: Agent, body: dict[str, Any], words: str) -> None:
    status, response = await alice_api.post(PATH, {**request_body("hi"), **body})
    assert (status, response["type"], response["error"]["type"]) == (400, "error", "invalid_request_error")
    assert words in response["error"]["message"]


async def test_an_unknown_agent_is_not_found(alice_api: Api, agent: Agent) -> None:
    response = await send(alice_api, "hi", model="claude-opus")
    assert response.error == (404, "not_found_error")
    assert "claude-opus" in response.json["error"]["message"]
    assert "/v1/models" in response.json["error"]["message"]


async def test_an_unknown_path_lists_the_existing_ones(alice_api: Api) -> None:
    status, body = await alice_api.post(f"{PATH}/batches")
    assert (status, body["error"]["type"]) == (404, "not_found_error")
    assert f"POST {PATH}/count_tokens" in body["error"]["message"]


async def test_read_only_and_limited_keys_are_enforced(alice: Owner, agent: Agent) -> None:
    reader = Api((await in_thread(key_make, alice, read_only=True))[1])
    assert (await send(reader, "hi")).error == (403, "permission_error")
    assert (await reader.post(f"{PATH}/count_tokens", request_body("hi")))[0] == 200
    await in_thread(agent_make, "other")
    limited = Api((await in_thread(key_make, alice, agents=["other"]))[1])
    assert (await send(limited, "hi")).error == (404, "not_found_error")
    assert (await limited.post(f"{PATH}/count_tokens", request_body("hi")))[0] == 404


async def test_the_rate_limit_of_a_key_applies(alice: Owner, agent: Agent, model: ScriptedModel) -> None:
    model.script("Hello.")
    api = Api((await in_thread(key_make, alice, requests_per_minute=1))[1])
    assert (await send(api, "hi")).status == 200
    refused = await send(api, "hi")
    assert refused.error == (429, "rate_limit_error")
    assert int(refused.headers["retry-after"]) > 0


async def test_an_idle_stream_sends_pings(
    alice_api: Api, agent: Agent, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sse, "KEEP_ALIVE_SECONDS", 0.01)
    may_continue, scripted_stream = asyncio.Event(), model.stream
    model.script(says("Yes."))

    async def slow(request: Any) -> Any:
        await may_continue.wait()
        async for chunk in scripted_stream(request):
            yield chunk

    monkeypatch.setattr(model, "stream", slow)
    response = await alice_api.raw("POST", PATH, request_body("hi", stream=True))
    async with asyncio.timeout(2):
        assert await anext(response.source) == b'event: ping\ndata: {"type": "ping"}\n\n'
    may_continue.set()
    rest = b"".join([piece async for piece in response.source])
    assert b"event: message_start" in rest
    assert b"event: message_stop" in rest
