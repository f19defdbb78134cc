"""Answers of /v1/messages: the events of a turn, or of a client's own task, as the events of one Anthropic message. An
answer that is not streamed is built from the same events."""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any

from gateway import sse
from gateway.api.anthropic_errors import anthropic_error
from gateway.api.block_order import BlockOrder
from gateway.api.errors import as_domain_error
from gateway.limits.money import figure_of
from gateway.models import Run
from gateway.steps import refusal_in
from gateway.tool_calls import object_in
from gateway.turns.events import Delta, Done
from gateway.turns.events import Event as TurnEvent
from gateway.upstream.reasoning import reasoning_in
from memories.ids import uuid7

Event = dict[str, Any]
PING = sse.event("ping", {"type": "ping"})
# Clients send thinking back with a signature. It is ignored, since Daybook stores the reasoning that servers need.
_SIGNATURE = "daybook"
_NO_USAGE = {"input_tokens": 0, "output_tokens": 0, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
_DELTAS = {
    "text": ("text_delta", "text"),
    "thinking": ("thinking_delta", "thinking"),
    "tool_use": ("input_json_delta", "partial_json"),
}
_FIELDS = {**dict(_DELTAS.values()), "signature_delta": "signature"}  # by type of delta, the field with its text
_STOP_REASONS = {"length": "max_tokens", "content_filter": "refusal"}
_STOP_SEQUENCE_FIELDS = ("stop_reason", "matched_stop")  # vLLM, SGLang

Block = tuple[str, int]  # its type, and the index of a call within its step
_TEXT, _THINKING = ("text", -1), ("thinking", -1)
_CONTINUED: Mapping[str, Any] = {}  # for pieces of a call after the first


class MessageEvents:
    """Builds the events of a message from the pieces of a model's answer. Only one block is open at a time: pieces of
    another block wait until the open one is complete. `model` is the name in the request; `names` are the client's tool
    names by those the model sees; `input_tokens` is an estimate, for clients that read it only in the first event."""

    def __init__(self, model: str, names: Mapping[str, str], *, input_tokens: int = 0) -> None:
        self._model = model
        self._input_tokens = input_tokens
        self._names = names
        self._begun = False
        self._index = -1
        self._open: Block | None = None
        self._order = BlockOrder()
        self._arguments: list[str] = []  # of the open call
        # Whether they begin like a JSON object; None before the first character. Others are sent once complete.
        self._is_object: bool | None = None
        self._leading_space = ""  # held back, since white space alone does not make a text block

    def add(self, thinking: str, text: str, calls: Sequence[Mapping[str, Any]]) -> Iterator[Event]:
        """Yield the events for one delta. `calls` are pieces of tool calls as chat completions stream them."""
        yield from self._begin()
        if thinking:
            yield from self._add(_THINKING, thinking)
        if text:
            yield from self._add_text(text)
        for call in calls:
            function = call.get("function") or {}
            first = call if call.get("id") else _CONTINUED
            yield from self._add(("tool_use", call["index"]), function.get("arguments") or "", first)

    def end(self, reason: str, sequence: str | None, usage: Mapping[str, int]) -> Iterator[Event]:
        """Yield the events that end the message."""
        yield from self._begin()
        for emit in self._order.end():
            yield from emit()
        yield from self._close()
        stop = {"stop_reason": reason, "stop_sequence": sequence}
        yield {"type": "message_delta", "delta": stop, "usage": dict(usage)}
        yield {"type": "message_stop"}

    def _begin(self) -> Iterator[Event]:
        if self._begun:
            return
        self._begun = True
        message: Event = {
            "id": f"msg_{uuid7().hex}",
            "type": "message",
            "role": "assistant",
            "model": self._model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {**_NO_USAGE, "input_tokens": self._input_tokens},
        }
        yield {"type": "message_start", "message": message}

    def _add_text(self, text: str) -> Iterator[Event]:
        if self._open != _TEXT and not self._order.waits:
            text = self._leading_space + text
            self._leading_space = "" if text.strip() else text
            if self._leading_space:
                return
        yield from self._add(_TEXT, text)

    def _add(self, block: Block, text: str, call: Mapping[str, Any] = _CONTINUED) -> Iterator[Event]:
        arguments = text if block[0] == "tool_use" else None
        for emit in self._order.add(block, partial(self._emit, block, text, call), arguments):
            yield from emit()

    def _emit(self, block: Block, text: str, call: Mapping[str, Any]) -> Iterator[Event]:
        if self._open != block:
            yield from self._close()
            self._index += 1
            self._open, self._arguments, self._is_object, self._leading_space = block, [], None, ""
            yield {"type": "content_block_start", "index": self._index, "content_block": self._empty(block[0], call)}
        if block[0] == "tool_use" and text:
            self._arguments.append(text)
            if self._is_object is None and text.strip():
                self._is_object, text = text.lstrip().startswith("{"), "".join(self._arguments)
            if not self._is_object:
                return
        if text:
            yield self._delta(block[0], text)

    def _delta(self, block_type: str, text: str) -> Event:
        kind, name = _DELTAS[block_type]
        return {"type": "content_block_delta", "index": self._index, "delta": {"type": kind, name: text}}

    def _close(self) -> Iterator[Event]:
        if self._open is None:
            return
        if self._open[0] == "tool_use" and not self._is_object and (parsed := object_in("".join(self._arguments))):
            yield self._delta("tool_use", json.dumps(parsed, ensure_ascii=False))
        if self._open[0] == "thinking":
            signature = {"type": "signature_delta", "signature": _SIGNATURE}
            yield {"type": "content_block_delta", "index": self._index, "delta": signature}
        self._open = None
        yield {"type": "content_block_stop", "index": self._index}

    def _empty(self, kind: str, call: Mapping[str, Any]) -> dict[str, Any]:
        if kind == "tool_use":
            name = (call.get("function") or call.get("custom") or {}).get("name", "")
            return {"type": "tool_use", "id": call.get("id", ""), "name": self._names.get(name, name), "input": {}}
        if kind == "thinking":
            return {"type": "thinking", "thinking": "", "signature": ""}
        return {"type": "text", "text": ""}


async def message_events(
    turn_events: AsyncGenerator[TurnEvent], builder: MessageEvents, parameters: Mapping[str, Any]
) -> AsyncGenerator[Event]:
    """Run a turn and yield the events of its message. `parameters` are those of the request. Raises DomainErrors."""
    refused = False
    async with aclosing(turn_events) as events:
        async for event in events:
            if isinstance(event, Delta):
                if event.choice.get("index"):
                    continue
                part = event.choice.get("delta") or event.choice.get("message")
                part = part if isinstance(part, dict) else {}
                refused = refused or bool(refusal_in(part))
                for message_event in builder.add(reasoning_in(part), event.text, event.calls):
                    yield message_event
            elif isinstance(event, Done):
                awaits_tools = event.state == Run.State.AWAITING_CLIENT_TOOLS
                finish_reason = "content_filter" if refused else event.finish_reason
                stop = _stop_reason(finish_reason, event.choice, parameters, awaits_tools=awaits_tools)
                for message_event in builder.end(*stop, _usage(event.new_usage)):
                    yield message_event


async def event_lines(events: AsyncGenerator[Event]) -> AsyncGenerator[bytes]:
    """Yield the events encoded as server-sent events."""
    async with aclosing(events):
        async for event in events:
            yield sse.event(event["type"], event)


def error_event(error: Exception) -> bytes:
    """Return an error as the last event of a stream."""
    return sse.event("error", anthropic_error(as_domain_error(error)))


async def whole_message(events: AsyncIterator[Event]) -> dict[str, Any]:
    return assemble([event async for event in events])


def assemble(events: Sequence[Event]) -> dict[str, Any]:
    """Return the message that the events describe."""
    message: dict[str, Any] = {}
    blocks: list[dict[str, Any]] = []
    for event in events:
        if event["type"] == "message_start":
            message = event["message"]
        elif event["type"] == "content_block_start":
            blocks.append(dict(event["content_block"]))
        elif event["type"] == "content_block_delta":
            block, name = blocks[-1], _FIELDS[event["delta"]["type"]]
            block[name] = block.get(name, "") + event["delta"][name]
        elif event["type"] == "message_delta":
            message = {**message, **event["delta"], "usage": event["usage"]}
    for block in blocks:
        if block["type"] == "tool_use":
            block["input"] = object_in(block.pop("partial_json", ""))
    return {**message, "content": blocks}


def _stop_reason(
    finish_reason: str, choice: Mapping[str, Any], parameters: Mapping[str, Any], *, awaits_tools: bool
) -> tuple[str, str | None]:
    """Return `stop_reason` and `stop_sequence`. `choice` is the last choice of a stream, or a whole completion."""
    if awaits_tools:
        return "tool_use", None
    choices = choice.get("choices")
    last = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else choice
    for name in _STOP_SEQUENCE_FIELDS:
        if isinstance(last.get(name), str) and last[name] in (parameters.get("stop") or ()):
            return "stop_sequence", last[name]
    return _STOP_REASONS.get(finish_reason, "end_turn"), None


def _usage(usage: Mapping[str, Any]) -> dict[str, int]:
    """Return an upstream's usage with Anthropic's fields, in which `input_tokens` excludes cached tokens."""
    read, written = (
        figure_of(usage, "prompt_tokens_details", name) for name in ("cached_tokens", "cache_write_tokens")
    )
    return {
        "input_tokens": max(figure_of(usage, "prompt_tokens") - read - written, 0),
        "output_tokens": figure_of(usage, "completion_tokens"),
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": read,
    }
