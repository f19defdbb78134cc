"""The openai SDK's client of one upstream. What is the same in all requests to one address is built once.

For each request the SDK joins addresses, merges and checks headers and asks for its platform anew, which takes longer
than to send it. Here it builds the first request of a kind; later ones are that one with another body and other headers
that name them (docs/decisions/0049). Without the method that is overridden everything works the same, and slower."""

from dataclasses import dataclass
from typing import Any

import httpx2
import openai

from memories.json_output import LongTextEncoder

NAMING_HEADERS = frozenset({"x-request-id", "traceparent", "tracestate"})
"""Headers that differ from request to request."""
_MOST_KINDS = 32  # changed options of a dialect make new ones
_as_json = LongTextEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


@dataclass(frozen=True, slots=True)
class _Kind:
    """The first request of its kind, as the SDK made it, but for its cookies."""

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


class UpstreamClient(openai.AsyncOpenAI):
    """The SDK's client, without doing the same again for each request."""

    @property
    def user_agent(self) -> str:
        """Return what the SDK's own client is called: servers may look for it."""
        return f"{openai.AsyncOpenAI.__name__}/Python {self._version}"

    def _build_request(self, options: Any, *, retries_taken: int = 0) -> httpx2.Request:
        if options.method != "post" or not isinstance(options.json_data, dict) or options.extra_json is not None:
            return super()._build_request(options, retries_taken=retries_taken)
        given = dict(options.headers or {})
        naming = {name: given.pop(name) for name in NAMING_HEADERS & given.keys()}
        timeout = options.timeout
        limits = tuple(timeout.as_dict().values()) if isinstance(timeout, httpx2.Timeout) else timeout
        place = (options.url, self.api_key, limits, *given.items(), *naming, *(options.params or {}).items())
        kinds: dict[object, _Kind] = vars(self).setdefault("_kinds", {})
        kind = kinds.get(place)
        if kind is None:
            request = super()._build_request(options, retries_taken=retries_taken)
            if len(kinds) < _MOST_KINDS:
                kinds[place] = _Kind.of(request)
            return request
        return kind.request(_as_json(options.json_data).encode(), naming, self._client.cookies)
