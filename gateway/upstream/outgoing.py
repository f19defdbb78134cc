"""Builds the request body that a server accepts. This is the only place where the upstream's dialect is applied."""

import re
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from gateway.messages import PARAGRAPH, SYSTEM_ROLES, ChatMessage, content_text, joined_content
from gateway.tool_calls import calls_in, object_text, tool_names
from gateway.upstream.calls import SHAPES, replacement_id
from gateway.upstream.custom_tools import with_functions
from gateway.upstream.dialects import Dialect
from gateway.upstream.kept import KeptFields, kept_of
from gateway.upstream.paths import without
from prompts.conversation import EMPTY_TURN, MEDIA_FOLLOWS, MEDIA_OF_TOOL, NO_RESULT, ORPHANED_RESULT

_PLAIN_FIELDS = frozenset({"role", "content"})
_REASONING_FIELDS = frozenset({"reasoning_content", "reasoning", "reasoning_details", "thinking"})
_OTHER_IN_NAME = re.compile(r"[^A-Za-z0-9_-]")
_MAX_NAME = 64
_MEDIA_TYPES = frozenset({"image_url", "video_url", "input_audio", "file"})


class _Target(NamedTuple):
    """The model that a request is sent to, and the names of the tools in the request."""

    upstream: str
    model: str
    dialect: Dialect
    tools: Collection[str]


def request_body(body: Mapping[str, Any], dialect: Dialect, *, upstream: str) -> dict[str, Any]:
    """Return the request body for this server as a new dictionary."""
    sent = {name: value for name, value in body.items() if value is not None}
    if "messages" in sent:
        target = _Target(upstream, str(body["model"]), dialect, tool_names(sent.get("tools") or ()))
        sent["messages"] = _messages(body["messages"], target)
    if dialect.custom_tools is False:
        sent = with_functions(sent)
    if not dialect.stream_options:
        sent.pop("stream_options", None)
    if not dialect.metadata_without_store and sent.get("store") is not True:
        sent.pop("metadata", None)
    for old, new in dialect.rename.items():
        if old in sent:
            given = sent.pop(old)
            sent.setdefault(new, given)
    sent |= dialect.set
    for path in dialect.drop:
        sent = without(sent, path.split("."))
    return sent


def _messages(given: Iterable[ChatMessage], target: _Target) -> list[ChatMessage]:
    dialect = target.dialect
    messages = _with_results_behind_calls(_with_ids(given, target))
    if dialect.message_placeholders or dialect.calls_placeholders or dialect.call_placeholders:
        messages = _with_placeholders(messages, dialect)
    messages = _text_results(messages)
    if dialect.text_results or not dialect.null_content:
        messages = [_with_text(message, dialect) for message in messages]
    if dialect.system_first:
        messages = _single_system_message(messages)
    if dialect.alternate_roles:
        messages = _alternating(messages)
    return messages


def _with_ids(given: Iterable[ChatMessage], target: _Target) -> list[ChatMessage]:
    """Add the kept fields, and give tool calls ids that this server accepts: a call and its result share an id that is
    unique in the request."""
    messages: list[ChatMessage] = []
    used: set[str] = set()
    open_calls: dict[str, deque[str]] = {}  # ids to send by the ids in the messages
    for message in given:
        role = message.get("role")
        if role == "tool" and (sent_ids := open_calls.get(str(message.get("tool_call_id", "")))):
            message = {**message, "tool_call_id": sent_ids[0] if len(sent_ids) == 1 else sent_ids.popleft()}
        elif role == "assistant":
            kept = kept_of(message)
            if kept is not None or not message.keys() <= _PLAIN_FIELDS:
                message = _with_kept_fields(message, kept, target)
                if calls := calls_in(message):
                    message["tool_calls"], new_ids = _with_call_ids(calls, kept, target, used)
                    open_calls |= new_ids
                else:
                    message.pop("tool_calls", None)  # servers refuse an empty list
            if not message.get("content") and message.keys() <= _PLAIN_FIELDS:
                continue  # servers refuse an empty message
        messages.append(message)
    return messages


def _with_results_behind_calls(given: Iterable[ChatMessage]) -> list[ChatMessage]:
    """Move results directly behind their calls, in the same order, and make several results of a call one, since
    servers accept nothing else. Add a result to each call that has none: clients omit results when a person continues
    without them."""
    messages: list[tuple[ChatMessage, dict[str, list[ChatMessage]]]] = []  # each with the results of its calls, by id
    results: dict[str, list[ChatMessage]] = {}  # of all calls, by id
    without_calls: dict[str, list[ChatMessage]] = {}
    for message in given:
        if message.get("role") == "tool" and (moved := results.get(str(message.get("tool_call_id")))) is not None:
            moved.append(message)
            continue
        own = {str(call.get("id")): [] for call in calls_in(message)} if message.get("tool_calls") else without_calls
        results |= own
        messages.append((message, own))
    ordered: list[ChatMessage] = []
    for message, own in messages:
        ordered.append(message)
        for call_id, found in own.items():
            result = found[-1] if found else {"role": "tool", "tool_call_id": call_id, "content": NO_RESULT}
            if len(found) > 1:
                different = groupby(message.get("content") for message in found)
                result = {**result, "content": joined_content(*(content for content, _ in different))}
            ordered.append(result)
    return ordered


def _with_kept_fields(message: ChatMessage, kept: KeptFields | None, target: _Target) -> ChatMessage:
    """Add the kept fields to an assistant message if they come from the model that it is sent to."""
    restored = {name: value for name, value in message.items() if value is not None or name == "content"}
    if not target.dialect.replay_reasoning:
        return {name: value for name, value in restored.items() if name not in _REASONING_FIELDS}
    return {**restored, **kept.fields} if kept is not None and kept.is_from(target.upstream, target.model) else restored


def _with_call_ids(
    calls: Sequence[ChatMessage], kept: KeptFields | None, target: _Target, used: set[str]
) -> tuple[list[ChatMessage], dict[str, deque[str]]]:
    """Return a message's calls with the ids and kept fields to send, and the new ids by the old ones."""
    shape = SHAPES[target.dialect.call_ids]
    own = kept.calls if kept is not None and kept.is_from(target.upstream, target.model) else {}
    foreign = kept is not None and not own
    sent: list[ChatMessage] = []
    new_ids: dict[str, deque[str]] = {}
    for call in calls:
        message_id = str(call.get("id") or "")
        extra = own.get(message_id, {})
        sent_id = str(extra.get("id") or ("" if foreign else message_id))
        if sent_id in used or not shape.fullmatch(sent_id):
            sent_id = replacement_id(message_id, taken=used)
        used.add(sent_id)
        new_ids.setdefault(message_id, deque()).append(sent_id)
        sent.append(_call(call, extra, sent_id, target.tools))
    return sent, new_ids


def _call(call: ChatMessage, extra: Mapping[str, Any], sent_id: str, tools: Collection[str]) -> ChatMessage:
    """Return a call as servers accept it. They refuse the whole conversation if a model once wrote arguments that are
    not valid JSON, or invented a name that is too long or has other characters than letters, digits, `_` and `-`."""
    sent = {**{key: value for key, value in call.items() if key != "index"}, **extra, "id": sent_id}
    if isinstance(function := call.get("function"), dict):
        arguments = object_text(function.get("arguments"))
        sent["function"] = {**extra.get("function", {}), **function, "arguments": arguments}
        sent.setdefault("type", "function")
    kind = "custom" if sent.get("type") == "custom" else "function"
    part = sent.get(kind)
    if isinstance(part, dict) and (name := str(part.get("name") or "")) not in tools:
        sent[kind] = {**part, "name": _OTHER_IN_NAME.sub("_", name)[:_MAX_NAME] or "unknown"}
    return sent


def _with_placeholders(messages: Sequence[ChatMessage], dialect: Dialect) -> list[ChatMessage]:
    """Add the dialect's placeholders for fields that the server requires but that were lost."""
    last_user = max((at for at, message in enumerate(messages) if message.get("role") == "user"), default=-1)
    filled = []
    for at, message in enumerate(messages):
        if message.get("role") == "assistant":
            message = {**dialect.message_placeholders, **message}
            if calls := message.get("tool_calls"):
                message = {**dialect.calls_placeholders, **message}
                if at > last_user and not any(call.keys() & dialect.call_placeholders.keys() for call in calls):
                    message["tool_calls"] = [{**dialect.call_placeholders, **calls[0]}, *calls[1:]]
        filled.append(message)
    return filled


def _text_results(messages: Iterable[ChatMessage]) -> list[ChatMessage]:
    """Make every tool result a text that belongs to a call, as chat completions require. Media in a result, and results
    without a call, are moved to a user message after the results."""
    converted: list[ChatMessage] = []
    moved: list[Any] = []
    call_ids: set[str] = set()
    for message in messages:
        if message.get("role") != "tool":
            if moved:
                converted.append({"role": "user", "content": moved})
            converted.append(message)
            moved = []
            if message.get("tool_calls"):
                call_ids.update(str(call.get("id")) for call in calls_in(message))
            continue
        media, rest = _split_media(message.get("content"))
        if str(message.get("tool_call_id")) not in call_ids:
            text = content_text(message.get("content"), gap=PARAGRAPH)
            moved += [{"type": "text", "text": PARAGRAPH.join(filter(None, (ORPHANED_RESULT, text)))}, *media]
            continue
        if media:
            message = {**message, "content": rest or MEDIA_FOLLOWS}
            moved += [{"type": "text", "text": MEDIA_OF_TOOL}, *media]
        converted.append(message)
    return [*converted, {"role": "user", "content": moved}] if moved else converted


def _split_media(content: Any) -> tuple[list[Any], list[Any]]:
    """Return the pictures, sounds and files of a content, and all other parts."""
    split: tuple[list[Any], list[Any]] = [], []
    for part in content if isinstance(content, list) else ():
        split[0 if str(part.get("type")) in _MEDIA_TYPES else 1].append(part)
    return split


def _with_text(message: ChatMessage, dialect: Dialect) -> ChatMessage:
    """Return a message with text as its content if the server accepts nothing else there."""
    role, content = message.get("role"), message.get("content")
    if dialect.text_results and role == "tool":
        return {**message, "content": content_text(content, gap=PARAGRAPH)}
    if not dialect.null_content and role == "assistant" and content is None:
        return {**message, "content": ""}
    return message


def _single_system_message(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    system = [message for message in messages if message.get("role") in SYSTEM_ROLES]
    rest = [message for message in messages if message.get("role") not in SYSTEM_ROLES]
    text = PARAGRAPH.join(filter(None, (content_text(message.get("content"), gap=PARAGRAPH) for message in system)))
    return [{"role": "system", "content": text}, *rest] if text else rest


def _alternating(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Make user and assistant alternate after the system text, beginning with the user. Consecutive messages of one
    role are joined, and a short placeholder stands for a missing message. Tool calls, their results and the text after
    them belong to one turn of the assistant."""
    groups: list[list[ChatMessage]] = []  # of messages that become one
    last = "system"  # the role of the last message; tool results count as the assistant's
    for message in messages:
        role = str(message.get("role"))
        if role == last and role in {"user", "assistant"}:
            groups[-1].append(message)
            continue
        if role == "assistant" and last == "system":
            groups.append([{"role": "user", "content": EMPTY_TURN}])
        elif role == "user" and last == "tool":
            groups.append([{"role": "assistant", "content": EMPTY_TURN}])
        groups.append([message])
        last = role
    return [_joined(group) if len(group) > 1 else group[0] for group in groups]


def _joined(messages: Sequence[ChatMessage]) -> ChatMessage:
    """Return consecutive messages of a user or of the assistant as one."""
    joined = dict(messages[0])
    if joined["role"] == "assistant":
        for message in messages:
            joined |= message
        if calls := [call for message in messages for call in message.get("tool_calls") or ()]:
            joined["tool_calls"] = calls
    return {**joined, "content": joined_content(*(message.get("content") for message in messages))}
