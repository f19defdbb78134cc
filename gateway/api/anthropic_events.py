"""The events of one message of the Anthropic Messages API, made from the pieces of a model's answer. Only one block is
open at a time: a piece of another block waits until the open one is complete."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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


@dataclass(frozen=True, slots=True)
class _Piece:
    kind: str
    text: str
    number: int = -1  # of a call, within its step
    call: Mapping[str, Any] | None = None  # its beginning

    @property
    def block(self) -> tuple[str, int]:
        return self.kind, self.number


class MessageEvents:
    """Yields the events of a message as its pieces come. `model` is the name that the client asked for, `names` what it
    calls tools that the model knows otherwise."""

    def __init__(self, model: str, names: Mapping[str, str]) -> None:
        self._model = model
        self._names = names
        self._begun = False
        self._index = -1
        self._open: tuple[str, int] | None = None
        self._closed: set[tuple[str, int]] = set()  # calls that are complete
        self._arguments: list[str] = []  # of the open call
        self._looked_at = -1  # how many of these were no complete JSON
        self._held: list[_Piece] = []
        self._blank = ""  # white space before the first word of a text: alone it is no block

    def take(self, thought: str, text: str, calls: Sequence[Mapping[str, Any]]) -> Iterator[Event]:
        """Yield the events for one delta. `calls` are pieces of tool calls as chat completions stream them."""
        yield from self._begin()
        if thought:
            yield from self._add(_Piece("thinking", thought))
        if text:
            yield from self._add_text(text)
        for call in calls:
            function = call.get("function") or {}
            first = call if call.get("id") else None
            yield from self._add(_Piece("tool_use", function.get("arguments") or "", call["index"], first))

    def end(self, reason: str, sequence: str | None, usage: Mapping[str, int]) -> Iterator[Event]:
        """Yield the events that end the message."""
        yield from self._begin()
        yield from self._release(ended=True)
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
            "usage": _NO_USAGE,
        }
        yield {"type": "message_start", "message": message}

    def _add_text(self, text: str) -> Iterator[Event]:
        if self._open != ("text", -1) and not self._held:
            text = self._blank + text
            self._blank = "" if text.strip() else text
            if self._blank:
                return
        yield from self._add(_Piece("text", text))

    def _add(self, piece: _Piece) -> Iterator[Event]:
        if piece.block in self._closed:
            return
        if self._open == piece.block:
            yield from self._delta(piece)
        elif self._held or not self._may_close():
            self._held.append(piece)
            yield from self._release()
        else:
            yield from self._switch(piece)

    def _release(self, *, ended: bool = False) -> Iterator[Event]:
        """Go on with what was held, as soon as the open block is complete; each block whole."""
        while self._held and (ended or self._may_close()):
            block = self._held[0].block
            first, *more = [piece for piece in self._held if piece.block == block]
            self._held = [piece for piece in self._held if piece.block != block]
            yield from self._switch(first)
            for piece in more:
                yield from self._delta(piece)

    def _may_close(self) -> bool:
        """Return True if another block may begin: an open call has to be complete, since more of it may come."""
        if self._open is None or self._open[0] != "tool_use":
            return True
        if len(self._arguments) == self._looked_at:
            return False
        try:
            json.loads("".join(self._arguments))
        except (ValueError, RecursionError):
            self._looked_at = len(self._arguments)
            return False
        return True

    def _switch(self, piece: _Piece) -> Iterator[Event]:
        yield from self._close()
        self._index += 1
        self._open, self._arguments, self._looked_at, self._blank = piece.block, [], -1, ""
        yield {"type": "content_block_start", "index": self._index, "content_block": self._empty(piece)}
        yield from self._delta(piece)

    def _delta(self, piece: _Piece) -> Iterator[Event]:
        if not piece.text:
            return
        if piece.kind == "tool_use":
            self._arguments.append(piece.text)
        kind, name = DELTAS[piece.kind]
        yield {"type": "content_block_delta", "index": self._index, "delta": {"type": kind, name: piece.text}}

    def _close(self) -> Iterator[Event]:
        if self._open is None:
            return
        if self._open[0] == "thinking":
            signed = {"type": "signature_delta", "signature": _SIGNATURE}
            yield {"type": "content_block_delta", "index": self._index, "delta": signed}
        if self._open[0] == "tool_use":
            self._closed.add(self._open)
        self._open = None
        yield {"type": "content_block_stop", "index": self._index}

    def _empty(self, piece: _Piece) -> dict[str, Any]:
        if piece.kind == "tool_use":
            call = piece.call or {}
            name = (call.get("function") or call.get("custom") or {}).get("name", "")
            return {"type": "tool_use", "id": call.get("id", ""), "name": self._names.get(name, name), "input": {}}
        if piece.kind == "thinking":
            return {"type": "thinking", "thinking": "", "signature": ""}
        return {"type": "text", "text": ""}
