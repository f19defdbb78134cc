"""The body of a chat completion request: read, checked and split into its parts.
Parameters that are not known here are passed through."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from django.conf import settings

from gateway.client_tasks import is_client_task
from gateway.passthrough import PlainRequest
from gateway.runs.client_tools import named_run_id
from gateway.runs.fingerprint import last_user_index, text_of
from gateway.tool_calls import call_fault
from memories.database.access import in_read_thread
from memories.errors import InvalidRequest, TooLarge
from memories.json_input import read_json
from memories.limits import MESSAGES, SHORT_LENGTH, TOOLS

LARGE_BYTES = 64_000
T = TypeVar("T")
_ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
# Fields that do not go upstream with the other parameters, and the entries of `metadata` that are meant for Daybook.
_READ_HERE = frozenset({"model", "messages", "stream", "tools", "metadata"})
_DAYBOOK_METADATA = frozenset({"session_id", "temporary"})
_LONGEST_NAME, _HASH = 64, 8  # characters
_KINDS = {bool: "true or false", list: "a list", dict: "an object"}


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionBody(PlainRequest):
    """What a client asks for. `parameters` go upstream as they came."""

    stream: bool
    include_usage: bool
    metadata: dict[str, Any]
    names: Mapping[str, str] = field(default_factory=dict)  # the client's names of tools, by the names the model knows

    def is_turn(self, headers: Mapping[str, str]) -> bool:
        """Return True for a turn of a conversation, False for a task of the client itself, which is not stored."""
        if last_user_index(self.messages) < 0 and named_run_id(self.messages) is None:
            return False
        return not is_client_task(
            self.messages,
            headers=headers,
            metadata=self.metadata,
            tools=self.tools,
            stream=self.stream,
            max_tokens=self.parameters.get("max_completion_tokens", self.parameters.get("max_tokens")),
        )


async def read_aside(read: Callable[[bytes], T], raw: bytes) -> T:
    """Return what `read` makes of a body. A large body is read in a thread, so that the event loop does not wait."""
    return await in_read_thread(read, raw) if len(raw) > LARGE_BYTES else read(raw)


def read_object(raw: bytes) -> dict[str, Any]:
    """Return a JSON body, which has to name a model. Raises InvalidRequest."""
    body = read_json(raw)
    if not isinstance(body, dict):
        raise InvalidRequest("The body is a JSON object.")
    if not isinstance(body.get("model"), str) or not body["model"]:
        raise InvalidRequest("`model` names an agent.", param="model")
    if len(body["model"]) > SHORT_LENGTH:  # it is repeated in answers and in the log
        raise InvalidRequest(f"`model` has at most {SHORT_LENGTH} characters.", param="model")
    return body


def checked(body: Mapping[str, Any], name: str, kind: type[T]) -> T | None:
    """Return a field of a body, or None if it is left out. Raises InvalidRequest for a value of another type."""
    value = body.get(name)
    if value is not None and not isinstance(value, kind):
        raise InvalidRequest(f"`{name}` is {_KINDS[kind]}.", param=name)
    return value


def read_body(raw: bytes) -> CompletionBody:
    """Raises InvalidRequest, TooLarge."""
    return completion_body(read_object(raw))


def completion_body(body: dict[str, Any]) -> CompletionBody:
    """Return what a request asks for, from a body that names a model. Raises InvalidRequest, TooLarge."""
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise InvalidRequest("`messages` is a list with at least one message.", param="messages")
    if len(messages) > MESSAGES:
        raise InvalidRequest(f"A request has at most {MESSAGES} messages.", param="messages")
    for index, message in enumerate(messages):
        _check_message(message, f"messages[{index}]")
    # Only the last message, which is answered, must not be empty.
    if (last := last_user_index(messages)) >= 0:
        check_not_empty(messages[last].get("content"), f"messages[{last}]")
    include_usage = read_include_usage(body)
    named = body.get("metadata")
    metadata = named if isinstance(named, dict) else {}
    passed = {key: value for key, value in metadata.items() if key not in _DAYBOOK_METADATA}
    return CompletionBody(
        agent=body["model"],
        messages=tuple(map(_with_refusal_as_content, messages)),
        stream=bool(checked(body, "stream", bool)),
        include_usage=include_usage,
        tools=read_tools(checked(body, "tools", list) or []),
        metadata=metadata,
        parameters={key: value for key, value in body.items() if key not in _READ_HERE}
        | ({"metadata": passed} if passed else {}),
    )


def read_include_usage(body: dict[str, Any]) -> bool:
    """Return True if a stream should end with the usage. Stream options that are not an object are removed."""
    stream_options = body.get("stream_options")
    if isinstance(stream_options, dict):
        return bool(stream_options.get("include_usage"))
    body.pop("stream_options", None)
    return False


def _with_refusal_as_content(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message. A refusal of the assistant becomes its content, which is stored and which every server
    takes."""
    refusal = message.get("refusal")
    if not refusal or not isinstance(refusal, str) or message.get("content") or message["role"] != "assistant":
        return message
    return {**{name: value for name, value in message.items() if name != "refusal"}, "content": refusal}


def _check_message(message: Any, where: str) -> None:
    role = message.get("role") if isinstance(message, dict) else None
    if not isinstance(role, str):
        raise InvalidRequest(f"{where} is an object with a role.", param=where)
    if role not in _ROLES:
        raise InvalidRequest(f"{where}.role is not one of system, developer, user, assistant, tool.", param=where)
    content = message.get("content")
    if isinstance(content, list):
        if any(not isinstance(part, dict) for part in content):
            raise InvalidRequest(f"{where}.content holds a part that is no object.", param=where)
    elif content is not None and not isinstance(content, str):
        raise InvalidRequest(f"{where}.content is text or a list of parts.", param=where)
    if role == "user":
        check_length(content, where)
    if "tool_calls" in message or "tool_call_id" in message:
        _check_calls(message, where)


def _check_calls(message: dict[str, Any], where: str) -> None:
    """Raises InvalidRequest for tool calls, or the id of one, of a wrong type."""
    if not isinstance(message.get("tool_call_id"), str | None):
        raise InvalidRequest(f"{where}.tool_call_id is text.", param=f"{where}.tool_call_id")
    calls, where = message.get("tool_calls"), f"{where}.tool_calls"
    if calls is None:
        return
    if not isinstance(calls, list):
        raise InvalidRequest(f"{where} is a list.", param=where)
    if len(calls) > TOOLS:
        raise InvalidRequest(f"{where} holds more than {TOOLS} calls.", param=where)
    for index, call in enumerate(calls):
        if fault := call_fault(call):
            place = f"{where}[{index}]{fault[0]}"
            raise InvalidRequest(f"{place} is {fault[1]}.", param=place)


def check_length(content: Any, where: str) -> None:
    """Raises TooLarge for a person's message with too many characters."""
    most, size = settings.DAYBOOK_MAX_MESSAGE, len(text_of(content))
    if size > most:
        raise TooLarge(
            f"A message has at most {most} characters; this one has {size}. Send it in parts.", param=where, limit=most
        )


def check_not_empty(content: Any, where: str) -> None:
    """Raises InvalidRequest for a message without text or other parts."""
    has_other_parts = isinstance(content, list) and any(part.get("type") != "text" for part in content)
    if not has_other_parts and not text_of(content).strip():
        raise InvalidRequest("The message is empty. Write something first.", param=where)


def read_tools(tools: Sequence[Any]) -> tuple[dict[str, Any], ...]:
    """Return the tools that a request defines. Raises InvalidRequest."""
    if len(tools) > TOOLS:
        raise InvalidRequest(f"A request has at most {TOOLS} tools.", param="tools")
    for index, tool in enumerate(tools):
        _check_tool(tool, f"tools[{index}]")
    return tuple(tools)


def short_name(name: str) -> str:
    """Return the name under which a tool is known to the model: the same, or for one that is too long its beginning and
    a hash of it."""
    if len(name) <= _LONGEST_NAME:
        return name
    return f"{name[: _LONGEST_NAME - _HASH - 1]}_{hashlib.sha256(name.encode()).hexdigest()[:_HASH]}"


def _check_tool(tool: Any, where: str) -> None:
    if not isinstance(tool, dict):
        raise InvalidRequest(f"{where} is an object.", param=where)
    function = tool.get("function") or {}
    if not isinstance(function, dict):
        raise InvalidRequest(f"{where}.function is an object.", param=f"{where}.function")
    if not isinstance(function.get("name", ""), str):
        raise InvalidRequest(f"{where}.function.name is text.", param=f"{where}.function.name")
