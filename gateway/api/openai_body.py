"""Parses and validates the body of a chat completion request. Unknown parameters are passed through."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from django.conf import settings

from gateway.api.written_calls import with_calls_restored
from gateway.client_tasks import is_client_task
from gateway.messages import ChatMessage, content_parts, has_media, last_user_index, text_of
from gateway.passthrough import PlainRequest
from gateway.runs.call_ids import call_ids
from gateway.runs.client_tools import named_run_id
from gateway.runs.wrappers import without_reminders
from gateway.tool_calls import call_fault
from gateway.turns.output import cites
from memories.database.access import in_read_thread
from memories.errors import InvalidRequest, TooLarge
from memories.evidence.client_texts import without_rules
from memories.json_input import read_json
from memories.limits import MESSAGES, SHORT_LENGTH, TOOLS

LARGE_BYTES = 64_000
T = TypeVar("T")
_ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
# Fields that are not passed through as parameters, and entries of `metadata` that are for Daybook only.
_OWN_FIELDS = frozenset({"model", "messages", "stream", "tools", "metadata"})
_OWN_METADATA = frozenset({"session_id", "temporary"})
_MAX_NAME_CHARS, _HASH_CHARS = 64, 8
_TYPE_NAMES = {bool: "true or false", list: "a list", dict: "an object", str: "text"}


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionBody(PlainRequest):
    """A validated request. `parameters` go to the upstream unchanged. `searched`: an earlier answer cites what its
    model's server has read, which is not in the conversation."""

    stream: bool
    include_usage: bool
    metadata: dict[str, Any]
    names: Mapping[str, str] = field(default_factory=dict)  # the client's tool names by those the model sees
    searched: bool = False

    def is_turn(self, headers: Mapping[str, str]) -> bool:
        """Return True for a turn of a conversation, False for a client's task, such as a title, which is not stored."""
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


async def parse_async(parse: Callable[[bytes], T], raw: bytes) -> T:
    """Return `parse(raw)`, called in a thread for a large body."""
    return await read_async(partial(parse, raw), is_large=len(raw) > LARGE_BYTES)


async def read_async(read: Callable[[], T], *, is_large: bool) -> T:
    """Return `read()`, called in a thread if what it reads is large, so that the event loop is not blocked."""
    return await in_read_thread(read) if is_large else read()


def read_object(raw: bytes) -> dict[str, Any]:
    """Return a JSON object that has a `model`. Raises InvalidRequest."""
    body = read_json(raw)
    if not isinstance(body, dict):
        raise InvalidRequest("The body must be a JSON object.")
    if not isinstance(body.get("model"), str) or not body["model"]:
        raise InvalidRequest("`model` must be the name of an agent.", param="model")
    if len(body["model"]) > SHORT_LENGTH:  # it is repeated in answers and in the log
        raise InvalidRequest(f"`model` must have at most {SHORT_LENGTH} characters.", param="model")
    return body


def typed_field(body: Mapping[str, Any], name: str, kind: type[T]) -> T | None:
    """Return a field of a body, or None if it is missing. Raises InvalidRequest for a value of another type."""
    value = body.get(name)
    if value is not None and not isinstance(value, kind):
        raise InvalidRequest(f"`{name}` must be {_TYPE_NAMES[kind]}.", param=name)
    return value


def require_type(value: Any, kind: type[T], where: str) -> T:
    """Return the value of the field `where`. Raises InvalidRequest for a value of another type."""
    if not isinstance(value, kind):
        raise InvalidRequest(f"{where} must be {_TYPE_NAMES[kind]}.", param=where)
    return value


def read_body(raw: bytes) -> CompletionBody:
    """Parse and validate a body. Raises InvalidRequest, TooLarge."""
    return completion_body(read_object(raw))


def completion_body(body: dict[str, Any]) -> CompletionBody:
    """Validate a body that has a `model`. Raises InvalidRequest, TooLarge."""
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise InvalidRequest("`messages` must be a list with at least one message.", param="messages")
    if len(messages) > MESSAGES:
        raise InvalidRequest(f"A request has at most {MESSAGES} messages.", param="messages")
    for index, message in enumerate(messages):
        _check_message(message, f"messages[{index}]")
    # Earlier messages may be empty, but not the one that is answered.
    if (last := last_user_index(messages)) >= 0:
        check_not_empty(messages[last].get("content"), f"messages[{last}]")
    include_usage = read_include_usage(body)
    given = body.get("metadata")
    metadata = given if isinstance(given, dict) else {}
    client_metadata = {key: value for key, value in metadata.items() if key not in _OWN_METADATA}
    return CompletionBody(
        agent=body["model"],
        messages=with_calls_restored(_with_files_joined(_with_result_ids(map(_with_refusal_as_content, messages)))),
        stream=bool(typed_field(body, "stream", bool)),
        include_usage=include_usage,
        tools=read_tools(typed_field(body, "tools", list) or []),
        metadata=metadata,
        parameters={key: value for key, value in body.items() if key not in _OWN_FIELDS}
        | ({"metadata": client_metadata} if client_metadata else {}),
        searched=any(message["role"] == "assistant" and cites(message) for message in messages),
    )


def read_include_usage(body: dict[str, Any]) -> bool:
    """Return True if the stream should end with the usage. Remove stream options that are not an object."""
    stream_options = body.get("stream_options")
    if isinstance(stream_options, dict):
        return bool(stream_options.get("include_usage"))
    body.pop("stream_options", None)
    return False


def _with_refusal_as_content(message: dict[str, Any]) -> dict[str, Any]:
    """Move an assistant's refusal to its content, which is stored and which every server accepts."""
    refusal = message.get("refusal")
    if not refusal or not isinstance(refusal, str) or message.get("content") or message["role"] != "assistant":
        return message
    return {**{name: value for name, value in message.items() if name != "refusal"}, "content": refusal}


def _with_result_ids(messages: Iterable[ChatMessage]) -> Iterator[ChatMessage]:
    """Give tool results without an id (Qwen-Agent) those of the calls before them, in order."""
    ids: list[str] = []
    for message in messages:
        if message.get("tool_calls"):
            ids = call_ids(message)
        elif message["role"] == "tool" and ids and not message.get("tool_call_id"):
            message = {**message, "tool_call_id": ids.pop(0)}
        yield message


def _with_files_joined(messages: Iterable[ChatMessage]) -> list[ChatMessage]:
    """Join user messages without text, such as pictures, to the user message directly before them, or if there is none
    to the one directly after them; join mere reminders (AgentScope, Cline) and rules (Genkit) to the one before them.
    Some clients send each part of a message as a message, but the turn's message is the one with the person's words."""
    joined: list[ChatMessage] = []
    parts: list[Any] = []  # the content of the last message, once something was joined to it
    textless = False  # whether the last message is one without text
    for message in messages:
        before, content = joined[-1] if joined else {}, message.get("content")
        of_user = message["role"] == before.get("role") == "user" and before.get("content") and content
        alone = isinstance(content, list) and bool(content) and not text_of(content).strip()
        if not (of_user and (alone or textless or _is_reminder(content))):
            joined.append(message)
            # A picture directly after a tool's result is the tool's, whose message cannot hold it.
            parts, textless = [], alone and message["role"] == "user" and before.get("role") != "tool"
            continue
        parts = parts or list(content_parts(before["content"]))
        parts += content_parts(content)
        joined[-1] = {**(message if textless else before), "content": parts}
        textless = textless and alone
    return joined


def _is_reminder(content: Any) -> bool:
    text = text_of(content).strip()
    return bool(text) and not (without_reminders(text) if text.startswith("<system") else without_rules(text))


def _check_message(message: Any, where: str) -> None:
    role = message.get("role") if isinstance(message, dict) else None
    if not isinstance(role, str):
        raise InvalidRequest(f"{where} must be an object with a role.", param=where)
    if role not in _ROLES:
        raise InvalidRequest(f"{where}.role must be one of system, developer, user, assistant, tool.", param=where)
    content = message.get("content")
    if isinstance(content, list):
        if any(not isinstance(part, dict) for part in content):
            raise InvalidRequest(f"{where}.content has a part that is not an object.", param=where)
    elif content is not None and not isinstance(content, str):
        raise InvalidRequest(f"{where}.content must be text or a list of parts.", param=where)
    if role == "user":
        check_length(content, where)
    if "tool_calls" in message or "tool_call_id" in message:
        _check_calls(message, where)


def _check_calls(message: dict[str, Any], where: str) -> None:
    """Raise InvalidRequest if the tool calls of a message, or its `tool_call_id`, have a wrong type."""
    if message.get("tool_call_id") is not None:
        require_type(message["tool_call_id"], str, f"{where}.tool_call_id")
    calls, where = message.get("tool_calls"), f"{where}.tool_calls"
    if calls is None:
        return
    require_type(calls, list, where)
    if len(calls) > TOOLS:
        raise InvalidRequest(f"{where} has more than {TOOLS} calls.", param=where)
    for index, call in enumerate(calls):
        if fault := call_fault(call):
            path = f"{where}[{index}]{fault[0]}"
            raise InvalidRequest(f"{path} must be {fault[1]}.", param=path)


def check_length(content: Any, where: str) -> None:
    """Raise TooLarge if a user message has too many characters."""
    limit, size = settings.DAYBOOK_MAX_MESSAGE, len(text_of(content))
    if size > limit:
        message = f"A message has at most {limit} characters; this one has {size}. Send it in parts."
        raise TooLarge(message, param=where, limit=limit)


def check_not_empty(content: Any, where: str) -> None:
    """Raise InvalidRequest if a message has neither text nor other parts."""
    if not has_media(content) and not text_of(content).strip():
        raise InvalidRequest("The message is empty. Write something first.", param=where)


def read_tools(tools: Sequence[Any]) -> tuple[dict[str, Any], ...]:
    """Return the tools of a request. Raises InvalidRequest."""
    if len(tools) > TOOLS:
        raise InvalidRequest(f"A request has at most {TOOLS} tools.", param="tools")
    for index, tool in enumerate(tools):
        given = require_type(tool, dict, f"tools[{index}]").get("function")
        function = require_type(given or {}, dict, f"tools[{index}].function")
        require_type(function.get("name", ""), str, f"tools[{index}].function.name")
    return tuple(tools)


def short_name(name: str) -> str:
    """Return the name of a tool for the model. A name that is too long is cut and gets a hash as its end."""
    if len(name) <= _MAX_NAME_CHARS:
        return name
    hashed = hashlib.sha256(name.encode()).hexdigest()[:_HASH_CHARS]
    return f"{name[: _MAX_NAME_CHARS - _HASH_CHARS - 1]}_{hashed}"
