"""The answers of /v1/messages: a turn, or a task of the client, as the events of one message. An answer that is not
streamed is built from the same events."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from django.conf import settings

from gateway import sse
from gateway.api.anthropic_errors import anthropic_error
from gateway.api.anthropic_events import DELTAS, Event, MessageEvents
from gateway.api.errors import as_domain_error
from gateway.limits.spending import figure_of
from gateway.models import Run
from gateway.passthrough import PlainCall, plain_step
from gateway.runs.client_tools import ClientCalls, tool_names
from gateway.steps import ModelStep, refusal_in
from gateway.tool_calls import object_in
from gateway.turns.events import Delta, Done
from gateway.turns.joined import AnyTurn
from gateway.upstream.reasoning import reasoning_in
from memories.ids import uuid7

PING = sse.event("ping", {"type": "ping"})
_FIELDS = dict(DELTAS.values())  # of a delta, the name of what it adds
_STOP_REASONS = {"length": "max_tokens", "content_filter": "refusal"}
_STOPPED_BY = ("stop_reason", "matched_stop")  # vLLM, SGLang: the sequence at which the model stopped


async def turn_events(turn: AnyTurn, names: Mapping[str, str], *, given: int) -> AsyncGenerator[Event]:
    """Run a turn to its end and yield the events of its message. `names`, `given`: see MessageEvents. Raises
    DomainErrors."""
    message = MessageEvents(turn.context.agent.name, names, given=given)
    refused = False
    async with aclosing(turn.events()) as events:
        async for event in events:
            if isinstance(event, Delta):
                if event.choice.get("index"):
                    continue
                refused = refused or _refuses(event.choice)
                for sent in message.take(_reasoning(event.choice), event.text, event.calls):
                    yield sent
            elif isinstance(event, Done):
                waits = event.state == Run.State.AWAITING_CLIENT_TOOLS
                finish = "content_filter" if refused else event.finish_reason
                reason = _stop_reason(finish, event.choice, turn.options.parameters, called=waits)
                for sent in message.end(*reason, _usage(event.new_usage)):
                    yield sent


async def plain_events(
    call: PlainCall, agent: str, names: Mapping[str, str], *, stream: bool, given: int
) -> AsyncGenerator[Event]:
    """Ask the model for a task of the client and yield the events of its message. Raises DomainErrors."""
    message = MessageEvents(agent, names, given=given)
    deadline = asyncio.get_running_loop().time() + settings.RUN_SECONDS
    step = ModelStep(deadline=deadline, bytes_left=settings.ANSWER_BYTES)
    request = call.request
    theirs = tool_names(request.tools) if request.tools else None
    calls = ClientCalls(uuid7(), start=0, theirs=theirs, ours=())
    refused = False
    async with aclosing(plain_step(call, step, stream=stream)) as choices:
        async for choice, text in choices:
            if choice.get("index"):
                continue
            refused = refused or _refuses(choice)
            for sent in message.take(_reasoning(choice), text, calls.news(step.calls)):
                yield sent
    for sent in message.take("", "", calls.news(step.calls, ended=True)):
        yield sent
    result = step.result()
    called = bool(calls.shown(step.calls, result.calls))
    finish = "content_filter" if refused else result.finish_reason
    reason = _stop_reason(finish, result.choice, request.parameters, called=called)
    for sent in message.end(*reason, _usage(result.usage)):
        yield sent


async def streamed(events: AsyncGenerator[Event]) -> AsyncGenerator[bytes]:
    """Yield the events as server-sent events."""
    async with aclosing(events):
        async for event in events:
            yield sse.event(event["type"], event)


def error_event(error: Exception) -> bytes:
    """Return an error as the last event of a stream."""
    return sse.event("error", anthropic_error(as_domain_error(error)))


async def whole(events: AsyncIterator[Event]) -> dict[str, Any]:
    """Return the message that the events make. Raises what the generator raises."""
    return whole_message([event async for event in events])


def whole_message(events: Sequence[Event]) -> dict[str, Any]:
    """Return the message that these events make."""
    message: dict[str, Any] = {}
    blocks: list[dict[str, Any]] = []
    pieces: list[list[str]] = []
    for event in events:
        if event["type"] == "message_start":
            message = event["message"]
        elif event["type"] == "content_block_start":
            blocks.append(dict(event["content_block"]))
            pieces.append([])
        elif event["type"] == "content_block_delta":
            delta = event["delta"]
            if delta["type"] == "signature_delta":
                blocks[-1]["signature"] = delta["signature"]
            else:
                pieces[-1].append(delta[_FIELDS[delta["type"]]])
        elif event["type"] == "message_delta":
            message = {**message, **event["delta"], "usage": event["usage"]}
    for block, texts in zip(blocks, pieces, strict=True):
        if block["type"] == "tool_use":
            block["input"] = object_in("".join(texts))
        else:
            block[block["type"]] = "".join(texts)
    return {**message, "content": blocks}


def _reasoning(choice: Mapping[str, Any]) -> str:
    part = choice.get("delta") or choice.get("message")
    return reasoning_in(part) if isinstance(part, dict) else ""


def _refuses(choice: Mapping[str, Any]) -> bool:
    """Return True if a delta or message says its text in the field for refusals."""
    part = choice.get("delta") or choice.get("message")
    return isinstance(part, dict) and bool(refusal_in(part))


def _stop_reason(
    finish_reason: str, choice: Mapping[str, Any], parameters: Mapping[str, Any], *, called: bool
) -> tuple[str, str | None]:
    """Return `stop_reason` and `stop_sequence`. `choice` is the one that ended the answer, or the whole answer."""
    if called:
        return "tool_use", None
    choices = choice.get("choices")
    last = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else choice
    for name in _STOPPED_BY:
        if isinstance(last.get(name), str) and last[name] in (parameters.get("stop") or ()):
            return "stop_sequence", last[name]
    return _STOP_REASONS.get(finish_reason, "end_turn"), None


def _usage(usage: Mapping[str, Any]) -> dict[str, int]:
    """Return the usage of an upstream in Anthropic's figures. `input_tokens` are those that no cache had."""
    details = usage.get("prompt_tokens_details") or {}
    read, written = figure_of(details, "cached_tokens"), figure_of(details, "cache_write_tokens")
    return {
        "input_tokens": max(figure_of(usage, "prompt_tokens") - read - written, 0),
        "output_tokens": figure_of(usage, "completion_tokens"),
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": read,
    }
