"""A response while it is written: its items, and the events of the stream."""

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any
from uuid import UUID

from gateway import sse
from gateway.api.block_order import BlockOrder
from gateway.api.errors import as_domain_error
from gateway.api.responses_body import Names
from gateway.api.responses_json import (
    INCOMPLETE,
    call_item,
    message_item,
    reasoning_item,
    response_object,
    text_part,
    wants_summary,
)
from gateway.api.responses_parts import AS_IT_IS, IN_SUMMARY, REFUSAL, TEXT, Item, given_field
from gateway.errors import RunStopped
from gateway.runs.responses import response_id
from gateway.steps import refusal_in
from gateway.turns.events import Delta
from gateway.upstream.reasoning import reasoning_in

# Codes of OpenAI that clients act on. All others are passed on.
_CODES = {"rate_limited": "rate_limit_exceeded", "overloaded": "server_is_overloaded"}


class Answer:
    """A response while it is written. `take`, `finish` and `fail` add to it; `news` returns the events since the last
    call."""

    def __init__(
        self,
        *,
        run_id: UUID,
        part: int,
        model: str,
        echo: Mapping[str, Any],
        names: Names,
        created_at: int = 0,
        sealed: bool = False,
    ) -> None:
        self.id = response_id(run_id, part)
        self._begun = False
        self.final: dict[str, Any] = {}
        self._tail = f"{run_id.hex}_{part}"
        self._model, self._echo, self._names = model, dict(echo), names
        self._created_at = created_at or int(time.time())
        self._sealed = sealed
        self._thinks = IN_SUMMARY if wants_summary(echo) else AS_IT_IS
        self._events: list[dict[str, Any]] = []
        self._number = 0
        self._items: list[Item] = []
        self._thought: Item | None = None
        self._message: Item | None = None
        self._call: Item | None = None  # that is being written
        self._called = False
        self._order = BlockOrder[Callable[[], None]]()
        self._took_message = False

    def news(self) -> bytes:
        """Return the events since the last call as server-sent events."""
        events, self._events = self._events, []
        return b"".join(sse.event(event["type"], event) for event in events)

    def take(self, event: Delta) -> None:
        """Add a piece of the model's answer."""
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
            self._in_order("message", partial(self._say, TEXT, event.text, logprobs))
        for annotation in _list(part.get("annotations")):
            self._in_order("message", partial(self._annotate, annotation))
        for call in event.calls:
            given = _given_in(call)
            self._in_order(f"call {call['index']}", partial(self._take_call, call, given), given)

    def finish(self, *, finish_reason: str, usage: Mapping[str, Any], whole: Mapping[str, Any], **more: Any) -> None:
        """End the response, which is stored by now. `whole` is the model's last answer, where it came in one piece."""
        self._begin()
        choices = whole.get("choices")
        if choices and not self._took_message:
            self._take_thought_and_refusal(_object(choices[0].get("message")), before=False)
        for told in self._order.end():
            told()
        status = "incomplete" if finish_reason in INCOMPLETE and not self._called else "completed"
        self._close_thought(status)
        self._close_message(status)
        self._close_call()
        reason = "" if self._called else finish_reason
        self.final = self._response("completed", usage=usage, finish_reason=reason) | more
        self._emit(f"response.{self.final['status']}", response=self.final)

    def fail(self, error: Exception) -> bytes:
        """End the response with an error; returns the last events."""
        self._begin()
        told = as_domain_error(error).as_json()["error"]
        problem = {"code": _CODES.get(told["code"], told["code"]), "message": told["message"]}
        if told["details"]:
            problem["details"] = told["details"]
        if one := self._message:
            one.item = {**one.item, "status": "incomplete", "content": [*one.item["content"], one.part_now()]}
        self._items = [one for one in self._items if one.item["status"] != "in_progress"]
        status = "cancelled" if isinstance(error, RunStopped) else "failed"
        self.final = self._response(status, error=problem)
        self._emit("response.failed", response=self.final)
        return self.news()

    def _response(self, status: str, **more: Any) -> dict[str, Any]:
        return response_object(
            id=self.id,
            created_at=self._created_at,
            model=self._model,
            status=status,
            output=[one.item for one in self._items],
            echo=self._echo,
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

    def _open(self, item: dict[str, Any]) -> Item:
        opened = Item(len(self._items), item)
        self._items.append(opened)
        self._emit("response.output_item.added", output_index=opened.index, item=dict(item))
        return opened

    def _done(self, one: Item) -> None:
        self._emit("response.output_item.done", output_index=one.index, item=one.item)

    def _at(self, one: Item, *, content: bool = True) -> dict[str, Any]:
        at = {"item_id": one.item["id"], "output_index": one.index}
        return {**at, "content_index": len(one.item["content"])} if content else at

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
        self._close_call()
        one = self._thought
        if one is None:
            one = self._thought = self._open(reasoning_item(self._item_id("rs", "reasoning"), "", "in_progress"))
            self._emit(f"response.{self._thinks.part}.added", **self._in_thought(one), part=self._thinks.of(""))
        one.pieces.append(text)
        self._emit(f"response.{self._thinks.text}.delta", **self._in_thought(one), delta=text)

    def _close_thought(self, status: str = "completed") -> None:
        if (one := self._thought) is None:
            return
        self._thought, at, text = None, self._in_thought(one), one.text()
        self._emit(f"response.{self._thinks.text}.done", **at, text=text)
        self._emit(f"response.{self._thinks.part}.done", **at, part=self._thinks.of(text))
        as_summary = self._thinks is IN_SUMMARY
        one.item = reasoning_item(one.item["id"], text, status, as_summary=as_summary, sealed=self._sealed)
        self._done(one)

    def _in_thought(self, one: Item) -> dict[str, Any]:
        return {**self._at(one, content=False), self._thinks.index: 0}

    def _say(self, kind: str, text: str, logprobs: list[Any] | None = None) -> None:
        self._close_call()
        self._close_thought()
        one = self._message
        if one is None:
            one = self._message = self._open(message_item(self._item_id("msg", "message"), [], "in_progress"))
        if one.part != kind:
            self._close_part(one)
            one.part = kind
            part = text_part("") if kind == TEXT else {"type": REFUSAL, "refusal": ""}
            self._emit("response.content_part.added", **self._at(one), part=part)
        one.pieces.append(text)
        if kind == TEXT:
            one.beside["logprobs"].extend(logprobs or ())
            self._emit("response.output_text.delta", **self._at(one), delta=text, logprobs=logprobs or [])
        else:
            self._emit("response.refusal.delta", **self._at(one), delta=text)

    def _annotate(self, given: Any) -> None:
        one = self._message
        if one is None or one.part != TEXT or not isinstance(given, dict):
            return
        inner = given.get(str(given.get("type")))  # {"type": "url_citation", "url_citation": {…}} in chat completions
        annotation = {"type": given.get("type"), **inner} if isinstance(inner, dict) else given
        place = len(one.beside["annotations"])
        one.beside["annotations"].append(annotation)
        added = {"annotation_index": place, "annotation": annotation}
        self._emit("response.output_text.annotation.added", **self._at(one), **added)

    def _close_part(self, one: Item) -> None:
        if not one.part:
            return
        at, text, part = self._at(one), one.text(), one.part_now()
        if one.part == TEXT:
            self._emit("response.output_text.done", **at, text=text, logprobs=one.beside["logprobs"])
        else:
            self._emit("response.refusal.done", **at, refusal=text)
        self._emit("response.content_part.done", **at, part=part)
        one.item = {**one.item, "content": [*one.item["content"], part]}
        one.part, one.pieces, one.beside = "", [], {"annotations": [], "logprobs": []}

    def _close_message(self, status: str = "completed") -> None:
        if (one := self._message) is None:
            return
        self._message = None
        self._close_part(one)
        one.item = {**one.item, "status": status}
        self._done(one)

    def _take_call(self, piece: Mapping[str, Any], given: str) -> None:
        if piece.get("id"):  # it begins here
            self._close_call()
            self._close_thought()
            self._close_message()
            begun = call_item(piece, self._names, "in_progress")
            self._call, self._called = self._open({**begun, given_field(begun): ""}), True
        if given and self._call:
            self._give(self._call, given)

    def _give(self, one: Item, text: str) -> None:
        one.pieces.append(text)
        self._emit(f"response.{one.given_event}.delta", **self._at(one, content=False), delta=text)

    def _close_call(self) -> None:
        if (one := self._call) is None:
            return
        self._call, name = None, one.given
        if name == "arguments" and not one.pieces:
            self._give(one, "{}")
        one.item = {**one.item, name: one.text(), "status": "completed"}
        named = {"name": one.item["name"]} if name == "arguments" else {}
        self._emit(f"response.{one.given_event}.done", **self._at(one, content=False), **named, **{name: one.text()})
        self._done(one)


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _given_in(piece: Mapping[str, Any]) -> str:
    """Return what a piece of a call adds to its arguments, or to the input of a custom tool."""
    custom = piece.get("custom")
    given = custom.get("input") if isinstance(custom, dict) else (piece.get("function") or {}).get("arguments")
    return given or ""
