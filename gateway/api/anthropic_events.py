"""The events of one message of the Anthropic Messages API, made from the pieces of a model's answer. Only one block is
open at a time: a piece of another block waits until the open one is complete."""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from gateway.api.block_order import BlockOrder
from gateway.tool_calls import object_in
from memories.ids import uuid7

Event = dict[str, Any]
# Clients send thinking back with its signature. It is not needed: Daybook stores the reasoning that a server wants
# back.
_SIGNATURE = "daybook"
_NO_USAGE = {"input_tokens": 0, "output_tokens": 0, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
DELTAS = {
    "text": ("text_delta", "text"),
    "thinking": ("thinking_delta", "thinking"),
    "tool_use": ("input_json_delta", "partial_json"),
}


Block = tuple[str, int]  # its kind, and the number of a call within its step
_TEXT, _THINKING = ("text", -1), ("thinking", -1)
_GOES_ON: Mapping[str, Any] = {}  # a call that has begun


class MessageEvents:
    """Makes the events of a message from its pieces. `model` is the name that the client asked for; `names` are the
    client's names of tools, by the names that the model knows; `given` is about how many tokens the client sent, which
    some clients read in the first event only."""

    def __init__(self, model: str, names: Mapping[str, str], *, given: int = 0) -> None:
        self._model = model
        self._given = given
        self._names = names
        self._begun = False
        self._index = -1
        self._open: Block | None = None
        self._order = BlockOrder()
        self._arguments: list[str] = []  # of the open call
        # Whether they begin as an object does, None before their first sign. Others are told when they are complete.
        self._is_object: bool | None = None
        self._blank = ""  # white space before the first word of a text: alone it is no block

    def take(self, thought: str, text: str, calls: Sequence[Mapping[str, Any]]) -> Iterator[Event]:
        """Yield the events for one delta. `calls` are pieces of tool calls as chat completions stream them."""
        yield from self._begin()
        if thought:
            yield from self._add(_THINKING, thought)
        if text:
            yield from self._add_text(text)
        for call in calls:
            function = call.get("function") or {}
            first = call if call.get("id") else _GOES_ON
            yield from self._add(("tool_use", call["index"]), function.get("arguments") or "", first)

    def end(self, reason: str, sequence: str | None, usage: Mapping[str, int]) -> Iterator[Event]:
        """Yield the events that end the message."""
        yield from self._begin()
        for tell in self._order.end():
            yield from tell()
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
            "usage": {**_NO_USAGE, "input_tokens": self._given},
        }
        yield {"type": "message_start", "message": message}

    def _add_text(self, text: str) -> Iterator[Event]:
        if self._open != _TEXT and not self._order.waits:
            text = self._blank + text
            self._blank = "" if text.strip() else text
            if self._blank:
                return
        yield from self._add(_TEXT, text)

    def _add(self, block: Block, text: str, call: Mapping[str, Any] = _GOES_ON) -> Iterator[Event]:
        arguments = text if block[0] == "tool_use" else None
        for tell in self._order.add(block, partial(self._tell, block, text, call), arguments):
            yield from tell()

    def _tell(self, block: Block, text: str, call: Mapping[str, Any]) -> Iterator[Event]:
        if self._open != block:
            yield from self._close()
            self._index += 1
            self._open, self._arguments, self._is_object, self._blank = block, [], None, ""
            yield {"type": "content_block_start", "index": self._index, "content_block": self._empty(block[0], call)}
        if block[0] == "tool_use" and text:
            self._arguments.append(text)
            if self._is_object is None and text.strip():
                self._is_object, text = text.lstrip().startswith("{"), "".join(self._arguments)
            if not self._is_object:
                return
        if text:
            yield self._delta(block[0], text)

    def _delta(self, of: str, text: str) -> Event:
        kind, name = DELTAS[of]
        return {"type": "content_block_delta", "index": self._index, "delta": {"type": kind, name: text}}

    def _close(self) -> Iterator[Event]:
        if self._open is None:
            return
        if self._open[0] == "tool_use" and not self._is_object and (given := object_in("".join(self._arguments))):
            yield self._delta("tool_use", json.dumps(given, ensure_ascii=False))
        if self._open[0] == "thinking":
            signed = {"type": "signature_delta", "signature": _SIGNATURE}
            yield {"type": "content_block_delta", "index": self._index, "delta": signed}
        self._open = None
        yield {"type": "content_block_stop", "index": self._index}

    def _empty(self, kind: str, call: Mapping[str, Any]) -> dict[str, Any]:
        if kind == "tool_use":
            name = (call.get("function") or call.get("custom") or {}).get("name", "")
            return {"type": "tool_use", "id": call.get("id", ""), "name": self._names.get(name, name), "input": {}}
        if kind == "thinking":
            return {"type": "thinking", "thinking": "", "signature": ""}
        return {"type": "text", "text": ""}
