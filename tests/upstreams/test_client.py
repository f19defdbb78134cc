"""gateway.upstream.client: although it builds requests itself, each equals the one that the SDK would send, except that
it accepts no compression."""

import threading
from typing import Any

import httpx2
import openai
import pytest

from gateway.upstream.client import MAX_COOKIES, UpstreamClient
from gateway.upstream.request import ModelRequest

CLIENT_OPTIONS: dict[str, Any] = {"base_url": "http://127.0.0.1:9/v1/", "api_key": "k"}
PATH = "/chat/completions"
Call = tuple[dict[str, Any], dict[str, Any]]


class Server(httpx2.AsyncBaseTransport):
    """Records the requests, and answers each with `answer` or raises it."""

    def __init__(self) -> None:
        self.requests: list[httpx2.Request] = []
        self.answer: httpx2.Response | Exception = httpx2.Response(200, json={})

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def last_request(self) -> tuple[Any, ...]:
        request = self.requests[-1]
        headers = {(name.lower(), value) for name, value in request.headers.multi_items()}
        return request.method, str(request.url), headers, request.content, dict(request.extensions)


def _call(body: dict[str, Any], headers: dict[str, str], **more: Any) -> Call:
    return body, {"headers": headers, "query": {}, "limits": openai.Timeout(None, connect=3.0), **more}


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def client(server: Server) -> UpstreamClient:
    return UpstreamClient(**CLIENT_OPTIONS, http_client=openai.DefaultAsyncHttpxClient(transport=server))


async def _open(client: UpstreamClient, call: Call) -> httpx2.Response:
    return await client.opened(PATH, lambda: call[0], **call[1])


async def _sdk_request(call: Call) -> tuple[Any, ...]:
    server = Server()
    http_client = openai.DefaultAsyncHttpxClient(transport=server, headers={"accept-encoding": "identity"})
    sdk = openai.AsyncOpenAI(**CLIENT_OPTIONS, max_retries=0, http_client=http_client)
    body, arguments = call
    options: Any = {"headers": arguments["headers"], "params": arguments["query"], "timeout": arguments["limits"]}
    await sdk.post(PATH, body=body, options=options, cast_to=dict)
    return server.last_request()


REQUESTS = [
    _call({"model": "m", "messages": []}, {"x-request-id": "1"}),
    _call({"model": "m", "messages": [{"role": "user", "content": "grüße “你好” \n"}]}, {"x-request-id": "22"}),
    _call({"model": "m"}, {"x-request-id": "3", "traceparent": "00-a-b-01"}),
    _call({"model": "m"}, {"x-request-id": "4", "traceparent": "00-c-d-01"}),
    _call({"model": "m"}, {"api-key": "other"}),
    _call({"model": "m"}, {"api-key": "another"}),
    _call({"model": "m"}, {}, query={"api-version": "1"}),
    _call({"model": "m"}, {}, query={"api-version": "2"}),
    _call({"model": "m"}, {}, limits=openai.Timeout(None, connect=9.0)),
]


async def test_each_request_equals_that_of_the_sdk(client: UpstreamClient, server: Server) -> None:
    for call in (*REQUESTS, *REQUESTS):
        await _open(client, call)
        assert server.last_request() == await _sdk_request(call)


def _said(*contents: Any) -> dict[str, Any]:
    return {"messages": tuple({"role": "user", "content": content} for content in contents)}


LONG = (
    {"parameters": {"prompt": "é" * 600_000}},
    {"parameters": {"input": [[1] * 92] * 100}},
    _said(*["a"] * 3_000),
    _said(*["a" * 2_000] * 300),
    _said([{"type": "text", "text": "a"}] * 3_000),
    _said([{"type": "image_url", "image_url": {"url": "data:" + "a" * 600_000}}]),
)
SHORT = (_said(), _said(*["a" * 500] * 100), {"parameters": {"temperature": 0.5, "stop": ["a"]}} | _said("a" * 200_000))


@pytest.mark.parametrize(
    ("given", "is_long"), [*((given, True) for given in LONG), *((given, False) for given in SHORT)]
)
def test_a_request_is_long_if_writing_its_body_takes_milliseconds(given: dict[str, Any], is_long: bool) -> None:
    assert ModelRequest(upstream="default", model="m", **given).is_long is is_long


@pytest.mark.parametrize("is_long", [False, True])
async def test_a_long_body_is_written_outside_the_event_loop(
    client: UpstreamClient, server: Server, is_long: bool
) -> None:
    in_main_thread: list[bool] = []

    def body() -> dict[str, Any]:
        in_main_thread.append(threading.current_thread() is threading.main_thread())
        return call[0]

    call = REQUESTS[1]
    await client.opened(PATH, body, is_long=is_long, **call[1])
    assert server.last_request() == await _sdk_request(call)
    assert in_main_thread == [not is_long]


async def test_a_new_key_is_used_immediately(client: UpstreamClient, server: Server) -> None:
    for key in ("k", "new"):
        client.api_key = key
        for _ in range(2):
            await _open(client, REQUESTS[0])
            assert server.requests[-1].headers["authorization"] == f"Bearer {key}"


async def test_a_header_of_the_dialect_replaces_the_key_in_any_spelling(client: UpstreamClient, server: Server) -> None:
    await _open(client, _call({"model": "m"}, {"authorization": "Token k"}))
    assert server.requests[-1].headers.get_list("authorization") == ["Token k"]


async def test_the_current_cookies_are_sent(client: UpstreamClient, server: Server) -> None:
    client._client.cookies.set("route", "a", domain="127.0.0.1")
    await _open(client, REQUESTS[0])
    assert server.requests[-1].headers["cookie"] == "route=a"
    client._client.cookies.set("route", "b", domain="127.0.0.1")
    await _open(client, REQUESTS[0])
    assert server.requests[-1].headers["cookie"] == "route=b"
    client._client.cookies.clear()
    await _open(client, REQUESTS[0])
    assert "cookie" not in server.requests[-1].headers


async def test_a_server_cannot_collect_cookies_without_end(client: UpstreamClient, server: Server) -> None:
    for number in range(MAX_COOKIES + 2):
        headers = [("set-cookie", f"c{number}=a"), ("set-cookie", f"d{number}=a")]
        server.answer = httpx2.Response(200, headers=headers, json={})
        await _open(client, REQUESTS[0])
        assert len(client._client.cookies) <= MAX_COOKIES
    assert server.requests[-1].headers["cookie"]


async def test_numbers_that_json_cannot_represent_are_refused(client: UpstreamClient) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        await _open(client, _call({"temperature": float("nan")}, {}))


@pytest.mark.parametrize("error", [httpx2.ConnectTimeout("slow"), httpx2.ConnectError("refused")])
async def test_a_failed_request_is_not_retried(client: UpstreamClient, server: Server, error: Exception) -> None:
    server.answer = error
    with pytest.raises(type(error)):
        await _open(client, REQUESTS[0])
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [307, 429, 503])
async def test_a_refusal_is_neither_retried_nor_followed(client: UpstreamClient, server: Server, status: int) -> None:
    server.answer = httpx2.Response(status, headers={"location": "/elsewhere", "retry-after": "7"})
    assert (await _open(client, REQUESTS[0])).status_code == status
    assert [request.url.path for request in server.requests] == ["/v1/chat/completions"]
