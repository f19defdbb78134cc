"""The openai SDK's client for one upstream, without the SDK's way of sending a request.

For each request the SDK joins URLs, merges and checks headers, copies its options three times and looks up its
platform, which takes longer than sending the request. So a request is built here, equal to the SDK's, and sent by the
SDK's own HTTP client (docs/decisions/0049, 0053)."""

import asyncio
from collections.abc import Callable
from functools import cached_property
from itertools import chain
from typing import Any

import httpx2
import openai

from memories.json_output import LongTextEncoder

MAX_COOKIES = 50
"""Cookies of a server that are sent back; if it sets more, all are dropped, since each costs time in every request."""
_as_json = LongTextEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def _as_bytes(body: Callable[[], dict[str, Any]]) -> bytes:
    return _as_json(body()).encode()


class UpstreamClient(openai.AsyncOpenAI):
    """The SDK's client with its own requests. It never retries: that would multiply the time limit, and
    gateway.upstream.attempts decides about retries. It follows no redirects: the conversation would go to a server that
    nobody configured, and that server's answer would be used. It accepts no compression: a kilobyte may unpack to
    gigabytes, during which the event loop would stand still."""

    def __init__(self, *, http_client: httpx2.AsyncClient, **given: Any) -> None:
        http_client.follow_redirects = False
        http_client.headers["Accept-Encoding"] = "identity"
        super().__init__(http_client=http_client, max_retries=0, **given)
        self._http = http_client
        self._urls: dict[object, httpx2.URL] = {}  # by path and query

    @cached_property
    def _headers(self) -> httpx2.Headers:
        """The headers of all requests; one of them names the event loop's library."""
        headers = self._http.headers.copy()
        headers.update({name: value for name, value in self.default_headers.items() if isinstance(value, str)})
        headers["X-Stainless-Retry-Count"] = "0"
        return headers

    @property
    def user_agent(self) -> str:
        """Return the User-Agent of the SDK's own client, since servers may check for it."""
        return f"{openai.AsyncOpenAI.__name__}/Python {self._version}"

    async def opened(
        self,
        path: str,
        body: Callable[[], dict[str, Any]],
        *,
        is_long: bool = False,
        headers: dict[str, str],
        query: dict[str, str],
        limits: openai.Timeout,
    ) -> httpx2.Response:
        """Send a POST and return the response before its body is read. With `is_long`, `body` is called in a thread.
        Raises the errors of httpx2, and ValueError for a body that cannot be written as JSON."""
        key = (path, *query.items())
        if (url := self._urls.get(key)) is None:
            url = self._urls[key] = httpx2.URL(f"{self.base_url}{path.removeprefix('/')}", params=query or None)
        encoded = await asyncio.to_thread(_as_bytes, body) if is_long else _as_bytes(body)
        sent = self._headers.copy()
        for name, value in chain(self.auth_headers.items(), headers.items()):
            sent[name] = value
        request = httpx2.Request(
            "POST",
            url,
            headers=sent,
            cookies=self._http.cookies,
            content=encoded,
            extensions={"timeout": limits.as_dict()},
        )
        response = await self._http.send(request, stream=True)
        if len(self._http.cookies) > MAX_COOKIES:
            self._http.cookies.clear()
        return response
