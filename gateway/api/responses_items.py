"""Items of /v1/responses as messages of a conversation, after the messages that are stored. Text and calls of the
assistant that follow each other make one message; results stand after their calls."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from gateway.api.openai_body import short_name
from gateway.errors import PreviousResponseNotFound
from gateway.runs.call_ids import run_of_call
from gateway.upstream.outgoing import joined_content
from memories.errors import InvalidRequest
from memories.limits import MESSAGES, TOOLS
from prompts.conversation import NO_RESULT

_TEXTS = frozenset({"input_text", "output_text", "text"})
_OF_OUTPUT = frozenset({"type", "annotations", "logprobs"})
_SPOKEN = frozenset({"user", "system", "developer"})
# Calls: their type in chat completions, the field of what the model wrote, and what stands for nothing there.
_CALLS = {"function_call": ("function", "arguments", "{}"), "custom_tool_call": ("custom", "input", "")}

Item = dict[str, Any]
Message = dict[str, Any]


def read_items(given: Any) -> list[Item]:
    """Return the items of `input`; a text is a message of the user. Raises InvalidRequest."""
    if isinstance(given, str):
        return [{"type": "message", "role": "user", "content": given}]
    if not given:
        raise InvalidRequest("`input` is empty. Write something first.", param="input")
    if not isinstance(given, list) or any(not isinstance(item, dict) for item in given):
        raise InvalidRequest("`input` is text or a list of items.", param="input")
    if len(given) > MESSAGES:
        raise InvalidRequest(f"A request has at most {MESSAGES} items.", param="input")
    return given


def as_messages(before: Sequence[Message], items: Sequence[Item], stored: Mapping[str, Item]) -> list[Message]:
    """Return stored messages and a client's items as one conversation. `stored` holds the items that references may
    name, by id. Items that are not known here are left out. Raises InvalidRequest, PreviousResponseNotFound."""
    found = _Conversation(before)
    for index, item in enumerate(items):
        where = f"input[{index}]"
        if item.get("type") == "item_reference":
            item = _referred(item, stored, where)
        found.take(item, where)
    return found.messages()


def flat_name(namespace: Any, name: str) -> str:
    """Return the name under which a tool, perhaps of a namespace, is known to the model."""
    if not isinstance(namespace, str) or not namespace:
        return short_name(name)
    joined = namespace + name if namespace.endswith("__") else f"{namespace}__{name}"
    return short_name(joined)


class _Conversation:
    """The messages so far, in groups: an assistant's message with the results of its calls, or any other message."""

    def __init__(self, before: Sequence[Message]) -> None:
        self._groups: list[list[Message]] = []
        self._unanswered: dict[str, list[Message]] = {}  # groups by the ids of their calls without a result
        self._open: list[Message] | None = None  # the group that the assistant's next words or call belong to
        for message in before:
            if message["role"] == "tool" and (group := self._unanswered.pop(str(message.get("tool_call_id")), None)):
                group.append(message)
                continue
            self._begin(message)
            for call in message.get("tool_calls") or ():
                self._unanswered[str(call.get("id", ""))] = self._groups[-1]

    def take(self, item: Item, where: str) -> None:
        kind = str(item.get("type") or ("message" if "role" in item else ""))  # a message may leave it out
        if kind == "message":
            self._take_message(item, where)
        elif kind in _CALLS:
            self._take_call(item, *_CALLS[kind], where)
        elif kind in {"function_call_output", "custom_tool_call_output"}:
            self._take_result(item, where)

    def messages(self) -> list[Message]:
        """Return the conversation. A call without a result gets one that says so: servers refuse calls without one."""
        for call_id, group in self._unanswered.items():
            group.append({"role": "tool", "tool_call_id": call_id, "content": NO_RESULT})
        return [message for group in self._groups for message in group]

    def _begin(self, message: Message) -> list[Message]:
        self._groups.append([message])
        return self._groups[-1]

    def _take_message(self, item: Item, where: str) -> None:
        role = str(item.get("role"))
        content = _content(item.get("content"), f"{where}.content", joined=role == "assistant")
        if role in _SPOKEN:
            self._open = None
            self._begin({"role": role, "content": content})
        elif role != "assistant":
            raise InvalidRequest(
                f"{where}.role is not one of system, developer, user, assistant.", param=f"{where}.role"
            )
        elif self._open is None:
            self._open = self._begin({"role": "assistant", "content": content})
        else:
            said = self._open[0]
            said["content"] = joined_content(said["content"], content, gap="")

    def _take_call(self, item: Item, kind: str, given: str, empty: str, where: str) -> None:
        name = flat_name(item.get("namespace"), _text(item, "name", where))
        called = {"name": name, given: _text(item, given, where) or empty}
        call_id = _call_id(item, where)
        if self._open is None:
            self._open = self._begin({"role": "assistant", "content": None})
        calls = self._open[0].setdefault("tool_calls", [])
        if len(calls) == TOOLS:
            raise InvalidRequest(f"{where} is one call more than the {TOOLS} of one answer.", param="input")
        calls.append({"id": call_id, "type": kind, kind: called})
        self._unanswered[call_id] = self._open

    def _take_result(self, item: Item, where: str) -> None:
        call_id = _call_id(item, where)
        message = {"role": "tool", "tool_call_id": call_id, "content": _result(item.get("output"), where)}
        self._open = None
        if group := self._unanswered.pop(call_id, None):
            group.append(message)
        elif run_of_call(call_id):  # the turn that made the call is stored here
            self._begin(message)
        else:
            raise InvalidRequest(
                f"{where}.call_id names {call_id}, which no call before it has, or which has its output already. "
                "Send the call, too.",
                param=f"{where}.call_id",
            )


def _referred(item: Item, stored: Mapping[str, Item], where: str) -> Item:
    named = str(item.get("id", ""))
    if named.startswith("rs_"):
        return {"type": "reasoning"}  # reasoning is stored with its calls and sent back with them
    if named not in stored:
        raise PreviousResponseNotFound(
            f"{where} names item {named[:80]}, which is not stored here. Send the item itself.", param=where
        )
    return stored[named]


def _call_id(item: Item, where: str) -> str:
    call_id = _text(item, "call_id", where)
    if not call_id:
        raise InvalidRequest(f"{where}.call_id names a call.", param=f"{where}.call_id")
    return call_id


def _text(item: Item, name: str, where: str) -> str:
    value = item.get(name)
    if value is None or isinstance(value, str):
        return value or ""
    if name == "arguments":
        return json.dumps(value, ensure_ascii=False)
    raise InvalidRequest(f"{where}.{name} is text.", param=f"{where}.{name}")


def _result(output: Any, where: str) -> Any:
    if output is None or isinstance(output, str | list):
        return _content(output or "", f"{where}.output", joined=True)
    return json.dumps(output, ensure_ascii=False)


def _content(content: Any, where: str, *, joined: bool) -> Any:
    """Return content as a text or as parts of a message. With `joined`, several texts become one."""
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list) or any(not isinstance(part, dict) for part in content):
        raise InvalidRequest(f"{where} is text or a list of parts.", param=where)
    parts = [_part(part, f"{where}[{index}]") for index, part in enumerate(content)]
    texts = [str(part.get("text") or "") for part in parts if part.keys() == {"type", "text"}]
    if len(texts) == len(parts) and (joined or len(parts) < 2):
        return "".join(texts)
    return parts


def _part(part: dict[str, Any], where: str) -> dict[str, Any]:
    kind = str(part.get("type"))
    rest = {name: value for name, value in part.items() if name not in _OF_OUTPUT and value is not None}
    if kind in _TEXTS:
        return {"type": "text", **rest}
    if kind == "input_image":
        if not isinstance(part.get("image_url"), str):
            raise InvalidRequest(f"{where}.file_id: Daybook keeps no files. Send the image as image_url.", param=where)
        detail = {"detail": part["detail"]} if part.get("detail") else {}
        return {"type": "image_url", "image_url": {"url": part["image_url"], **detail}}
    if kind == "input_file":
        if "file_url" in rest:
            raise InvalidRequest(f"{where}.file_url is not fetched here. Send the file as file_data.", param=where)
        if "file_id" in rest:
            raise InvalidRequest(f"{where}.file_id: Daybook keeps no files. Send the file as file_data.", param=where)
        return {"type": "file", "file": rest}
    if kind == "refusal":
        return {"type": "text", "text": str(part.get("refusal") or "")}
    if kind in {"input_audio", "image_url", "file"}:
        return {"type": kind, **rest}
    raise InvalidRequest(
        f"{where}.type is not one of input_text, input_image, input_file, input_audio.", param=f"{where}.type"
    )
