"""The openai SDK's client for one upstream, with the parts that all requests to one address share built only once.

For each request the SDK joins URLs, merges and checks headers, copies its options three times and looks up its
platform, which takes longer than sending the request. So the SDK sends only the first request of a kind. Later ones
are copies with another body and other headers, sent by the SDK's own HTTP client (docs/decisions/0049, 0053)."""

import asyncio
from dataclasses import dataclass
from itertools import chain
from typing import Any

import httpx2
import openai

from memories.json_output import LongTextEncoder

PER_REQUEST_HEADERS = frozenset({"x-request-id", "traceparent", "tracestate"})
"""Headers whose values differ from request to request."""
_MAX_TEMPLATES = 32  # changing a dialect's options makes new ones
_LONG_TEXT, _LONG_LIST = 500_000, 500
_as_json = LongTextEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


class _Opened(openai.AsyncStream[dict[str, Any]]):
    """Makes the SDK return a response before its body is read. Only `response` is used."""


@dataclass(frozen=True, slots=True)
class _Template:
    """The first request of its kind as the SDK built it, without its cookies."""

    url: httpx2.URL
    headers: httpx2.Headers
    extensions: dict[str, Any]

    @classmethod
    def of(cls, request: httpx2.Request) -> "_Template":
        headers = request.headers.copy()
        headers.pop("Cookie", None)
        return cls(request.url, headers, dict(request.extensions))

    def request(self, body: bytes, own_headers: dict[str, str], cookies: httpx2.Cookies) -> httpx2.Request:
        headers = httpx2.Headers(self.headers)
        headers["Content-Length"] = str(len(body))
        for name, value in own_headers.items():
            headers[name] = value
        stream = httpx2.ByteStream(body)
        request = httpx2.Request(
            "POST", self.url, headers=headers, cookies=cookies, stream=stream, extensions=self.extensions
        )
        request.read()  # without I/O: the content is in memory
        return request


def _as_bytes(body: dict[str, Any]) -> bytes:
    return _as_json(body).encode()


def _is_long(body: dict[str, Any]) -> bool:
    """Return True if encoding the body takes milliseconds, for which it would block the event loop."""
    messages = body.get("messages") or ()
    values = chain(body.values(), (message.get("content") for message in messages))
    return any(
        len(value) > (_LONG_TEXT if isinstance(value, str) else _LONG_LIST)
        for value in values
        if isinstance(value, str | list)
    )


class UpstreamClient(openai.AsyncOpenAI):
    """The SDK's client, which builds each kind of request once. It never retries: that would multiply the time limit,
    and gateway.upstream.attempts decides about retries. It follows no redirects: the conversation would go to a server
    that nobody configured, and that server's answer would be used."""

    def __init__(self, *, http_client: httpx2.AsyncClient, **given: Any) -> None:
        http_client.follow_redirects = False
        super().__init__(http_client=http_client, max_retries=0, **given)
        self._http = http_client
        self._templates: dict[object, _Template] = {}

    @property
    def user_agent(self) -> str:
        """Return the User-Agent of the SDK's own client, since servers may check for it."""
        return f"{openai.AsyncOpenAI.__name__}/Python {self._version}"

    async def opened(
        self,
        path: str,
        body: dict[str, Any],
        *,
        headers: dict[str, str],
        query: dict[str, str],
        limits: openai.Timeout,
    ) -> httpx2.Response:
        """Send a POST and return the response before its body is read. Raises the errors of the SDK, and ValueError for
        a body that cannot be written as JSON."""
        shared = dict(headers)
        own_headers = {name: shared.pop(name) for name in PER_REQUEST_HEADERS & shared.keys()}
        key = (path, self.api_key, *limits.as_dict().values(), *shared.items(), *own_headers, *query.items())
        if (template := self._templates.get(key)) is None:
            options: openai.RequestOptions = {"headers": headers, "params": query, "timeout": limits}
            sending = self.post(path, body=body, cast_to=dict, options=options, stream=True, stream_cls=_Opened)
            response = (await sending).response
            if len(self._templates) < _MAX_TEMPLATES:
                self._templates[key] = _Template.of(response.request)
            return response
        encoded = await asyncio.to_thread(_as_bytes, body) if _is_long(body) else _as_bytes(body)
        return await self._send(template.request(encoded, own_headers, self._http.cookies))

    async def _send(self, request: httpx2.Request) -> httpx2.Response:
        try:
            response = await self._http.send(request, stream=True)
        except httpx2.TimeoutException as error:
            raise openai.APITimeoutError(request=request) from error
        except httpx2.RequestError as error:
            raise openai.APIConnectionError(request=request) from error
        if not response.is_success:
            await response.aread()
            raise openai.APIStatusError(f"Error code: {response.status_code}", response=response, body=None)
        return response
