"""The seam to the model server: one request in, OpenAI chunks (or one completion) out, as plain dictionaries.

The openai SDK carries the request; its typed objects are passed by, since a pydantic model per chunk costs more than
the rest of a turn. One client per upstream and process. Everything that goes wrong is one of the gateway's errors."""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any, Protocol
from urllib.parse import urlsplit

import aiohttp
import httpx2
import openai
from django.conf import settings

from gateway.demo.transport import DemoTransport
from gateway.errors import UpstreamRefused, UpstreamSilent, UpstreamUnreachable
from memories.errors import DomainError, InvalidRequest, RateLimited
from memories.storable import storable_text

logger = logging.getLogger("daybook.upstream")
Chunk = dict[str, Any]
_QUOTED = 300
_DONE: Chunk = {}
# Servers commonly drop an idle connection after 5 s; ours must be the side that gives it up.
_KEEP_ALIVE = httpx2.Limits(max_connections=1000, max_keepalive_connections=100, keepalive_expiry=4.0)

# What the wire can do to us; ValueError is what is neither JSON nor UTF-8.
_WRONG = (openai.OpenAIError, httpx2.HTTPError, aiohttp.ClientError, ValueError)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One model step. `parameters` are the client's own (temperature, …), passed through as they came."""

    upstream: str
    model: str
    messages: tuple[dict[str, Any], ...]
    tools: tuple[dict[str, Any], ...] = ()
    parameters: dict[str, Any] = field(default_factory=dict)
    request_id: str = ""

    def body(self, *, stream: bool) -> dict[str, Any]:
        """The request as it goes over the wire."""
        body = {**self.parameters, "model": self.model, "messages": list(self.messages)}
        if self.tools:
            body["tools"] = list(self.tools)
        else:  # servers refuse these where no tool is offered
            body.pop("tool_choice", None)
            body.pop("parallel_tool_calls", None)
        if stream:
            body["stream"] = True
            body["stream_options"] = {**(self.parameters.get("stream_options") or {}), "include_usage": True}
        else:
            body.pop("stream_options", None)
        return body


class Model(Protocol):
    """What answers a model step. Implemented by OpenAIModel, and by the scripted double of the tests."""

    def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk]:
        """OpenAI chat.completion.chunk dictionaries as they arrive. Raises DomainErrors."""
        ...

    async def complete(self, request: ModelRequest) -> dict[str, Any]:
        """One OpenAI chat.completion dictionary. Raises DomainErrors."""
        ...

    async def embed(self, upstream: str, name: str, texts: Sequence[str]) -> list[list[float]]:
        """Vectors of texts from an embedding model, in their order. Raises DomainErrors."""
        ...


class ChunkStream(openai.AsyncStream[Chunk]):
    """The SDK's stream, giving each event as the dictionary that came, without a typed object around it."""

    async def __stream__(self) -> AsyncGenerator[Chunk]:
        buffer = b""
        loop = asyncio.get_running_loop()
        limit = loop.time() + settings.RUN_SECONDS
        try:
            async for data in self.response.aiter_bytes():
                if loop.time() > limit:  # some servers keep a connection alive with comments, for ever
                    raise httpx2.ReadTimeout("nothing but signs of life")
                buffer += data
                *lines, buffer = buffer.split(b"\n")
                for line in lines:
                    if not line.startswith(b"data:"):
                        continue
                    payload = line[5:].strip()
                    if payload == b"[DONE]":
                        yield _DONE
                        return
                    chunk = json.loads(payload)
                    if not isinstance(chunk, dict):
                        raise ValueError("a chunk that is no object")
                    yield chunk
        finally:
            await self.response.aclose()


class OpenAIModel:
    """A model behind an OpenAI-compatible server, or the demo model behind the same wire protocol in process."""

    def __init__(self) -> None:
        self._clients: dict[str, tuple[asyncio.AbstractEventLoop, openai.AsyncOpenAI]] = {}

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk]:
        finished = False
        try:
            stream = await self._client(request.upstream).post(
                "/chat/completions",
                body=request.body(stream=True),
                cast_to=dict,
                stream=True,
                stream_cls=ChunkStream,
            )
            async with stream:
                async for chunk in stream:
                    if chunk is _DONE:
                        return
                    if chunk.get("error"):
                        raise UpstreamUnreachable("The model server broke off with an error.")
                    for choice in (chunk.get("choices") or ())[:1]:
                        finished = finished or bool(isinstance(choice, dict) and choice.get("finish_reason"))
                    yield chunk
        except _WRONG as error:
            raise domain_error(error) from error
        if not finished:
            raise UpstreamUnreachable("The model server broke off in the middle of its answer.")

    async def complete(self, request: ModelRequest) -> dict[str, Any]:
        try:
            response = await self._client(request.upstream).post(
                "/chat/completions", body=request.body(stream=False), cast_to=httpx2.Response
            )
            answer = json.loads(response.content)
        except _WRONG as error:
            raise domain_error(error) from error
        if not isinstance(answer, dict) or not answer.get("choices"):
            raise UpstreamUnreachable("The model server gave an answer that holds no choice.")
        return answer

    async def models(self, upstream: str = "default") -> list[str]:
        """Names of the models an upstream offers. Raises DomainErrors."""
        try:
            response = await self._client(upstream).get("/models", cast_to=httpx2.Response)
            return [str(model.get("id")) for model in json.loads(response.content).get("data", [])]
        except _WRONG as error:
            raise domain_error(error) from error

    async def embed(self, upstream: str, name: str, texts: Sequence[str]) -> list[list[float]]:
        """Vectors of texts from an embedding model, in their order. Raises DomainErrors."""
        body = {"model": name, "input": list(texts), "encoding_format": "float"}
        try:
            response = await self._client(upstream).post("/embeddings", body=body, cast_to=httpx2.Response)
            rows = sorted(json.loads(response.content)["data"], key=lambda row: row["index"])
            return [[float(value) for value in row["embedding"]] for row in rows]
        except _WRONG as error:
            raise domain_error(error) from error
        except (KeyError, TypeError, ValueError):
            raise UpstreamUnreachable("The model server gave an answer that holds no vectors.") from None

    async def close(self) -> None:
        """Close the connections of this loop's clients; the next request makes new ones."""
        loop = asyncio.get_running_loop()
        for name, (owner, client) in list(self._clients.items()):
            if owner is loop:
                del self._clients[name]
                await client.close()

    def _client(self, upstream: str) -> openai.AsyncOpenAI:
        loop = asyncio.get_running_loop()
        found = self._clients.get(upstream)
        if found is None or found[0] is not loop:
            found = self._clients[upstream] = (loop, _make_client(upstream))
        return found[1]


def is_demo(upstream: str = "default") -> bool:
    """Whether the built-in demo model answers: with no upstream configured at all."""
    return upstream == "default" and "default" not in settings.DAYBOOK_UPSTREAMS


def _make_client(upstream: str) -> openai.AsyncOpenAI:
    if is_demo(upstream):
        return openai.AsyncOpenAI(
            base_url="http://demo.invalid/v1",
            api_key="demo",
            http_client=openai.DefaultAsyncHttpxClient(transport=DemoTransport()),
            max_retries=0,
        )
    address = settings.DAYBOOK_UPSTREAMS.get(upstream)
    if address is None:
        raise InvalidRequest(f"No upstream is called {upstream}. Set DAYBOOK_UPSTREAM_{upstream.upper()}_URL.")
    if settings.DAYBOOK_UPSTREAM_LOOPBACK_ONLY and not _is_loopback(address["url"]):
        raise RuntimeError("A test called a model server that is not on this machine.")
    timeout = openai.Timeout(settings.UPSTREAM_IDLE_SECONDS, connect=settings.UPSTREAM_CONNECT_SECONDS)
    # No retries in the SDK: it would turn a time limit into a multiple of it. Who waits decides about another try.
    return openai.AsyncOpenAI(
        base_url=address["url"],
        api_key=address["key"] or "none",
        timeout=timeout,
        max_retries=0,
        http_client=openai.DefaultAioHttpClient(timeout=timeout, limits=_KEEP_ALIVE),
    )


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def domain_error(error: Exception) -> DomainError:
    """The gateway's error for what went wrong upstream. No key and no address is in its message."""
    if isinstance(error, openai.APIStatusError):
        return _refused(error)
    if isinstance(error, openai.APITimeoutError | httpx2.TimeoutException) and not _is_lost(error):
        return UpstreamSilent("The model server took too long to answer.")
    if isinstance(error, openai.APIConnectionError):
        return UpstreamUnreachable("The model server could not be reached.")
    if isinstance(error, ValueError):
        return UpstreamUnreachable("The model server gave an answer that is not JSON.")
    return UpstreamUnreachable("The model server broke off in the middle of its answer.")


def _is_lost(error: BaseException | None) -> bool:
    """Whether a connection was refused or dropped: the SDK's aiohttp transport calls that a time-out, too."""
    while error is not None:
        if isinstance(error, aiohttp.ClientConnectionError):
            return not isinstance(error, aiohttp.ServerTimeoutError)
        error = error.__cause__
    return False


def _refused(error: openai.APIStatusError) -> DomainError:
    status = error.status_code
    if status == 429:
        details = {}
        if retry_after := error.response.headers.get("retry-after"):
            details["retry_after"] = retry_after[:32]
        return RateLimited("The model server is asked too much at once. Try again later.", status=status, **details)
    if status in {400, 422}:
        body = error.body if isinstance(error.body, dict) else {}
        said = storable_text(str(body.get("message") or "the request was not accepted"))[:_QUOTED]
        return InvalidRequest(f"The model server refused the request: {said}", status=status)
    reason = {
        401: "refused the gateway's key",
        403: "refused the gateway's key",
        404: "does not know this model",
    }.get(status, f"answered with an error ({status})")
    return UpstreamRefused(f"The model server {reason}.", status=status)


_model: Model = OpenAIModel()


def model() -> Model:
    """What answers model steps in this process."""
    return _model


async def disconnect() -> None:
    """Close the connections that the running event loop holds; the next request makes new ones."""
    if isinstance(_model, OpenAIModel):
        await _model.close()


async def embed(texts: Sequence[str]) -> list[list[float]]:
    """Vectors of texts from the configured embedding model, in their order. Raises DomainErrors."""
    found = await _model.embed(settings.EMBEDDING_UPSTREAM, settings.EMBEDDING_MODEL, texts)
    if len(found) != len(texts):
        raise UpstreamUnreachable("The model server gave another number of vectors than it was asked for.")
    return found


def install(replacement: Model) -> Model:
    """Put another model at the seam (tests); returns the one that was there."""
    global _model
    previous, _model = _model, replacement
    return previous
