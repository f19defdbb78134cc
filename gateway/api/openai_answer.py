"""Writes a turn as an OpenAI chat completion or as a stream of chunks. Fields of the upstream are passed on, except the
id, the model name, the usage and the tool calls, which are those of the whole turn. A turn that calls the client's
tools consists of several completions, each with its own id, since clients store messages by these ids.

Only the first choice is the turn's. The further ones that a request asks for (`n`) are passed on as the server sent
them."""

import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

from gateway import sse
from gateway.api.errors import as_domain_error
from gateway.errors import UpstreamUnreachable
from gateway.models import Run
from gateway.steps import refusal_in
from gateway.turns.events import Delta, Done
from gateway.turns.joined import AnyTurn
from gateway.upstream.collected import MAX_CHOICES
from memories.ids import uuid7

_NO_FIELDS: Mapping[str, Any] = {}
_PLAIN_DELTA = frozenset({"role", "content"})
_CHOICE_FIELDS = frozenset({"index", "delta", "finish_reason", "logprobs"})


async def whole_completion(turn: AnyTurn) -> dict[str, Any]:
    """Run a turn to its end and return it as a chat.completion. Raises DomainErrors."""
    async with aclosing(turn.events()) as events:
        async for event in events:
            if isinstance(event, Done):
                return _completion(turn, event)
    raise UpstreamUnreachable("The model server gave no answer.")


def _completion(turn: AnyTurn, done: Done) -> dict[str, Any]:
    answer = {
        "created": int(time.time()),
        "system_fingerprint": None,  # some clients require the field
        **done.choice,
        "id": _new_id(),
        "object": "chat.completion",
        "model": turn.context.agent.name,
    }
    first, *others = (dict(choice) for choice in answer["choices"])
    further = _FurtherChoices(turn)
    upstream_message = first.get("message") or {}
    text = done.new_text
    if refusal := refusal_in(upstream_message):  # it has its own field
        text = text.removesuffix(refusal).rstrip()
    message = {"role": "assistant", **upstream_message, "content": text or None}
    message.pop("tool_calls", None)
    if done.client_calls:
        message["tool_calls"] = done.client_calls
    first |= {"message": message, "finish_reason": _finish_reason(done)}
    answer["choices"] = [first, *filter(further.take, others)]
    if done.new_usage:
        answer["usage"] = {**(answer.get("usage") or {}), **_usage(done.new_usage)}
    return answer


async def completion_chunks(turn: AnyTurn, *, include_usage: bool) -> AsyncGenerator[bytes]:
    """Run a turn and yield its chunks as server-sent events, with `[DONE]` after the commit. Raises DomainErrors."""
    completion_id, agent, around = _new_id(), turn.context.agent.name, _NO_FIELDS
    head = _chunk_head(completion_id, agent, around)
    started, further = False, _FurtherChoices(turn)
    async with aclosing(turn.events()) as events:
        async for event in events:
            if not isinstance(event, Delta | Done):
                continue
            if isinstance(event, Delta) and event.choice.get("index") and not further.take(event.choice):
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
                yield head + b'],"usage":' + sse.encode(_usage(event.new_usage)) + b"}\n\n"
    yield sse.DONE_LINE


class _FurtherChoices:
    """The choices after the first that the request of a turn asked for."""

    def __init__(self, turn: AnyTurn) -> None:
        count = turn.options.parameters.get("n")
        self._indexes = set(range(1, count)) if isinstance(count, int) and count <= MAX_CHOICES else set()

    def take(self, choice: Mapping[str, Any]) -> bool:
        """Return True if a choice, or a piece of it, should be sent. Each is sent up to its end only, since each step
        of a turn brings all of them again."""
        index = choice.get("index")
        if not isinstance(index, int) or index not in self._indexes:
            return False
        if choice.get("finish_reason"):
            self._indexes.remove(index)
        return True


def _usage(usage: Mapping[str, Any]) -> dict[str, Any]:
    """Return a usage with the totals that clients add up, as 0 if the server did not report them."""
    prompt, completion = usage.get("prompt_tokens", 0), usage.get("completion_tokens", 0)
    total = usage.get("total_tokens") or prompt + completion
    return {"prompt_tokens": prompt, "completion_tokens": completion, **usage, "total_tokens": total}


def _new_id() -> str:
    return f"chatcmpl-{uuid7().hex}"


def _chunk_head(completion_id: str, agent: str, around: Mapping[str, Any]) -> bytes:
    """Return the encoded start of a chunk, up to its choices. It is reused until a field in it changes."""
    head = {
        **around,
        "id": completion_id,
        "object": "chat.completion.chunk",
        "created": int(time.time()),
        "model": agent,
    }
    return b"data: " + sse.encode(head)[:-1] + b',"choices":['


def error_line(error: Exception) -> bytes:
    """Return an error as the last chunk of a stream, in OpenAI's format."""
    return sse.data_line(as_domain_error(error).as_json())


def _delta(event: Delta) -> bytes:
    choice = event.choice
    delta = choice.get("delta") or {}
    if choice.get("index"):
        return sse.encode(choice)
    is_text_only = delta.keys() <= _PLAIN_DELTA and choice.keys() <= _CHOICE_FIELDS and not choice.get("logprobs")
    if is_text_only and not event.calls:
        return b'{"index":0,"delta":{"content":' + sse.encode(event.text) + b'},"finish_reason":null}'
    sent = {key: value for key, value in delta.items() if key not in {"tool_calls", "role"}}
    if not refusal_in(delta) and (event.text or isinstance(sent.get("content"), str)):
        sent["content"] = event.text  # which may have been held back
    if event.calls:
        sent["tool_calls"] = event.calls
    return sse.encode({"index": 0, **choice, "delta": sent, "finish_reason": None})


def _last_choice(done: Done) -> dict[str, Any]:
    extra = {name: value for name, value in done.choice.items() if name not in _CHOICE_FIELDS}
    return {"index": 0, **extra, "delta": {}, "finish_reason": _finish_reason(done)}


def _finish_reason(done: Done) -> str:
    if done.state == Run.State.AWAITING_CLIENT_TOOLS:
        return "tool_calls"
    return done.finish_reason if done.finish_reason != "tool_calls" else "stop"
