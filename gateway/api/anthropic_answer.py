"""Answers of /v1/messages: the events of a turn, or of a client's own task, as the events of one Anthropic message. An
answer that is not streamed is built from the same events."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from gateway import sse
from gateway.api.anthropic_errors import anthropic_error
from gateway.api.anthropic_events import DELTAS, Event, MessageEvents
from gateway.api.errors import as_domain_error
from gateway.limits.spending import figure_of
from gateway.models import Run
from gateway.steps import refusal_in
from gateway.tool_calls import object_in
from gateway.turns.events import Delta, Done
from gateway.turns.events import Event as TurnEvent
from gateway.upstream.reasoning import reasoning_in

PING = sse.event("ping", {"type": "ping"})
_FIELDS = {**dict(DELTAS.values()), "signature_delta": "signature"}  # by type of delta, the field with its text
_STOP_REASONS = {"length": "max_tokens", "content_filter": "refusal"}
_STOP_SEQUENCE_FIELDS = ("stop_reason", "matched_stop")  # vLLM, SGLang


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
    details = usage.get("prompt_tokens_details") or {}
    read, written = figure_of(details, "cached_tokens"), figure_of(details, "cache_write_tokens")
    return {
        "input_tokens": max(figure_of(usage, "prompt_tokens") - read - written, 0),
        "output_tokens": figure_of(usage, "completion_tokens"),
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": read,
    }
