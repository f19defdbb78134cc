"""The openai SDK's client of one upstream; what all requests to one address share is built once.

For each request the SDK joins addresses, merges and checks headers, copies its options three times and asks for its
platform, which takes longer than sending it. So the SDK sends only the first request of a kind. Later requests are
copies of it with another body and other headers, sent by the SDK's own HTTP client (docs/decisions/0049, 0053)."""

import asyncio
from dataclasses import dataclass
from itertools import chain
from typing import Any

import httpx2
import openai

from memories.json_output import LongTextEncoder

NAMING_HEADERS = frozenset({"x-request-id", "traceparent", "tracestate"})
"""Headers that differ from request to request."""
_MOST_KINDS = 32  # changed options of a dialect make new kinds
_LONG_TEXT, _LONG_LIST = 500_000, 500
_as_json = LongTextEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


class _Opened(openai.AsyncStream[dict[str, Any]]):
    """Stands for a response in the SDK whose body was not read yet. Only `response` is used."""


@dataclass(frozen=True, slots=True)
class _Kind:
    """The first request of its kind as the SDK made it, without its cookies."""

    url: httpx2.URL
    headers: httpx2.Headers
    extensions: dict[str, Any]

    @classmethod
    def of(cls, request: httpx2.Request) -> "_Kind":
        headers = request.headers.copy()
        headers.pop("Cookie", None)
        return cls(request.url, headers, dict(request.extensions))

    def request(self, body: bytes, naming: dict[str, str], cookies: httpx2.Cookies) -> httpx2.Request:
        headers = httpx2.Headers(self.headers)
        headers["Content-Length"] = str(len(body))
        for name, value in naming.items():
            headers[name] = value
        stream = httpx2.ByteStream(body)
        request = httpx2.Request(
            "POST", self.url, headers=headers, cookies=cookies, stream=stream, extensions=self.extensions
        )
        request.read()  # its content is there already
        return request


def _as_bytes(body: dict[str, Any]) -> bytes:
    return _as_json(body).encode()


def _is_long(body: dict[str, Any]) -> bool:
    """Return True if a body takes milliseconds to encode, during which the event loop would do nothing else."""
    messages = body.get("messages") or ()
    values = chain(body.values(), (message.get("content") for message in messages))
    return any(
        len(value) > (_LONG_TEXT if isinstance(value, str) else _LONG_LIST)
        for value in values
        if isinstance(value, str | list)
    )


class UpstreamClient(openai.AsyncOpenAI):
    """The SDK's client, which prepares each kind of request once. It never retries."""

    def __init__(self, *, http_client: httpx2.AsyncClient, **given: Any) -> None:
        super().__init__(http_client=http_client, max_retries=0, **given)
        self._http = http_client
        self._kinds: dict[object, _Kind] = {}

    @property
    def user_agent(self) -> str:
        """Return the User-Agent of the SDK's own client, since servers may look for it."""
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
        """Yield the response to a POST, with its body not yet read. Raises the errors of the SDK, and ValueError for a
        body that cannot be written as JSON."""
        given = dict(headers)
        naming = {name: given.pop(name) for name in NAMING_HEADERS & given.keys()}
        place = (path, self.api_key, *limits.as_dict().values(), *given.items(), *naming, *query.items())
        if (kind := self._kinds.get(place)) is None:
            options: openai.RequestOptions = {"headers": headers, "params": query, "timeout": limits}
            asked = self.post(path, body=body, cast_to=dict, options=options, stream=True, stream_cls=_Opened)
            response = (await asked).response
            if len(self._kinds) < _MOST_KINDS:
                self._kinds[place] = _Kind.of((response.history or [response])[0].request)
            return response
        written = await asyncio.to_thread(_as_bytes, body) if _is_long(body) else _as_bytes(body)
        return await self._sent(kind.request(written, naming, self._http.cookies))

    async def _sent(self, request: httpx2.Request) -> httpx2.Response:
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
