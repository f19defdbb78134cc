"""Builds a response from the events of a turn: its items, and the events of its stream."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from gateway.api import responses_json as shapes
from gateway.api.answer_builder import AnswerBuilder
from gateway.api.errors import as_domain_error
from gateway.api.responses_body import ResponsesBody
from gateway.errors import RunStopped
from gateway.runs.context import TurnContext
from gateway.runs.responses import part_of, response_id
from gateway.steps import refusal_in
from gateway.turns.events import Delta, Done
from gateway.upstream.reasoning import reasoning_in
from memories.ids import uuid7

# Prefix of the `encrypted_content` of reasoning, for clients that only send back items which have it. The item's id
# follows. It is ignored when sent back: Daybook stores the reasoning that a model needs and finds it by its calls.
_ENCRYPTED_PREFIX = "daybook.1."


@dataclass(slots=True)
class OpenItem:
    """An item that is being written: its index in the output, and the text and lists of its current part."""

    index: int
    data: dict[str, Any]
    part: shapes.Part | None = None
    pieces: list[str] = field(default_factory=list)
    lists: dict[str, list[Any]] = field(default_factory=dict)

    def begin(self, part: shapes.Part) -> None:
        self.part, self.pieces, self.lists = part, [], {name: [] for name in part.lists}

    def current_part(self) -> dict[str, Any]:
        return self.part.as_json("".join(self.pieces), **self.lists) if self.part else {}

    def position(self) -> dict[str, Any]:
        """Return the fields of an event that locate the current part."""
        position = {"item_id": self.data["id"], "output_index": self.index}
        if self.part is None or not self.part.container:
            return position
        index = "summary_index" if self.part.container == "summary" else "content_index"
        return {**position, index: len(self.data[self.part.container])}

    def end(self) -> None:
        """Add the current part to the item."""
        if self.part is not None:
            written, container = self.current_part(), self.part.container
            self.data = {**self.data, **({container: [*self.data[container], written]} if container else written)}
            self.part = None


class ResponseBuilder(AnswerBuilder):
    """A response while it is written. `context` is that of its turn, or None for a request that is not a turn."""

    def __init__(self, request: ResponsesBody, context: TurnContext | None = None) -> None:
        super().__init__()
        run_id, part = (context.run_id, part_of(context)) if context else (uuid7(), 0)
        self.id = response_id(run_id, part)
        self._final: dict[str, Any] = {}
        self._request = request
        self._id_suffix = f"{run_id.hex}_{part}"
        self._created_at = int(context.started_at.timestamp() if context else time.time())
        self._reasoning_part = shapes.reasoning_part(request.echo)
        self._number = 0
        self._items: list[OpenItem] = []
        self._open: dict[str, OpenItem] = {}  # items being written, by "reasoning", "message" and "call"
        self._has_calls = False

    def whole(self) -> dict[str, Any]:
        return self._final

    def _add_delta(self, delta: Delta, part: dict[str, Any]) -> None:
        if reasoning := reasoning_in(part):
            self._order.add("reasoning", partial(self._write_reasoning, reasoning))
        if refusal := refusal_in(part):
            self._order.add("message", partial(self._write_message, shapes.REFUSAL, refusal))
        elif delta.text:
            logprobs = _list(_object(delta.choice.get("logprobs")).get("content"))
            self._order.add("message", partial(self._write_message, shapes.TEXT, delta.text, logprobs=logprobs))
        for annotation in _list(part.get("annotations")):
            self._order.add("message", partial(self._annotate, annotation))
        for call in delta.calls:
            arguments = _arguments_in(call)
            self._order.add(f"call {call['index']}", partial(self._write_call, call, arguments), arguments)

    def _finish(self, done: Done) -> None:
        status = "incomplete" if done.finish_reason in shapes.INCOMPLETE and not self._has_calls else "completed"
        self._close("reasoning", status)
        self._close("message", status)
        self._close("call")
        reason = "" if self._has_calls else done.finish_reason
        completed_at = int(done.output.closed_at.timestamp() if done.output.closed_at else time.time())
        self._final = self._response("completed", completed_at=completed_at, usage=done.new_usage, finish_reason=reason)
        if tier := done.around.get("service_tier") or done.choice.get("service_tier"):
            self._final["service_tier"] = tier
        self._emit(f"response.{self._final['status']}", response=self._final)

    def fail(self, error: Exception) -> bytes:
        self._begin()
        if message := self._open.get("message"):
            message.end()
            message.data["status"] = "incomplete"
        self._items = [item for item in self._items if item.data["status"] != "in_progress"]
        status = "cancelled" if isinstance(error, RunStopped) else "failed"
        self._final = self._response(status, error=shapes.response_error(as_domain_error(error).as_json()["error"]))
        self._emit("response.failed", response=self._final)
        return self.take_events()

    def _response(self, status: str, **more: Any) -> dict[str, Any]:
        return shapes.response_object(
            id=self.id,
            created_at=self._created_at,
            model=self._request.chat["model"],
            status=status,
            output=[item.data for item in self._items],
            echo=self._request.echo,
            **more,
        )

    def _emit(self, kind: str, **fields: Any) -> None:
        super()._emit(kind, sequence_number=self._number, **fields)
        self._number += 1

    def _start(self) -> None:
        for name in ("created", "in_progress"):
            self._emit(f"response.{name}", response=self._response("in_progress"))

    def _add_item(self, kind: str, data: dict[str, Any]) -> OpenItem:
        item = self._open[kind] = OpenItem(len(self._items), data)
        self._items.append(item)
        self._emit("response.output_item.added", output_index=item.index, item=dict(data))
        return item

    def _item_id(self, prefix: str, kind: str) -> str:
        return f"{prefix}_{self._id_suffix}_{sum(item.data['type'] == kind for item in self._items)}"

    def _write_reasoning(self, text: str) -> None:
        self._close("call")
        item = self._open.get("reasoning")
        if item is None:
            data = shapes.reasoning_item(self._item_id("rs", "reasoning"), status="in_progress")
            item = self._add_item("reasoning", data)
        self._write(item, self._reasoning_part, text)

    def _write_message(self, part: shapes.Part, text: str, **lists: list[Any]) -> None:
        self._close("call")
        self._close("reasoning")
        item = self._open.get("message")
        if item is None:
            item = self._add_item("message", shapes.message_item(self._item_id("msg", "message"), [], "in_progress"))
        self._write(item, part, text, **lists)

    def _annotate(self, given: Any) -> None:
        item = self._open.get("message")
        if item is None or item.part is not shapes.TEXT or not isinstance(given, dict):
            return
        inner = given.get(str(given.get("type")))  # {"type": "url_citation", "url_citation": {…}} in chat completions
        annotation = {"type": given.get("type"), **inner} if isinstance(inner, dict) else given
        annotations = item.lists["annotations"]
        added = {"annotation_index": len(annotations), "annotation": annotation}
        annotations.append(annotation)
        self._emit("response.output_text.annotation.added", **item.position(), **added)

    def _write_call(self, piece: Mapping[str, Any], arguments: str) -> None:
        if piece.get("id"):  # the first piece
            for kind in ("call", "reasoning", "message"):
                self._close(kind)
            data = shapes.call_item(piece, self._request.names, "in_progress")
            part = shapes.ARGUMENTS if "arguments" in data else shapes.INPUT
            self._add_item("call", {**data, part.field: ""}).begin(part)
            self._has_calls = True
        if arguments and (item := self._open.get("call")) and item.part:
            self._write(item, item.part, arguments)

    def _write(self, item: OpenItem, part: shapes.Part, text: str, **lists: list[Any]) -> None:
        """Append text to an item's current part, or begin a new part if that is another kind of part."""
        if item.part is not part:
            self._end_part(item)
            item.begin(part)
            self._emit(f"response.{part.part_event}.added", **item.position(), part=part.as_json(""))
        item.pieces.append(text)
        for name, values in lists.items():
            item.lists[name].extend(values)
        self._emit(f"response.{part.text_event}.delta", **item.position(), delta=text, **lists)

    def _end_part(self, item: OpenItem) -> None:
        if (part := item.part) is None:
            return
        position, written = item.position(), item.current_part()
        more = {"name": item.data["name"]} if part is shapes.ARGUMENTS else {}
        if part is shapes.TEXT:
            more = {"logprobs": written["logprobs"]}
        self._emit(f"response.{part.text_event}.done", **position, **more, **{part.field: written[part.field]})
        if part.container:
            self._emit(f"response.{part.part_event}.done", **position, part=written)
        item.end()

    def _close(self, kind: str, status: str = "completed") -> None:
        if (item := self._open.get(kind)) is None:
            return
        if item.part is shapes.ARGUMENTS and not item.pieces:
            self._write(item, shapes.ARGUMENTS, "{}")
        self._end_part(item)
        item.data["status"] = status
        if kind == "reasoning" and self._request.encrypted_reasoning:
            item.data["encrypted_content"] = _ENCRYPTED_PREFIX + item.data["id"]
        self._emit("response.output_item.done", output_index=item.index, item=item.data)
        del self._open[kind]


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _arguments_in(piece: Mapping[str, Any]) -> str:
    """Return the text that a piece of a call adds to its arguments, or to the input of a custom tool."""
    tool = piece.get("custom") or piece.get("function") or {}
    return tool.get("input") or tool.get("arguments") or ""
