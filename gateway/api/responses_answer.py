"""A response while it is written: its items, and the events of the stream."""

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from gateway import sse
from gateway.api.block_order import BlockOrder
from gateway.api.errors import as_domain_error
from gateway.api.responses_body import ResponsesBody
from gateway.api.responses_json import (
    INCOMPLETE,
    call_item,
    message_item,
    reasoning_item,
    response_object,
    wants_summary,
)
from gateway.api.responses_parts import ARGUMENTS, IN_SUMMARY, INPUT, REASONING, REFUSAL, TEXT, Item, Part
from gateway.errors import RunStopped
from gateway.runs.context import TurnContext
from gateway.runs.responses import part_of, response_id
from gateway.steps import refusal_in
from gateway.turns.events import Delta, Done, Event
from gateway.upstream.reasoning import reasoning_in
from memories.ids import uuid7

# Begins the `encrypted_content` of reasoning, for clients that send back only items which have one. It holds only the
# item's id and is not read when it comes back: the reasoning that a model needs again is stored here, and found by the
# ids of its calls.
_SEAL = "daybook.1."
# Codes of OpenAI that clients act on. All others are passed on.
_CODES = {"rate_limited": "rate_limit_exceeded", "overloaded": "server_is_overloaded"}


class Answer:
    """A response while it is written, of a turn if its context is given. `take` and `fail` add to it; `news` returns
    the events since the last call."""

    def __init__(self, asked: ResponsesBody, context: TurnContext | None = None) -> None:
        run_id, part = (context.run_id, part_of(context)) if context else (uuid7(), 0)
        self.id = response_id(run_id, part)
        self.final: dict[str, Any] = {}
        self._asked = asked
        self._begun = False
        self._tail = f"{run_id.hex}_{part}"
        self._created_at = int(context.started_at.timestamp() if context else time.time())
        self._thinks = IN_SUMMARY if wants_summary(asked.echo) else REASONING
        self._events: list[dict[str, Any]] = []
        self._number = 0
        self._items: list[Item] = []
        self._open: dict[str, Item] = {}  # items that are being written: a thought, a message, a call
        self._called = False
        self._order = BlockOrder()
        self._took_message = False

    def news(self) -> bytes:
        """Return the events since the last call as server-sent events."""
        events, self._events = self._events, []
        return b"".join(sse.event(event["type"], event) for event in events)

    def take(self, event: Event) -> None:
        """Add what a turn tells."""
        if isinstance(event, Delta):
            self._take_delta(event)
        elif isinstance(event, Done):
            self._finish(event)

    def _take_delta(self, event: Delta) -> None:
        choice = event.choice
        if choice.get("index"):
            return  # a response has only one choice
        self._begin()
        self._took_message = self._took_message or "message" in choice
        part = _object(choice.get("delta") or choice.get("message"))
        refused = bool(refusal_in(part))
        self._take_thought_and_refusal(part, before=bool(event.text) and not refused)
        if event.text and not refused:
            logprobs = _list(_object(choice.get("logprobs")).get("content"))
            self._in_order("message", partial(self._say, TEXT, event.text, logprobs=logprobs))
        for annotation in _list(part.get("annotations")):
            self._in_order("message", partial(self._annotate, annotation))
        for call in event.calls:
            given = _given_in(call)
            self._in_order(f"call {call['index']}", partial(self._take_call, call, given), given)

    def _finish(self, done: Done) -> None:
        """End the response, which is stored by now."""
        self._begin()
        choices = done.choice.get("choices")  # of an answer that came in one piece
        if choices and not self._took_message:
            self._take_thought_and_refusal(_object(choices[0].get("message")), before=False)
        for told in self._order.end():
            told()
        status = "incomplete" if done.finish_reason in INCOMPLETE and not self._called else "completed"
        self._close("thought", status)
        self._close("message", status)
        self._close("call")
        reason = "" if self._called else done.finish_reason
        self.final = self._response("completed", usage=done.new_usage, finish_reason=reason)
        if tier := done.around.get("service_tier") or done.choice.get("service_tier"):
            self.final["service_tier"] = tier
        self._emit(f"response.{self.final['status']}", response=self.final)

    def fail(self, error: Exception) -> bytes:
        """End the response with an error; returns the last events."""
        self._begin()
        told = as_domain_error(error).as_json()["error"]
        problem = {"code": _CODES.get(told["code"], told["code"]), "message": told["message"]}
        if told["details"]:
            problem["details"] = told["details"]
        if one := self._open.get("message"):
            one.end()
            one.item["status"] = "incomplete"
        self._items = [one for one in self._items if one.item["status"] != "in_progress"]
        status = "cancelled" if isinstance(error, RunStopped) else "failed"
        self.final = self._response(status, error=problem)
        self._emit("response.failed", response=self.final)
        return self.news()

    def _response(self, status: str, **more: Any) -> dict[str, Any]:
        return response_object(
            id=self.id,
            created_at=self._created_at,
            model=self._asked.chat["model"],
            status=status,
            output=[one.item for one in self._items],
            echo=self._asked.echo,
            **more,
        )

    def _emit(self, kind: str, **fields: Any) -> None:
        self._events.append({"type": kind, "sequence_number": self._number, **fields})
        self._number += 1

    def _begin(self) -> None:
        if not self._begun:
            self._begun = True
            for name in ("created", "in_progress"):
                self._emit(f"response.{name}", response=self._response("in_progress"))

    def _opened(self, kind: str, item: dict[str, Any]) -> Item:
        opened = self._open[kind] = Item(len(self._items), item)
        self._items.append(opened)
        self._emit("response.output_item.added", output_index=opened.index, item=dict(item))
        return opened

    def _item_id(self, prefix: str, kind: str) -> str:
        return f"{prefix}_{self._tail}_{sum(one.item['type'] == kind for one in self._items)}"

    def _take_thought_and_refusal(self, part: Mapping[str, Any], *, before: bool) -> None:
        if thought := reasoning_in(part):
            self._in_order("thought", partial(self._think, thought))
        refusal = part.get("refusal")
        if isinstance(refusal, str) and refusal and not before:
            self._in_order("message", partial(self._say, REFUSAL, refusal))

    def _in_order(self, block: str, tell: Callable[[], None], arguments: str | None = None) -> None:
        for told in self._order.add(block, tell, arguments):
            told()

    def _think(self, text: str) -> None:
        self._close("call")
        one = self._open.get("thought")
        if one is None:
            one = self._opened("thought", reasoning_item(self._item_id("rs", "reasoning"), "", "in_progress"))
        self._write(one, self._thinks, text)

    def _say(self, part: Part, text: str, **beside: list[Any]) -> None:
        self._close("call")
        self._close("thought")
        one = self._open.get("message")
        if one is None:
            one = self._opened("message", message_item(self._item_id("msg", "message"), [], "in_progress"))
        self._write(one, part, text, **beside)

    def _annotate(self, given: Any) -> None:
        one = self._open.get("message")
        if one is None or one.part is not TEXT or not isinstance(given, dict):
            return
        inner = given.get(str(given.get("type")))  # {"type": "url_citation", "url_citation": {…}} in chat completions
        annotation = {"type": given.get("type"), **inner} if isinstance(inner, dict) else given
        annotations = one.beside["annotations"]
        added = {"annotation_index": len(annotations), "annotation": annotation}
        annotations.append(annotation)
        self._emit("response.output_text.annotation.added", **one.at(), **added)

    def _take_call(self, piece: Mapping[str, Any], given: str) -> None:
        if piece.get("id"):  # it begins here
            for kind in ("call", "thought", "message"):
                self._close(kind)
            begun = call_item(piece, self._asked.names, "in_progress")
            part = ARGUMENTS if "arguments" in begun else INPUT
            self._opened("call", {**begun, part.field: ""}).begin(part)
            self._called = True
        if given and (one := self._open.get("call")) and one.part:
            self._write(one, one.part, given)

    def _write(self, one: Item, part: Part, text: str, **beside: list[Any]) -> None:
        """Add a text to a part of an item, which is begun if the text before it belongs to another."""
        if one.part is not part:
            self._end_part(one)
            one.begin(part)
            self._emit(f"response.{part.part}.added", **one.at(), part=part.content(""))
        one.pieces.append(text)
        for name, values in beside.items():
            one.beside[name].extend(values)
        self._emit(f"response.{part.text}.delta", **one.at(), delta=text, **beside)

    def _end_part(self, one: Item) -> None:
        if (part := one.part) is None:
            return
        at, written = one.at(), one.content()
        more = {"name": one.item["name"]} if part is ARGUMENTS else {}
        if part is TEXT:
            more = {"logprobs": written["logprobs"]}
        self._emit(f"response.{part.text}.done", **at, **more, **{part.field: written[part.field]})
        if part.place:
            self._emit(f"response.{part.part}.done", **at, part=written)
        one.end()

    def _close(self, kind: str, status: str = "completed") -> None:
        if (one := self._open.get(kind)) is None:
            return
        if one.part is ARGUMENTS and not one.pieces:
            self._write(one, ARGUMENTS, "{}")
        self._end_part(one)
        one.item["status"] = status
        if kind == "thought" and self._asked.sealed:
            one.item["encrypted_content"] = _SEAL + one.item["id"]
        self._emit("response.output_item.done", output_index=one.index, item=one.item)
        del self._open[kind]


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _given_in(piece: Mapping[str, Any]) -> str:
    """Return what a piece of a call adds to its arguments, or to the input of a custom tool."""
    custom = piece.get("custom")
    given = custom.get("input") if isinstance(custom, dict) else (piece.get("function") or {}).get("arguments")
    return given or ""
