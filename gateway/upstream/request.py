"""A request to a model server with its time limits, and the protocol of the clients that answer it."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from django.conf import settings

from gateway.errors import UpstreamSilent
from gateway.messages import PARAGRAPH, ChatMessage, content_text
from gateway.telemetry import NOTHING, Span
from gateway.tool_calls import calls_in
from gateway.upstream.answer import Chunk
from gateway.upstream.dialects import Dialect, dialect_of
from gateway.upstream.outgoing import request_body
from memories.errors import DomainError, UpstreamTimeout
from prompts.conversation import CALLED_TOOLS, RESULT_AS_TEXT

CHAT, COMPLETIONS, EMBEDDINGS = "/chat/completions", "/completions", "/embeddings"
"""Endpoint paths, relative to the upstream's base URL."""
_AFTER_END = 5.0  # seconds to wait for data after the end of an answer, such as the usage
_TOO_LONG = "The model server took too long to answer."
_LONG_CHARS, _CHARS_PER_VALUE = 500_000, 100


@dataclass(frozen=True, slots=True)
class ModelTarget:
    """A model of an upstream with its fall-backs, in order. Fall-backs have no fall-backs of their own."""

    upstream: str
    model: str
    fallbacks: "tuple[ModelTarget, ...]" = ()

    @property
    def all(self) -> "tuple[ModelTarget, ...]":
        """This target and its fall-backs as a flat list without duplicates."""
        return tuple(dict.fromkeys((ModelTarget(self.upstream, self.model), *self.fallbacks)))

    def preferring(self, first: "ModelTarget") -> "ModelTarget":
        """Return the targets with `first` at the front, adding it if it is missing."""
        rest = (target for target in self.all if (target.upstream, target.model) != (first.upstream, first.model))
        return ModelTarget(first.upstream, first.model, tuple(rest))


@dataclass(slots=True)
class RequestLog:
    """How a request was answered. `attempts` are recorded if any of them failed, each as `{upstream, model, fault,
    seconds}` with an empty `fault` for success. `toolless` is the model that refused our tools."""

    answered_by: ModelTarget | None = None
    toolless: ModelTarget | None = None
    attempts: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One model step. A `path` other than CHAT makes it a request without messages, given entirely by `parameters`.

    `parameters` are the client's own (temperature, …), passed on unchanged. `seconds` limits the whole request; 0 means
    the longest time of a run. `first_byte` limits the seconds until the answer begins, in addition to the upstream's
    own limit; 0 sets no limit. `owner` is the person who waits, for upstreams with a concurrency limit.
    `optional_tools` names the tools to leave out if the model refuses tools: ours, which the client did not ask for.
    `functions_only`: offer custom tools as functions if the server may not support them. `log` is filled while the
    request is answered."""

    upstream: str
    model: str
    messages: tuple[dict[str, Any], ...] = ()
    tools: tuple[dict[str, Any], ...] = ()
    path: str = CHAT
    parameters: dict[str, Any] = field(default_factory=dict)
    request_id: str = ""
    seconds: float = 0.0
    span: Span = NOTHING
    first_byte: float = 0.0
    fallbacks: tuple[ModelTarget, ...] = ()
    owner: str = ""
    functions_only: bool = False
    optional_tools: frozenset[str] = frozenset()
    log: RequestLog = field(default_factory=RequestLog, compare=False)

    @property
    def answered_by(self) -> tuple[str, str]:
        """The upstream and model that answered, or that will be asked first."""
        target = self.log.answered_by or self
        return target.upstream, target.model

    @property
    def single_choice(self) -> bool:
        return self.path == CHAT and self.parameters.get("n") in (None, 1)

    @property
    def is_long(self) -> bool:
        """Whether writing its body takes milliseconds, for which it would block the event loop."""
        left, waiting = _LONG_CHARS, [self.parameters, self.messages]
        while waiting and left > 0:
            value: Any = waiting.pop()
            left -= _CHARS_PER_VALUE + (len(value) if isinstance(value, str) else 0)
            if isinstance(value, dict | list | tuple):
                waiting += value.values() if isinstance(value, dict) else value
        return left <= 0

    def dialect(self) -> Dialect:
        dialect = dialect_of(self.upstream)
        needs_functions = self.functions_only and not dialect.custom_tools
        return dialect.with_options({"custom_tools": False}) if needs_functions else dialect

    def without_optional_tools(self) -> "ModelRequest":
        """Return the request without its optional tools. If no tool remains, earlier calls of them become text."""
        optional = self.optional_tools
        if not optional:
            return self
        tools = tuple(tool for tool in self.tools if (tool.get("function") or {}).get("name") not in optional)
        messages = self.messages if tools else tuple(_calls_as_text(self.messages, optional))
        return replace(self, tools=tools, messages=messages, optional_tools=frozenset())

    def body(self, *, stream: bool, dialect: Dialect | None = None) -> dict[str, Any]:
        """Return the JSON body to send. The dialect defaults to that of the upstream."""
        body = {**self.parameters, "model": self.model}
        if self.path == CHAT:
            body["messages"] = list(self.messages)
        if self.tools:
            body["tools"] = list(self.tools)
        else:  # servers refuse these parameters without tools
            body.pop("tool_choice", None)
            body.pop("parallel_tool_calls", None)
        if stream:
            body["stream"] = True
            body["stream_options"] = {**(self.parameters.get("stream_options") or {}), "include_usage": True}
        else:
            body.pop("stream_options", None)
        dialect = dialect or self.dialect()
        if self.path == EMBEDDINGS:  # the dialect's `set` is for models that write text
            dialect = dialect.model_copy(update={"set": {}})
        return request_body(body, dialect, upstream=self.upstream)

    def headers(self) -> dict[str, str]:
        """Return headers that identify the request and its trace to the server."""
        return {**({"x-request-id": self.request_id} if self.request_id else {}), **self.span.headers()}


def _calls_as_text(messages: Sequence[ChatMessage], names: frozenset[str]) -> list[ChatMessage]:
    """Return the messages with calls of these tools and their results as text, for a model that does not support tools:
    another one made the calls, in earlier turns or in this one before it failed. A message that also calls other tools
    is unchanged."""
    converted: list[ChatMessage] = []
    tool_names: dict[str, str] = {}  # by call id
    results: ChatMessage | None = None  # the user message that collects consecutive results
    for message in messages:
        role = message.get("role")
        if role == "tool" and (name := tool_names.get(str(message.get("tool_call_id")))):
            text = RESULT_AS_TEXT.format(name=name, result=content_text(message.get("content")))
            if results is None:
                converted.append(results := {"role": "user", "content": text})
            else:
                results["content"] += PARAGRAPH + text
            continue
        results = None
        calls = {str(call.get("id")): str((call.get("function") or {}).get("name")) for call in calls_in(message)}
        if calls and names >= set(calls.values()):
            tool_names |= calls
            text = content_text(message.get("content")) or CALLED_TOOLS.format(names=", ".join(calls.values()))
            message = {"role": role, "content": text}
        converted.append(message)
    return converted


class Deadlines:
    """The deadlines of a running request, in the event loop's time: for the start of the answer, for the next piece of
    it, and for the whole request. The client limits the time to connect."""

    def __init__(self, request: ModelRequest, dialect: Dialect) -> None:
        self._loop = asyncio.get_running_loop()
        start, seconds = self._loop.time(), request.seconds or settings.RUN_SECONDS
        first_byte = dialect.first_byte_seconds or settings.UPSTREAM_FIRST_BYTE_SECONDS or seconds
        self.total = start + seconds
        self._first_byte = start + min(first_byte, request.first_byte or seconds, seconds)
        self._idle = dialect.idle_seconds or settings.UPSTREAM_IDLE_SECONDS
        self.restart(whole=False)

    def restart(self, *, whole: bool) -> None:
        """Begin an attempt. `whole`: the server sends nothing until the answer is complete."""
        self.whole, self.begun = whole, False
        self.finished = False  # whether the finish reason has arrived; the usage may follow
        self.ended = False  # whether the body has ended

    @property
    def over(self) -> bool:
        """Whether the request has no time left."""
        return self._loop.time() >= self.total

    def next(self) -> float:
        """Return the time by which the next bytes must arrive."""
        if self.begun:
            idle = min(self._idle, _AFTER_END) if self.finished else self._idle
            return min(self.total, self._loop.time() + idle)
        return self.total if self.whole else self._first_byte

    def fault(self) -> DomainError:
        """Return the error for the deadline that has passed."""
        if self.over:
            return UpstreamTimeout(_TOO_LONG, limit="total")
        return UpstreamSilent(_TOO_LONG, limit="idle" if self.begun else "first_byte")


class Model(Protocol):
    """Answers a request within its time limits. Implemented by ResilientModel, OpenAIModel and the tests' model."""

    def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk]:
        """Yield OpenAI chat.completion.chunk dictionaries as they arrive. Raises DomainErrors, among them
        UpstreamTimeout when the request's time is over and UpstreamSilent when the server is silent for too long."""

    async def complete(self, request: ModelRequest) -> dict[str, Any]:
        """Return one OpenAI chat.completion dictionary. Raises the same errors as `stream`."""

    async def embeddings(self, request: ModelRequest) -> bytes:
        """Return the server's JSON answer to an embeddings request, unparsed. Raises the same errors as `stream`."""
