"""Answers of APIs whose streams are not those of chat completions, built from the events of a turn."""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from typing import Any

from django.http import HttpResponseBase

from gateway import sse
from gateway.api.block_order import BlockOrder
from gateway.api.responding import respond
from gateway.errors import UpstreamUnreachable
from gateway.runs.context import TurnContext
from gateway.turns.events import Delta, Done, Event


class AnswerBuilder(ABC):
    """Collects the events of an answer's stream."""

    keep_alive = sse.KEEP_ALIVE  # sent while the stream is silent

    def __init__(self) -> None:
        self._events: list[dict[str, Any]] = []
        self._begun = False
        self._order = BlockOrder()

    def add(self, event: Event) -> None:
        if isinstance(event, Delta) and not event.choice.get("index"):  # such an answer has only one choice
            self._begin()
            self._add_delta(event, event.choice.get("delta") or event.choice.get("message") or {})
        elif isinstance(event, Done):
            self._begin()
            self._order.end()
            self._finish(event)

    def take_events(self) -> bytes:
        """Return the events since the last call, encoded as server-sent events."""
        events, self._events = self._events, []
        return b"".join(sse.event(event["type"], event) for event in events)

    @abstractmethod
    def fail(self, error: Exception) -> bytes:
        """End the answer with an error, and return its last events like `take_events`."""

    @abstractmethod
    def whole(self) -> dict[str, Any]:
        """Return the complete answer if no events were taken. It is empty if the turn has not ended."""

    @abstractmethod
    def _start(self) -> None:
        """Emit the first events."""

    @abstractmethod
    def _add_delta(self, delta: Delta, part: dict[str, Any]) -> None:
        """Emit the events for one delta. `part` is the `delta` or `message` of its choice."""

    @abstractmethod
    def _finish(self, done: Done) -> None:
        """End the answer. Its turn has been stored."""

    def _begin(self) -> None:
        if not self._begun:
            self._begun = True
            self._start()

    def _emit(self, kind: str, **fields: Any) -> None:
        self._events.append({"type": kind, **fields})


async def respond_built(
    events: AsyncGenerator[Event], builder: AnswerBuilder, *, stream: bool, context: TurnContext | None = None
) -> HttpResponseBase:
    """Run a turn and return its answer like `respond`."""
    whole, pieces = partial(_whole, events, builder), partial(_pieces, events, builder)
    return await respond(whole, pieces, builder.fail, stream=stream, context=context, keep_alive=builder.keep_alive)


async def _whole(events: AsyncGenerator[Event], builder: AnswerBuilder) -> dict[str, Any]:
    async with aclosing(events):
        async for event in events:
            builder.add(event)
    if answer := builder.whole():
        return answer
    raise UpstreamUnreachable("The model server gave no answer.")


async def _pieces(events: AsyncGenerator[Event], builder: AnswerBuilder) -> AsyncGenerator[bytes]:
    async with aclosing(events):
        async for event in events:
            builder.add(event)
            if pending := builder.take_events():
                yield pending
