"""Translates the items of /v1/responses to messages and appends them to the stored ones. Consecutive text and calls of
the assistant become one message, and results are placed directly after their calls."""

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from gateway.api.openai_body import short_name
from gateway.errors import PreviousResponseNotFound
from gateway.messages import SYSTEM_ROLES, ChatMessage, joined_content
from gateway.runs.call_ids import run_of_call
from gateway.turns.output import cites
from memories.errors import InvalidRequest
from memories.limits import MESSAGES, TOOLS
from prompts.conversation import NO_RESULT

_TEXT_TYPES = frozenset({"input_text", "output_text", "text"})
_OUTPUT_FIELDS = frozenset({"type", "annotations", "logprobs"})
_CALL_ENDINGS = ("_call", "_call_output")
_INPUT_ROLES = SYSTEM_ROLES | {"user"}
# Call items: their type in chat completions, the field with the arguments, and its value if empty.
_CALLS = {"function_call": ("function", "arguments", "{}"), "custom_tool_call": ("custom", "input", "")}
_OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output"})
_LATER_MESSAGE = re.compile(r"(msg_\w+)_[1-9]\d*")

Item = dict[str, Any]


def read_items(given: Any) -> list[Item]:
    """Return the items of `input`. A string becomes a user message. Raises InvalidRequest."""
    if isinstance(given, str):
        return [{"type": "message", "role": "user", "content": given}]
    if not given:
        raise InvalidRequest("`input` is empty. Write something first.", param="input")
    if not isinstance(given, list) or any(not isinstance(item, dict) for item in given):
        raise InvalidRequest("`input` must be text or a list of items.", param="input")
    if len(given) > MESSAGES:
        raise InvalidRequest(f"A request has at most {MESSAGES} items.", param="input")
    return given


def as_messages(before: Sequence[ChatMessage], items: Sequence[Item], stored: Mapping[str, Item]) -> list[ChatMessage]:
    """Return stored messages and a client's items as one conversation. `stored` has the items that references may point
    to, by id. Items of unknown types are left out. Raises InvalidRequest, PreviousResponseNotFound."""
    conversation = _Conversation(before)
    repeated = _repeated_message(before, items, conversation.waiting)
    for index, item in enumerate(items):
        where = f"input[{index}]"
        if item.get("type") == "item_reference":
            item = _resolved(item, stored, where)
        if index != repeated:
            conversation.add(item, where)
    return conversation.messages()


def length_of_references(items: Iterable[Item], stored: Mapping[str, Item]) -> int:
    """Return the number of characters of the stored items to which a client's items refer, for each time it does."""
    lengths = {item_id: len(json.dumps(item, ensure_ascii=False)) for item_id, item in stored.items()}
    return sum(lengths.get(str(item.get("id")), 0) for item in items if item.get("type") == "item_reference")


def system_messages(items: Sequence[Item]) -> list[ChatMessage]:
    """Return the system and developer messages among a client's items."""
    return as_messages((), [item for item in items if _kind(item) == "message" and item["role"] in SYSTEM_ROLES], {})


def _repeated_message(before: Sequence[ChatMessage], items: Sequence[Item], waiting: Collection[str]) -> int:
    """Return the index of the message of a stored turn that a client sends again with the outputs of the calls that the
    turn waits for (Semantic Kernel does with each step), or -1."""
    outputs = [index for index, item in enumerate(items) if str(item.get("type")) in _OUTPUTS]
    if not any(str(items[index].get("call_id")) in waiting for index in outputs):
        return -1
    said = next((message["content"] for message in reversed(before) if message["role"] == "user"), None)
    for index, item in enumerate(items[: outputs[0]]):
        if item.get("role") == "user" and _content(item.get("content"), "input", joined=False) == said:
            return index
    return -1


def is_read_by_server(item: Item) -> bool:
    """Whether an item is a call with a result that is left out, such as a search by OpenAI's servers, or a message that
    cites one."""
    kind = _kind(item)
    if kind == "message":
        return item.get("role") == "assistant" and cites(item)
    return kind.endswith(_CALL_ENDINGS) and kind not in _CALLS and kind not in _OUTPUTS


def flat_name(namespace: Any, name: str) -> str:
    """Return the name of a tool for the model, which includes its namespace."""
    if not isinstance(namespace, str) or not namespace:
        return short_name(name)
    joined = namespace + name if namespace.endswith("__") else f"{namespace}__{name}"
    return short_name(joined)


class _Conversation:
    """The messages so far, in groups: an assistant message with the results of its calls, or a single other message.
    Outputs that are sent again are left out."""

    def __init__(self, before: Sequence[ChatMessage]) -> None:
        self._groups: list[list[ChatMessage]] = []
        self._unanswered: dict[str, list[ChatMessage]] = {}  # groups by the ids of their calls without a result
        self._answered: set[str] = set()  # calls that have their result
        self._texts: list[tuple[ChatMessage, list[Any]]] = []  # new messages of the assistant, with their contents
        self._open: list[ChatMessage] | None = None  # the group to which the assistant's next text or call belongs
        for message in before:
            call_id = str(message.get("tool_call_id"))
            if message["role"] == "tool" and (group := self._unanswered.pop(call_id, None)):
                group.append(message)
                self._answered.add(call_id)
                continue
            self._begin(message)
            for call in message.get("tool_calls") or ():
                self._unanswered[str(call.get("id", ""))] = self._groups[-1]
        self.waiting = frozenset(self._unanswered)  # calls of stored turns without a result

    def add(self, item: Item, where: str) -> None:
        kind = _kind(item)
        if kind == "message":
            self._add_message(item, where)
        elif kind in _CALLS:
            self._add_call(item, *_CALLS[kind], where)
        elif kind in _OUTPUTS:
            self._add_result(item, where)

    def messages(self) -> list[ChatMessage]:
        """Return the conversation. Calls without a result get a placeholder, since servers refuse them otherwise."""
        for call_id, group in self._unanswered.items():
            group.append({"role": "tool", "tool_call_id": call_id, "content": NO_RESULT})
        for message, contents in self._texts:
            message["content"] = joined_content(*contents, gap="") if contents else None
        return [message for group in self._groups for message in group]

    def _begin(self, message: ChatMessage) -> list[ChatMessage]:
        self._groups.append([message])
        return self._groups[-1]

    def _assistant(self) -> list[ChatMessage]:
        """Return the group of the assistant's message that is continued, or of a new one."""
        if self._open is None:
            self._open = self._begin({"role": "assistant", "content": None})
            self._texts.append((self._open[0], []))
        return self._open

    def _add_message(self, item: Item, where: str) -> None:
        role = str(item.get("role"))
        content = _content(item.get("content"), f"{where}.content", joined=role == "assistant")
        if role in _INPUT_ROLES:
            self._open = None
            self._begin({"role": role, "content": content})
        elif role != "assistant":
            raise InvalidRequest(
                f"{where}.role must be one of system, developer, user, assistant.", param=f"{where}.role"
            )
        else:
            self._assistant()
            self._texts[-1][1].append(content)

    def _add_call(self, item: Item, kind: str, arguments_field: str, empty: str, where: str) -> None:
        name = flat_name(item.get("namespace"), _text(item, "name", where))
        call = {"name": name, arguments_field: _text(item, arguments_field, where) or empty}
        call_id = _call_id(item, where)
        group = self._assistant()
        calls = group[0].setdefault("tool_calls", [])
        if len(calls) == TOOLS:
            raise InvalidRequest(f"{where}: an answer has at most {TOOLS} calls.", param="input")
        calls.append({"id": call_id, "type": kind, kind: call})
        self._unanswered[call_id] = group

    def _add_result(self, item: Item, where: str) -> None:
        call_id = _call_id(item, where)
        message = {"role": "tool", "tool_call_id": call_id, "content": _result(item.get("output"), where)}
        self._open = None
        if group := self._unanswered.pop(call_id, None):
            group.append(message)
            self._answered.add(call_id)
        elif run_of_call(call_id):  # the call is in a stored turn
            if call_id not in self._answered:
                self._begin(message)
        else:
            raise InvalidRequest(
                f"{where}.call_id: no earlier call has the id {call_id}, or it already has its output. "
                "Send the call, too.",
                param=f"{where}.call_id",
            )


def _kind(item: Item) -> str:
    return str(item.get("type") or ("message" if "role" in item else ""))  # optional for messages


def _resolved(item: Item, stored: Mapping[str, Item], where: str) -> Item:
    item_id = str(item.get("id", ""))
    if item_id.startswith("rs_"):
        return {"type": "reasoning"}  # ignored: reasoning is stored with its calls and sent back with them
    if item_id in stored:
        return stored[item_id]
    if (first := _LATER_MESSAGE.fullmatch(item_id)) and f"{first[1]}_0" in stored:
        return {}  # ignored: of older responses the first message has all text
    raise PreviousResponseNotFound(
        f"{where} refers to item {item_id[:80]}, which is not stored. Send the item itself.", param=where
    )


def _call_id(item: Item, where: str) -> str:
    call_id = _text(item, "call_id", where)
    if not call_id:
        raise InvalidRequest(f"{where}.call_id must be the id of a call.", param=f"{where}.call_id")
    return call_id


def _text(item: Item, name: str, where: str) -> str:
    value = item.get(name)
    if value is None or isinstance(value, str):
        return value or ""
    if name == "arguments":
        return json.dumps(value, ensure_ascii=False)
    raise InvalidRequest(f"{where}.{name} must be text.", param=f"{where}.{name}")


def _result(output: Any, where: str) -> Any:
    if output is None or isinstance(output, str | list):
        return _content(output or "", f"{where}.output", joined=True)
    return json.dumps(output, ensure_ascii=False)


def _content(content: Any, where: str, *, joined: bool) -> Any:
    """Return an item's content as text or message parts. With `joined`, several texts become one."""
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list) or any(not isinstance(part, dict) for part in content):
        raise InvalidRequest(f"{where} must be text or a list of parts.", param=where)
    parts = [_part(part, f"{where}[{index}]") for index, part in enumerate(content)]
    texts = [str(part.get("text") or "") for part in parts if part.keys() == {"type", "text"}]
    if len(texts) == len(parts) and (joined or len(parts) < 2):
        return "".join(texts)
    return parts


def _part(part: dict[str, Any], where: str) -> dict[str, Any]:
    kind = str(part.get("type"))
    rest = {name: value for name, value in part.items() if name not in _OUTPUT_FIELDS and value is not None}
    if kind in _TEXT_TYPES:
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
        f"{where}.type must be one of input_text, input_image, input_file, input_audio.", param=f"{where}.type"
    )
