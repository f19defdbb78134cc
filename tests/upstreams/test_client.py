"""gateway.upstream.client: whatever was built once, a request is the one that the SDK itself would build."""

from typing import Any

import httpx2
import openai
import pytest
from openai._models import FinalRequestOptions

from gateway.upstream.client import UpstreamClient

GIVEN: dict[str, Any] = {"base_url": "http://127.0.0.1:9/v1/", "api_key": "k", "max_retries": 0}


def _options(body: dict[str, Any], headers: dict[str, str], **more: Any) -> FinalRequestOptions:
    options = {"headers": headers, "params": {}, "timeout": openai.Timeout(None, connect=3.0), **more}
    return FinalRequestOptions.construct(method="post", url="/chat/completions", json_data=body, **options)


def _built(client: openai.AsyncOpenAI, options: FinalRequestOptions) -> tuple[Any, ...]:
    request = client._build_request(options)
    headers = {(name.lower(), value) for name, value in request.headers.multi_items()}
    return request.method, str(request.url), headers, request.content, dict(request.extensions)


@pytest.fixture
def clients() -> tuple[UpstreamClient, openai.AsyncOpenAI]:
    return UpstreamClient(**GIVEN), openai.AsyncOpenAI(**GIVEN)


REQUESTS = [
    _options({"model": "m", "messages": []}, {"x-request-id": "1"}),
    _options({"model": "m", "messages": [{"role": "user", "content": "grüße “你好” \n"}]}, {"x-request-id": "22"}),
    _options({"model": "m"}, {"x-request-id": "3", "traceparent": "00-a-b-01"}),
    _options({"model": "m"}, {"x-request-id": "4", "traceparent": "00-c-d-01"}),
    _options({"model": "m"}, {"api-key": "other"}),
    _options({"model": "m"}, {"api-key": "another"}),
    _options({"model": "m"}, {}, params={"api-version": "1"}),
    _options({"model": "m"}, {}, params={"api-version": "2"}),
    _options({"model": "m"}, {}, timeout=openai.Timeout(None, connect=9.0)),
    _options({"model": "m"}, {}, extra_json={"more": True}),
]


def test_each_request_is_that_of_the_sdk(clients: tuple[UpstreamClient, openai.AsyncOpenAI]) -> None:
    ours, theirs = clients
    for options in (*REQUESTS, *REQUESTS):
        assert _built(ours, options) == _built(theirs, options)


def test_a_new_key_is_used_at_once(clients: tuple[UpstreamClient, openai.AsyncOpenAI]) -> None:
    ours, _ = clients
    for key in ("k", "new"):
        ours.api_key = key
        for _ in range(2):
            assert ours._build_request(REQUESTS[0]).headers["authorization"] == f"Bearer {key}"


def test_cookies_are_those_of_now(clients: tuple[UpstreamClient, openai.AsyncOpenAI]) -> None:
    ours, _ = clients
    ours._client.cookies.set("route", "a", domain="127.0.0.1")
    assert ours._build_request(REQUESTS[0]).headers["cookie"] == "route=a"
    ours._client.cookies.set("route", "b", domain="127.0.0.1")
    assert ours._build_request(REQUESTS[0]).headers["cookie"] == "route=b"
    ours._client.cookies = httpx2.Cookies()
    assert "cookie" not in ours._build_request(REQUESTS[0]).headers


def test_what_is_no_number_in_json_is_refused(clients: tuple[UpstreamClient, openai.AsyncOpenAI]) -> None:
    for client in clients:
        for _ in range(2):
            with pytest.raises(ValueError, match="not JSON compliant"):
                client._build_request(_options({"temperature": float("nan")}, {}))
