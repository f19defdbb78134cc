"""Translates the body of a request to /v1/messages to that of a chat completion. Fields without a counterpart there are
ignored, since clients send many that only Anthropic's servers support."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gateway.api.anthropic_blocks import (
    Block,
    assistant_message,
    blocks_of,
    content_of,
    is_read_by_server,
    joined_text,
    parts_of,
    result_message,
)
from gateway.api.openai_body import CompletionBody, completion_body, read_object, require_type, short_name, typed_field
from gateway.messages import ChatMessage, joined_content
from memories.errors import InvalidRequest
from memories.json_input import read_json

_ROLES = ("user", "assistant", "system")
_SAME_PARAMETERS = ("max_tokens", "temperature", "top_p", "top_k")
_TOOL_CHOICES = {"auto": "auto", "any": "required", "none": "none"}
_EFFORTS = {"low": "low", "medium": "medium", "high": "high", "xhigh": "high", "max": "high"}
# The largest thinking budgets, in tokens, that correspond to an effort.
_BUDGETS = ((4_095, "low"), (16_383, "medium"))
# Claude Code's system text begins with a line that changes on every request. It would defeat prompt caches.
_BILLING = "x-anthropic-billing-header:"
_REMINDER = ("<system-reminder>", "</system-reminder>")
_SESSION_SUFFIX = re.compile(r"_session_([0-9A-Za-z-]{8,64})$")


def read_messages(raw: bytes) -> CompletionBody:
    """Return a Messages request as a chat completion request. Raises InvalidRequest, TooLarge."""
    body = read_object(raw)
    messages = body.get("messages")
    _require_supported(body)
    if not isinstance(messages, list) or not messages:
        raise InvalidRequest("`messages` must be a list with at least one message.", param="messages")
    given = [*_system(body.get("system")), *_messages(messages)]
    tools = _client_tools(typed_field(body, "tools", list) or [], messages)
    completion = completion_body(
        {
            "model": body["model"],
            "messages": given,
            "stream": body.get("stream"),
            "tools": [_tool(tool) for tool in tools],
            **_parameters(body),
        }
    )
    names = {short_name(tool["name"]): tool["name"] for tool in tools}
    metadata = body.get("metadata")
    searched = any(message["role"] == "assistant" and is_read_by_server(message["content"]) for message in messages)
    return replace(completion, metadata=metadata if isinstance(metadata, dict) else {}, names=names, searched=searched)


def _require_supported(body: Mapping[str, Any]) -> None:
    """Raise InvalidRequest for fields that ask for something else than an answer to the whole conversation."""
    if body.get("thread") is not None:
        # With this error code, the SDKs' tool runner sends the whole conversation instead.
        raise InvalidRequest(
            "`thread` is not supported. Send the whole conversation with each request.",
            param="thread",
            error_code="thread_unsupported_request",
            unsupported=["thread"],
        )
    if body.get("compaction") is not None:
        message = "`compaction` is not supported. Daybook compacts long conversations by itself."
        raise InvalidRequest(message, param="compaction")


def _system(given: Any) -> list[ChatMessage]:
    blocks = blocks_of(given, "system") if given else []
    parts = [part for part in parts_of(blocks, "system") if not str(part.get("text", "")).startswith(_BILLING)]
    return [{"role": "system", "content": content_of(parts)}] if parts else []


def _messages(given: Sequence[Any]) -> list[ChatMessage]:
    messages: list[ChatMessage] = []
    notes: list[str] = []  # texts of the last system messages
    for index, message in enumerate(given):
        where = f"messages[{index}]"
        if not isinstance(message, dict) or message.get("role") not in _ROLES:
            raise InvalidRequest(f"{where} must be an object with the role user or assistant.", param=where)
        blocks = blocks_of(message.get("content"), f"{where}.content")
        if message["role"] == "system":
            notes.append(joined_text(blocks))
            continue
        _add_system_messages(messages, notes)
        notes = []
        if message["role"] == "assistant":
            messages.append(assistant_message(blocks, where))
        else:
            _add_user_message(messages, blocks, f"{where}.content")
    _add_system_messages(messages, notes)
    return messages


def _add_user_message(messages: list[ChatMessage], blocks: Sequence[Block], where: str) -> None:
    """Append a user message. Tool results become separate messages before it. Reminders, which the client writes rather
    than the person, are appended to the results or become a system message."""
    results = [block for block in blocks if block.get("type") == "tool_result"]
    messages.extend(result_message(block, where) for block in results)
    parts = parts_of([block for block in blocks if block.get("type") != "tool_result"], where)
    reminders = [part for part in parts if _is_reminder(part)]
    own_parts = [part for part in parts if not _is_reminder(part)] if reminders else parts
    if results and not own_parts:
        _add_to_result(messages, [str(part["text"]) for part in reminders])
        return
    if reminders and own_parts:
        messages.append({"role": "system", "content": content_of(reminders)})
    messages.append({"role": "user", "content": content_of(own_parts or reminders)})


def _is_reminder(part: Mapping[str, Any]) -> bool:
    text, (start, end) = str(part.get("text", "")).strip(), _REMINDER
    return text.startswith(start) and text.endswith(end) and text.find(end) == len(text) - len(end)


def _add_system_messages(messages: list[ChatMessage], texts: Sequence[str]) -> None:
    """Add system messages in the middle of the conversation. They must not separate calls from their results, nor
    follow the results with which a turn continues."""
    last = messages[-1] if messages else {}
    if last.get("role") == "tool":
        _add_to_result(messages, texts)
    else:
        at = len(messages) - bool(last.get("tool_calls"))
        messages[at:at] = [{"role": "system", "content": text} for text in texts if text]


def _add_to_result(messages: list[ChatMessage], texts: Sequence[str]) -> None:
    messages[-1] = {**messages[-1], "content": joined_content(messages[-1]["content"], *texts)}


def _client_tools(tools: Sequence[Any], messages: Sequence[Any]) -> list[dict[str, Any]]:
    """Return the tools that the client runs, after the changes in `messages`: its system messages may add tools, by
    name or with their definition, and remove them. Raises InvalidRequest."""
    known = {tool["name"]: tool for tool in _own_tools(tools, "tools")}
    offered = dict(known)
    for block in _tool_changes(messages):
        changed = block.get("tool")
        changed = changed if isinstance(changed, dict) else {}
        name = str(changed.get("name"))
        if changed.get("type") == "tool_definition":
            for tool in _own_tools([changed.get("definition")], "tool_addition"):
                known[tool["name"]] = offered[tool["name"]] = tool
        elif block["type"] == "tool_removal":
            offered.pop(name, None)
        elif name in known:
            offered[name] = known[name]
    return list(offered.values())


def _own_tools(tools: Sequence[Any], where: str) -> Iterator[dict[str, Any]]:
    """Yield the tools, except those that Anthropic's servers run. Raises InvalidRequest."""
    for index, tool in enumerate(tools):
        require_type(tool, dict, f"{where}[{index}]")
        if tool.get("type") in (None, "custom"):
            require_type(tool.get("name"), str, f"{where}[{index}].name")
            yield tool


def _tool_changes(messages: Sequence[Any]) -> Iterator[Block]:
    for message in messages:
        for block in message["content"] if isinstance(message["content"], list) else ():
            if message["role"] == "system" and block["type"] in ("tool_addition", "tool_removal"):
                yield block


def _tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    function = {"name": short_name(tool["name"]), "parameters": tool.get("input_schema") or {"type": "object"}}
    for name in ("description", "strict"):
        if tool.get(name) is not None:
            function[name] = tool[name]
    return {"type": "function", "function": function}


def _parameters(body: Mapping[str, Any]) -> dict[str, Any]:
    parameters = {name: body[name] for name in _SAME_PARAMETERS if body.get(name) is not None}
    limit = parameters.get("max_tokens", 1)
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise InvalidRequest("`max_tokens` must be a whole number of at least 1.", param="max_tokens")
    if stop := typed_field(body, "stop_sequences", list):
        parameters["stop"] = stop
    return {**parameters, **_tool_choice(typed_field(body, "tool_choice", dict)), **_output(body)}


def _tool_choice(choice: Mapping[str, Any] | None) -> dict[str, Any]:
    if choice is None:
        return {}
    parameters: dict[str, Any] = {}
    kind = str(choice.get("type"))
    if kind == "tool":
        if not isinstance(choice.get("name"), str):
            raise InvalidRequest("`tool_choice` has no name of a tool.", param="tool_choice")
        parameters["tool_choice"] = {"type": "function", "function": {"name": short_name(choice["name"])}}
    elif kind in _TOOL_CHOICES:
        parameters["tool_choice"] = _TOOL_CHOICES[kind]
    else:
        raise InvalidRequest("`tool_choice.type` must be one of auto, any, tool, none.", param="tool_choice")
    if choice.get("disable_parallel_tool_use"):
        parameters["parallel_tool_calls"] = False
    return parameters


def _output(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters for the reasoning effort and the format of the answer."""
    config = body.get("output_config")
    config = config if isinstance(config, dict) else {}
    effort = _effort(body.get("thinking"), config.get("effort"))
    parameters: dict[str, Any] = {"reasoning_effort": effort} if effort else {}
    form = config.get("format") or body.get("output_format")
    if isinstance(form, dict) and form.get("type") == "json_schema":
        schema = {"name": "answer", "schema": form.get("schema"), "strict": True}
        parameters["response_format"] = {"type": "json_schema", "json_schema": schema}
    return parameters


def _effort(thinking: Any, effort: Any) -> str:
    """Return the requested reasoning effort, or "" if the request leaves it to the model, as adaptive thinking without
    an effort does. Disabled thinking takes precedence over an effort, and an effort over a budget."""
    thinking = thinking if isinstance(thinking, dict) else {}
    if thinking.get("type") == "disabled":
        return "none"
    if isinstance(effort, str) and effort in _EFFORTS:
        return _EFFORTS[effort]
    budget = thinking.get("budget_tokens")
    if thinking.get("type") != "enabled" or isinstance(budget, bool) or not isinstance(budget, int) or budget < 1:
        return ""
    return next((name for limit, name in _BUDGETS if budget <= limit), "high")


def session_in(metadata: Mapping[str, Any]) -> str:
    """Return the session id that Claude Code puts into `metadata.user_id`, as JSON or at its end, or ""."""
    user_id = metadata.get("user_id")
    if not isinstance(user_id, str):
        return ""
    if match := _SESSION_SUFFIX.search(user_id):
        return match[1]
    try:
        given = read_json(user_id, repair=True)
    except InvalidRequest:
        return ""
    session_id = given.get("session_id") if isinstance(given, dict) else None
    return session_id if isinstance(session_id, str) else ""
