"""Restores tool calls that a client resends as text. smolagents receives calls as such, but writes each of them into
the assistant's text, and the result into a user message, so that servers without tool messages accept it. Only calls
with ids of ours are restored: they certainly are calls, and the turn that made them waits for their results."""

import ast
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from gateway.messages import ChatMessage, text_of
from gateway.runs.call_ids import run_of_call
from memories.limits import TOOLS
from memories.storable import storable

_CALLS = "Calling tools:\n"
_MAX_CHARS = 500_000  # of written calls that are parsed in a request; hostile ones take about a second
_OF_OURS = re.compile(r"\[\{'id': 'call_[0-9a-f]{32}_\d+'")
_RESULT = re.compile(r"Observation:\n|Call id: call_")
# What the client appends to the last result: the person's next message, or the request to answer without more calls
_NEXT_TASK = "\nNew task:\n"
_LAST_REQUEST = "\nBased on the above, please provide an answer to the following user task:"
_FINAL_TOOL, _GIVEN_UP = "final_answer", "\nError:\nReached max steps."


def with_calls_restored(messages: Sequence[ChatMessage]) -> tuple[ChatMessage, ...]:
    """Return the messages with written calls of ours as tool calls, and their results as tool messages."""
    return tuple(_restored(messages))


def _restored(messages: Sequence[ChatMessage]) -> Iterator[ChatMessage]:
    calls: list[dict[str, Any]] = []
    room = _MAX_CHARS
    for message in messages:
        if calls and message["role"] == "user" and _RESULT.match(text_of(message.get("content"))):
            yield from _results(calls, message)
            calls = []
            continue
        written = "" if message.get("tool_calls") or message["role"] != "assistant" else _written(message)
        calls = _parsed_calls(written) if written and len(written) <= room else []
        room -= len(written)
        yield _with_calls(message, calls) if calls else message


def _written(message: ChatMessage) -> str:
    """Return the calls that the text of a message ends with, as they are written, or "" if the first is not ours."""
    written = text_of(message.get("content")).partition(_CALLS)[2]
    return written if _OF_OURS.match(written) else ""


def _parsed_calls(written: str) -> list[dict[str, Any]]:
    """Return written calls, or nothing if they are too many or any of them has no id of ours."""
    try:
        calls: list[dict[str, Any]] = storable([_call(given) for given in ast.literal_eval(written)])
    except (ValueError, SyntaxError, TypeError, KeyError, MemoryError, RecursionError):  # not written by smolagents
        return []
    return calls if len(calls) <= TOOLS and all(run_of_call(call["id"]) for call in calls) else []


def _call(given: Any) -> dict[str, Any]:
    name, arguments = given["function"]["name"], given["function"]["arguments"]
    if not isinstance(name, str):
        raise TypeError("The name of a tool must be text.")
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return {"id": given["id"], "type": "function", "function": {"name": name, "arguments": text}}


def _with_calls(message: ChatMessage, calls: list[dict[str, Any]]) -> ChatMessage:
    text = text_of(message.get("content")).partition(_CALLS)[0].strip()
    return {**message, "content": text or None, "tool_calls": calls}


def _results(calls: Sequence[dict[str, Any]], message: ChatMessage) -> Iterator[ChatMessage]:
    """Yield a tool message for each call, and what follows the results as a user message. The client joins the results
    of a step, so the last call gets all of them."""
    *others, last = (call["id"] for call in calls)
    is_last_step = any(call["function"]["name"] == _FINAL_TOOL for call in calls)
    content, following = _split(message["content"], is_last_step=is_last_step)
    for call_id in others:
        yield {"role": "tool", "tool_call_id": call_id, "content": ""}
    yield {"role": "tool", "tool_call_id": last, "content": content}
    if following:
        yield {**message, "content": following}


def _split(content: Any, *, is_last_step: bool) -> tuple[Any, Any]:
    """Return the content of the results and that of the user message after them. A result may contain the words of a
    next task, which is therefore expected only after the last step."""
    if isinstance(content, str):
        at = _end_of_results(content, is_last_step=is_last_step)
        return content[:at], content[at:].lstrip("\n")
    for index, part in enumerate(content):
        text = part.get("text") if part.get("type") == "text" else None
        if isinstance(text, str) and (at := _end_of_results(text, is_last_step=is_last_step)) < len(text):
            head, tail = {**part, "text": text[:at]}, {**part, "text": text[at:].lstrip("\n")}
            return [*content[:index], head], [tail, *content[index + 1 :]]
    return content, None


def _end_of_results(text: str, *, is_last_step: bool) -> int:
    ends = [text.rfind(_LAST_REQUEST)]
    if is_last_step or _GIVEN_UP in text:
        ends.append(text.rfind(_NEXT_TASK))
    return max(ends) if max(ends) >= 0 else len(text)
