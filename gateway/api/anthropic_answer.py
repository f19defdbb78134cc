"""Answers of /v1/messages: the events of a turn, or of a client's own task, as the events of one Anthropic message. An
answer that is not streamed is built from the same events."""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from gateway import sse
from gateway.api.answer_builder import AnswerBuilder
from gateway.api.anthropic_errors import anthropic_error
from gateway.api.errors import as_domain_error
from gateway.api.openai_body import CompletionBody
from gateway.limits.money import figure_of
from gateway.models import Run
from gateway.steps import refusal_in
from gateway.tool_calls import FiniteNumbers, object_in
from gateway.turns.events import Delta, Done
from gateway.upstream.reasoning import reasoning_in
from memories.ids import uuid7

Event = dict[str, Any]
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


class MessageBuilder(AnswerBuilder):
    """A message while it is written. Only one block is open at a time: pieces of another block wait until the open one
    is complete. `input_tokens` is an estimate, for clients that read it only in the first event."""

    keep_alive = sse.event("ping", {"type": "ping"})

    def __init__(self, body: CompletionBody, *, input_tokens: int) -> None:
        super().__init__()
        self._body = body
        self._input_tokens = input_tokens
        self._ended = self._refused = False
        self._index = -1
        self._open: Block | None = None
        self._arguments: list[str] = []  # of the open call
        # Whether they begin like a JSON object; None before the first character. Others are sent once complete.
        self._is_object: bool | None = None
        self._leading_space = ""  # held back, since white space alone does not make a text block

    def whole(self) -> dict[str, Any]:
        return assemble(self._events) if self._ended else {}

    def fail(self, error: Exception) -> bytes:
        return sse.event("error", anthropic_error(as_domain_error(error)))

    def _start(self) -> None:
        message: Event = {
            "id": f"msg_{uuid7().hex}",
            "type": "message",
            "role": "assistant",
            "model": self._body.agent,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {**_NO_USAGE, "input_tokens": self._input_tokens},
        }
        self._emit("message_start", message=message)

    def _add_delta(self, delta: Delta, part: dict[str, Any]) -> None:
        self._refused = self._refused or bool(refusal_in(part))
        if thinking := reasoning_in(part):
            self._add_piece(_THINKING, thinking)
        if delta.text:
            self._add_text(delta.text)
        for call in delta.calls:
            function = call.get("function") or {}
            first = call if call.get("id") else _CONTINUED
            self._add_piece(("tool_use", call["index"]), function.get("arguments") or "", first)

    def _finish(self, done: Done) -> None:
        self._close()
        self._emit("message_delta", delta=self._stop(done), usage=_usage(done.new_usage))
        self._emit("message_stop")
        self._ended = True

    def _add_text(self, text: str) -> None:
        if self._open != _TEXT and not self._order.waits:
            text = self._leading_space + text
            self._leading_space = "" if text.strip() else text
            if self._leading_space:
                return
        self._add_piece(_TEXT, text)

    def _add_piece(self, block: Block, text: str, call: Mapping[str, Any] = _CONTINUED) -> None:
        arguments = text if block[0] == "tool_use" else None
        self._order.add(block, partial(self._write, block, text, call), arguments)

    def _write(self, block: Block, text: str, call: Mapping[str, Any]) -> None:
        if self._open != block:
            self._close()
            self._index += 1
            self._open, self._arguments, self._is_object, self._leading_space = block, [], None, ""
            self._numbers = FiniteNumbers()
            self._emit("content_block_start", index=self._index, content_block=self._empty(block[0], call))
        if block[0] == "tool_use" and text:
            self._arguments.append(text)
            if self._is_object is None and text.strip():
                self._is_object, text = text.lstrip().startswith("{"), "".join(self._arguments)
            if not self._is_object:
                return
            text = self._numbers.take(text)
        if text:
            self._emit_delta(*_DELTAS[block[0]], text)

    def _emit_delta(self, kind: str, name: str, text: str) -> None:
        self._emit("content_block_delta", index=self._index, delta={"type": kind, name: text})

    def _close(self) -> None:
        if self._open is None:
            return
        if self._open[0] == "tool_use" and not self._is_object and (parsed := object_in("".join(self._arguments))):
            self._emit_delta(*_DELTAS["tool_use"], json.dumps(parsed, ensure_ascii=False))
        elif rest := self._numbers.end():
            self._emit_delta(*_DELTAS["tool_use"], rest)
        if self._open[0] == "thinking":
            self._emit_delta("signature_delta", "signature", _SIGNATURE)
        self._open = None
        self._emit("content_block_stop", index=self._index)

    def _empty(self, kind: str, call: Mapping[str, Any]) -> dict[str, Any]:
        if kind == "tool_use":
            name = (call.get("function") or call.get("custom") or {}).get("name", "")
            return {"type": "tool_use", "id": call.get("id", ""), "name": self._body.names.get(name, name), "input": {}}
        if kind == "thinking":
            return {"type": "thinking", "thinking": "", "signature": ""}
        return {"type": "text", "text": ""}

    def _stop(self, done: Done) -> dict[str, str | None]:
        """Return `stop_reason` and `stop_sequence`. The choice is the last one of a stream, or a whole completion."""
        if done.state == Run.State.AWAITING_CLIENT_TOOLS:
            return {"stop_reason": "tool_use", "stop_sequence": None}
        last = done.choice if self._body.stream else done.choice["choices"][0]
        for name in _STOP_SEQUENCE_FIELDS:
            if isinstance(last.get(name), str) and last[name] in (self._body.parameters.get("stop") or ()):
                return {"stop_reason": "stop_sequence", "stop_sequence": last[name]}
        finish_reason = "content_filter" if self._refused else done.finish_reason
        return {"stop_reason": _STOP_REASONS.get(finish_reason, "end_turn"), "stop_sequence": None}


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
