"""A turn as a chat completion of OpenAI, or as the chunks of a stream. Fields of the upstream are passed on, except
ids, the name of the model, the usage and the tool calls, which are those of the whole turn. Each completion
has an id of its own: a turn that calls tools of the client is several, and clients keep their messages by these ids."""

import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

from gateway import sse
from gateway.api.errors import as_domain_error
from gateway.errors import UpstreamUnreachable
from gateway.models import Run
from gateway.runs.context import TurnContext
from gateway.steps import refusal_in
from gateway.turns.events import Delta, Done
from gateway.turns.joined import AnyTurn
from memories.ids import uuid7

_NO_FIELDS: Mapping[str, Any] = {}
_PLAIN_DELTA = frozenset({"role", "content"})
_CHOICE_FIELDS = frozenset({"index", "delta", "finish_reason", "logprobs"})  # of a choice


async def whole_completion(turn: AnyTurn) -> dict[str, Any]:
    """Run a turn to its end and return it as a chat.completion. Raises DomainErrors."""
    async with aclosing(turn.events()) as events:
        async for event in events:
            if isinstance(event, Done):
                return _completion(turn.context, event)
    raise UpstreamUnreachable("The model server gave no answer.")


def _completion(context: TurnContext, done: Done) -> dict[str, Any]:
    answer = {
        "created": int(time.time()),
        "system_fingerprint": None,  # some clients want the field, whether the server has one or not
        **done.choice,
        "id": _new_id(),
        "object": "chat.completion",
        "model": context.agent.name,
    }
    first, *others = (dict(choice) for choice in answer["choices"])
    given = first.get("message") or {}
    text = done.new_text
    if refused := refusal_in(given):  # a refusal has a field of its own
        text = text.removesuffix(refused).rstrip()
    message = {"role": "assistant", **given, "content": text or None}
    message.pop("tool_calls", None)
    if done.client_calls:
        message["tool_calls"] = done.client_calls
    first |= {"message": message, "finish_reason": _finish_reason(done)}
    answer["choices"] = [first, *others]
    if done.new_usage:
        answer["usage"] = {**(answer.get("usage") or {}), **_figures(done.new_usage)}
    return answer


async def completion_chunks(turn: AnyTurn, *, include_usage: bool) -> AsyncGenerator[bytes]:
    """Run a turn and yield its chunks as server-sent events; `[DONE]` follows the closing commit. Raises
    DomainErrors."""
    completion_id, agent, around = _new_id(), turn.context.agent.name, _NO_FIELDS
    head = _chunk_head(completion_id, agent, around)
    started = False
    async with aclosing(turn.events()) as events:
        async for event in events:
            if not isinstance(event, Delta | Done):
                continue
            if event.around is not around:
                around = event.around
                head = _chunk_head(completion_id, agent, around)
            if not started:
                started = True
                yield head + b'{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}\n\n'
            if isinstance(event, Delta):
                yield head + _delta(event) + b"]}\n\n"
                continue
            yield head + sse.encode(_last_choice(event)) + b"]}\n\n"
            if include_usage:
                yield head + b'],"usage":' + sse.encode(_figures(event.new_usage)) + b"}\n\n"
    yield sse.DONE_LINE


def _figures(usage: Mapping[str, Any]) -> dict[str, Any]:
    """Return a usage with every figure that a client which asked for it adds up; 0 is what no server told."""
    given, made = usage.get("prompt_tokens", 0), usage.get("completion_tokens", 0)
    total = usage.get("total_tokens") or given + made
    return {"prompt_tokens": given, "completion_tokens": made, **usage, "total_tokens": total}


def _new_id() -> str:
    return f"chatcmpl-{uuid7().hex}"


def _chunk_head(completion_id: str, agent: str, around: Mapping[str, Any]) -> bytes:
    """Return the beginning of a chunk, up to its choices. It is encoded again only when the fields beside them
    change."""
    head = {
        **around,
        "id": completion_id,
        "object": "chat.completion.chunk",
        "created": int(time.time()),
        "model": agent,
    }
    return b"data: " + sse.encode(head)[:-1] + b',"choices":['


def error_line(error: Exception) -> bytes:
    """Return an error as the last chunk of a stream, as OpenAI clients understand it."""
    return sse.data_line(as_domain_error(error).as_json())


def _delta(event: Delta) -> bytes:
    choice = event.choice
    delta = choice.get("delta") or {}
    if choice.get("index"):
        return sse.encode(choice)  # a further choice that the client asked for is passed on as it is
    is_text_only = delta.keys() <= _PLAIN_DELTA and choice.keys() <= _CHOICE_FIELDS and not choice.get("logprobs")
    if is_text_only and not event.calls:
        return b'{"index":0,"delta":{"content":' + sse.encode(event.text) + b'},"finish_reason":null}'
    kept = {key: value for key, value in delta.items() if key not in {"tool_calls", "role"}}
    if event.text and not refusal_in(delta):
        kept["content"] = event.text
    if event.calls:
        kept["tool_calls"] = event.calls
    return sse.encode({"index": 0, **choice, "delta": kept, "finish_reason": None})


def _last_choice(done: Done) -> dict[str, Any]:
    beside = {name: value for name, value in done.choice.items() if name not in _CHOICE_FIELDS}
    return {"index": 0, **beside, "delta": {}, "finish_reason": _finish_reason(done)}


def _finish_reason(done: Done) -> str:
    if done.state == Run.State.AWAITING_CLIENT_TOOLS:
        return "tool_calls"
    return done.finish_reason if done.finish_reason != "tool_calls" else "stop"
