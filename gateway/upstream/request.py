"""A request to a model server: its content, its time limits, and what answers it."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from django.conf import settings

from gateway.errors import UpstreamSilent
from gateway.telemetry import NOTHING, Span
from gateway.upstream.answer import Chunk
from gateway.upstream.dialects import Dialect, dialect_of
from gateway.upstream.outgoing import request_body
from gateway.upstream.toolless import in_words
from memories.errors import DomainError, UpstreamTimeout

CHAT, COMPLETIONS, EMBEDDINGS = "/chat/completions", "/completions", "/embeddings"
"""The addresses of a model server that requests go to."""
_AFTER_END = 5.0  # seconds for what may follow the end of an answer
_TOO_LONG = "The model server took too long to answer."


@dataclass(frozen=True, slots=True)
class ModelTarget:
    """A model of an upstream with its fall-backs in their order, which have no fall-backs themselves."""

    upstream: str
    model: str
    fallbacks: "tuple[ModelTarget, ...]" = ()

    @property
    def all(self) -> "tuple[ModelTarget, ...]":
        """This target and its fall-backs, each without fall-backs and only once."""
        return tuple(dict.fromkeys((ModelTarget(self.upstream, self.model), *self.fallbacks)))

    def preferring(self, first: "ModelTarget") -> "ModelTarget":
        """Return the targets with this one first; it is added if it is not among them."""
        rest = (target for target in self.all if (target.upstream, target.model) != (first.upstream, first.model))
        return ModelTarget(first.upstream, first.model, tuple(rest))


@dataclass(slots=True)
class Course:
    """How a request was answered: by whom, and its attempts if any failed. An attempt is `{upstream, model, fault,
    seconds}`; `fault` is "" for the attempt that succeeded. `toolless` is the model that took none of our tools."""

    by: ModelTarget | None = None
    toolless: ModelTarget | None = None
    attempts: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One model step; or, at another `path` than CHAT, a request without messages, given entirely by `parameters`.

    `parameters` are the client's own (temperature, …), passed on unchanged. `seconds` limits the whole request; 0
    stands for the longest time of a run. `first_byte` limits the seconds until the answer begins, in addition to the
    upstream's own limit; 0 sets no limit. `owner` is the person who waits, for upstreams that limit their requests.
    `spare` are the names of tools that are left out where the model takes none: ours in a turn, for which a client did
    not ask. `functions_only`: offer custom tools as functions if the server may not know them. `course` is filled while
    the request is answered. `span` belongs to the trace."""

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
    spare: frozenset[str] = frozenset()
    course: Course = field(default_factory=Course, compare=False)

    @property
    def answered_by(self) -> tuple[str, str]:
        """The upstream and model that answered, or that will be asked first."""
        by = self.course.by or self
        return by.upstream, by.model

    @property
    def alone(self) -> bool:
        """Whether one choice is the whole answer."""
        return self.path == CHAT and self.parameters.get("n") in (None, 1)

    def dialect(self) -> Dialect:
        dialect = dialect_of(self.upstream)
        return replace(dialect, custom_tools=False) if self.functions_only and not dialect.custom_tools else dialect

    def without_spare(self) -> "ModelRequest":
        """Return the request without its spare tools; itself if it has none. If no tool is left, calls of them in the
        messages are told in words."""
        if not self.spare:
            return self
        named = ((tool, tool.get("function")) for tool in self.tools)
        kept = [tool for tool, part in named if not isinstance(part, dict) or part.get("name") not in self.spare]
        messages = self.messages if kept else tuple(in_words(self.messages, self.spare))
        return replace(self, tools=tuple(kept), messages=messages, spare=frozenset())

    def body(self, *, stream: bool, dialect: Dialect | None = None) -> dict[str, Any]:
        """Return the request as it is sent; the dialect is that of its upstream if none is given."""
        body = {**self.parameters, "model": self.model}
        if self.path == CHAT:
            body["messages"] = list(self.messages)
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
        dialect = dialect or self.dialect()
        if self.path == EMBEDDINGS:  # the dialect's `set` is for models that write text
            dialect = replace(dialect, set={})
        return request_body(body, dialect, upstream=self.upstream)

    def headers(self) -> dict[str, str]:
        """Return headers that identify the request and its trace to the server."""
        return {**({"x-request-id": self.request_id} if self.request_id else {}), **self.span.headers()}


class Deadlines:
    """The deadlines of a running request at a server of that dialect, in the event loop's time: until its answer
    begins, between two pieces of the answer, and in all. The time to connect is limited by the client."""

    def __init__(self, request: ModelRequest, dialect: Dialect) -> None:
        self._loop = asyncio.get_running_loop()
        start, seconds = self._loop.time(), request.seconds or settings.RUN_SECONDS
        first_byte = dialect.first_byte_seconds or settings.UPSTREAM_FIRST_BYTE_SECONDS or seconds
        self.total = start + seconds  # the moment at which the request ends in any case
        self._first_byte = start + min(first_byte, request.first_byte or seconds, seconds)
        self._idle = dialect.idle_seconds or settings.UPSTREAM_IDLE_SECONDS
        self.whole = False  # whether the first byte arrives when the answer is complete
        self.begun = False  # whether the answer has begun
        self.finished = False  # whether the model has said why it stopped; the usage may follow

    @property
    def over(self) -> bool:
        """Whether the request has no time left."""
        return self._loop.time() >= self.total

    def next(self) -> float:
        """Return the moment before which the next bytes must arrive."""
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
    """Answers a model step within the time limits of the request. Implemented by Attempts, OpenAIModel and the tests'
    scripted model."""

    def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk]:
        """Yield OpenAI chat.completion.chunk dictionaries as they arrive. Raises DomainErrors: UpstreamTimeout when the
        request's time is over, UpstreamSilent when the server is silent for too long."""

    async def complete(self, request: ModelRequest) -> dict[str, Any]:
        """Return one OpenAI chat.completion dictionary. Raises the same errors as `stream`."""

    async def passed(self, request: ModelRequest) -> bytes:
        """Return the unchanged JSON of an answer that is not a completion. Raises the same errors as `stream`."""
