"""gateway.upstream.client: whatever was built once, a request is the one that the SDK itself would send."""

import threading
from typing import Any

import httpx2
import openai
import pytest

from gateway.upstream import client as module
from gateway.upstream.client import UpstreamClient

GIVEN: dict[str, Any] = {"base_url": "http://127.0.0.1:9/v1/", "api_key": "k"}
PATH = "/chat/completions"
Sent = tuple[dict[str, Any], dict[str, Any]]


class Server(httpx2.AsyncBaseTransport):
    """Keeps the requests, and answers each with `answer`, or fails with it."""

    def __init__(self) -> None:
        self.requests: list[httpx2.Request] = []
        self.answer: httpx2.Response | Exception = httpx2.Response(200, json={})

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def seen(self) -> tuple[Any, ...]:
        request = self.requests[-1]
        headers = {(name.lower(), value) for name, value in request.headers.multi_items()}
        return request.method, str(request.url), headers, request.content, dict(request.extensions)


def _asked(body: dict[str, Any], headers: dict[str, str], **more: Any) -> Sent:
    return body, {"headers": headers, "query": {}, "limits": openai.Timeout(None, connect=3.0), **more}


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def client(server: Server) -> UpstreamClient:
    return UpstreamClient(**GIVEN, http_client=openai.DefaultAsyncHttpxClient(transport=server))


async def _open(client: UpstreamClient, asked: Sent) -> httpx2.Response:
    return await client.opened(PATH, asked[0], **asked[1])


async def _of_the_sdk(asked: Sent) -> tuple[Any, ...]:
    server = Server()
    sdk = openai.AsyncOpenAI(**GIVEN, max_retries=0, http_client=openai.DefaultAsyncHttpxClient(transport=server))
    body, given = asked
    options: Any = {"headers": given["headers"], "params": given["query"], "timeout": given["limits"]}
    await sdk.post(PATH, body=body, options=options, cast_to=dict)
    return server.seen()


REQUESTS = [
    _asked({"model": "m", "messages": []}, {"x-request-id": "1"}),
    _asked({"model": "m", "messages": [{"role": "user", "content": "grüße “你好” \n"}]}, {"x-request-id": "22"}),
    _asked({"model": "m"}, {"x-request-id": "3", "traceparent": "00-a-b-01"}),
    _asked({"model": "m"}, {"x-request-id": "4", "traceparent": "00-c-d-01"}),
    _asked({"model": "m"}, {"api-key": "other"}),
    _asked({"model": "m"}, {"api-key": "another"}),
    _asked({"model": "m"}, {}, query={"api-version": "1"}),
    _asked({"model": "m"}, {}, query={"api-version": "2"}),
    _asked({"model": "m"}, {}, limits=openai.Timeout(None, connect=9.0)),
]


async def test_each_request_is_that_of_the_sdk(client: UpstreamClient, server: Server) -> None:
    for asked in (*REQUESTS, *REQUESTS):
        await _open(client, asked)
        assert server.seen() == await _of_the_sdk(asked)


LONG_BODIES = (
    {"prompt": "é" * 600_000},
    {"input": ["a"] * 501},
    {"messages": [{"role": "user", "content": "a"}] * 501},
    {"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}] * 501}]},
)


async def test_a_long_body_is_written_beside_the_event_loop(
    client: UpstreamClient, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[bool] = []

    def as_bytes(body: dict[str, Any]) -> bytes:
        written.append(threading.current_thread() is threading.main_thread())
        return original(body)

    original = module._as_bytes
    monkeypatch.setattr(module, "_as_bytes", as_bytes)
    await _open(client, REQUESTS[0])  # the SDK's own
    for body in (REQUESTS[1][0], *LONG_BODIES):
        asked = _asked(body, {"x-request-id": "1"})
        await _open(client, asked)
        assert server.seen() == await _of_the_sdk(asked)
    assert written == [True, False, False, False, False]


async def test_a_new_key_is_used_at_once(client: UpstreamClient, server: Server) -> None:
    for key in ("k", "new"):
        client.api_key = key
        for _ in range(2):
            await _open(client, REQUESTS[0])
            assert server.requests[-1].headers["authorization"] == f"Bearer {key}"


async def test_cookies_are_those_of_now(client: UpstreamClient, server: Server) -> None:
    client._client.cookies.set("route", "a", domain="127.0.0.1")
    await _open(client, REQUESTS[0])
    assert server.requests[-1].headers["cookie"] == "route=a"
    client._client.cookies.set("route", "b", domain="127.0.0.1")
    await _open(client, REQUESTS[0])
    assert server.requests[-1].headers["cookie"] == "route=b"
    client._client.cookies.clear()
    await _open(client, REQUESTS[0])
    assert "cookie" not in server.requests[-1].headers


async def test_what_is_no_number_in_json_is_refused(client: UpstreamClient) -> None:
    for _ in range(2):
        with pytest.raises(ValueError, match="not JSON compliant"):
            await _open(client, _asked({"temperature": float("nan")}, {}))
        await _open(client, _asked({"temperature": 1.0}, {}))


@pytest.mark.parametrize(
    ("answer", "raised"),
    [
        (httpx2.Response(429, headers={"retry-after": "7"}, json={"error": {"message": "no"}}), openai.APIStatusError),
        (httpx2.Response(503, json={}), openai.APIStatusError),
        (httpx2.ConnectTimeout("slow"), openai.APITimeoutError),
        (httpx2.ConnectError("refused"), openai.APIConnectionError),
    ],
)
async def test_a_failure_is_that_of_the_sdk_and_nothing_is_asked_twice(
    client: UpstreamClient, server: Server, answer: httpx2.Response | Exception, raised: type[Exception]
) -> None:
    for known in (False, True):
        if known:
            server.answer = httpx2.Response(200, json={})
            await _open(client, REQUESTS[0])
        server.answer, asked_before = answer, len(server.requests)
        with pytest.raises(raised) as failed:
            await _open(client, REQUESTS[0])
        assert len(server.requests) == asked_before + 1
        if isinstance(failed.value, openai.APIStatusError) and isinstance(answer, httpx2.Response):
            found = failed.value.status_code, failed.value.response.content
            assert found == (answer.status_code, answer.content)


async def test_a_redirect_is_followed_each_time(client: UpstreamClient, server: Server) -> None:
    class Moved(Server):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            self.requests.append(request)
            moved = httpx2.Response(307, headers={"location": "/elsewhere"})
            return httpx2.Response(200, json={}) if request.url.path == "/elsewhere" else moved

    moved = Moved()
    client = UpstreamClient(**GIVEN, http_client=openai.DefaultAsyncHttpxClient(transport=moved))
    for _ in range(2):
        await _open(client, REQUESTS[0])
    assert [request.url.path for request in moved.requests] == ["/v1/chat/completions", "/elsewhere"] * 2
