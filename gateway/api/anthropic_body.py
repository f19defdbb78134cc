"""The body of a request to /v1/messages as the body of a chat completion. Fields without a counterpart there are left
out: clients send many that only Anthropic's servers know."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from gateway.api.anthropic_blocks import (
    Block,
    Message,
    assistant_message,
    blocks_of,
    joined_text,
    parts_of,
    plain,
    result_message,
)
from gateway.api.openai_body import CompletionBody, checked, completion_body, read_object, short_name
from gateway.upstream.outgoing import joined_content
from memories.errors import InvalidRequest

_ROLES = ("user", "assistant", "system")
_SAME = ("max_tokens", "temperature", "top_p", "top_k")
_TOOL_CHOICES = {"auto": "auto", "any": "required", "none": "none"}
_EFFORTS = {"low": "low", "medium": "medium", "high": "high", "xhigh": "high", "max": "high"}
# Budgets of thinking and the efforts that they stand for; the first budget that is large enough counts.
_BUDGETS = ((4_095, "low"), (16_383, "medium"))
# Begins a line of Claude Code that changes with every request, so that no server could cache what follows it.
_BILLING = "x-anthropic-billing-header:"
_REMINDER = ("<system-reminder>", "</system-reminder>")
_NAMED_SESSION = re.compile(r"_session_([0-9A-Za-z-]{8,64})$")


def read_messages(raw: bytes) -> CompletionBody:
    """Return what a request asks for, in the terms of chat completions. Raises InvalidRequest, TooLarge."""
    body = read_object(raw)
    messages = body.get("messages")
    _require_no_thread(body)
    if not isinstance(messages, list) or not messages:
        raise InvalidRequest("`messages` is a list with at least one message.", param="messages")
    tools = checked(body, "tools", list) or []
    asked = completion_body(
        {
            "model": body["model"],
            "messages": [*_system(body.get("system")), *_messages(messages)],
            "stream": body.get("stream"),
            "tools": [_tool(tool, f"tools[{at}]") for at, tool in enumerate(tools) if _is_offered(tool)],
            **_parameters(body),
        }
    )
    names = {short_name(tool["name"]): tool["name"] for tool in tools if _is_offered(tool)}
    metadata = body.get("metadata")
    return replace(asked, metadata=metadata if isinstance(metadata, dict) else {}, names=names)


def _require_no_thread(body: Mapping[str, Any]) -> None:
    """Refuse a request that wants the server to hold the conversation: the next one would bring new messages only. The
    SDKs look for this code; their runner of tools then sends the whole conversation."""
    if body.get("thread") is not None:
        raise InvalidRequest(
            "`thread` is not offered here. Send the whole conversation with each request.",
            param="thread",
            error_code="thread_unsupported_request",
            unsupported=["thread"],
        )


def _system(given: Any) -> list[Message]:
    blocks = blocks_of(given, "system") if given else []
    parts = [part for part in parts_of(blocks, "system") if not str(part.get("text", "")).startswith(_BILLING)]
    return [{"role": "system", "content": plain(parts)}] if parts else []


def _messages(given: Sequence[Any]) -> list[Message]:
    found: list[Message] = []
    for at, message in enumerate(given):
        where = f"messages[{at}]"
        if not isinstance(message, dict) or message.get("role") not in _ROLES:
            raise InvalidRequest(f"{where} is an object with the role user or assistant.", param=where)
        blocks = blocks_of(message.get("content"), f"{where}.content")
        if message["role"] == "assistant":
            found.append(assistant_message(blocks, where))
        elif message["role"] == "system":
            _add_between(found, joined_text(blocks))
        else:
            _add_asked(found, blocks, f"{where}.content")
    return found


def _add_asked(found: list[Message], blocks: Sequence[Block], where: str) -> None:
    """Append a message of the user. Results of tools become messages of their own, before the text. Reminders that the
    client wrote itself are not the person's words: they are added to the results, or make a system message."""
    results = [block for block in blocks if block.get("type") == "tool_result"]
    found.extend(result_message(block, where) for block in results)
    parts = parts_of([block for block in blocks if block.get("type") != "tool_result"], where)
    reminders = [part for part in parts if _is_reminder(part)]
    words = [part for part in parts if not _is_reminder(part)] if reminders else parts
    if results and not words:
        for part in reminders:
            _add_to_result(found, str(part["text"]))
        return
    if reminders and words:
        found.append({"role": "system", "content": plain(reminders)})
    found.append({"role": "user", "content": plain(words or reminders)})


def _is_reminder(part: Mapping[str, Any]) -> bool:
    text, (begin, end) = str(part.get("text", "")).strip(), _REMINDER
    return text.startswith(begin) and text.endswith(end) and text.find(end) == len(text) - len(end)


def _add_between(found: list[Message], text: str) -> None:
    """Add a system message that stands within the conversation. It must not separate calls from their results, nor
    follow the results with which a turn continues."""
    last = found[-1] if found else {}
    if last.get("role") == "tool":
        _add_to_result(found, text)
    elif text:
        found.insert(len(found) - bool(last.get("tool_calls")), {"role": "system", "content": text})


def _add_to_result(found: list[Message], text: str) -> None:
    if text:
        found[-1] = {**found[-1], "content": joined_content(found[-1]["content"], text)}


def _is_offered(tool: Any) -> bool:
    """Return False for a tool of Anthropic's own servers. All others are tools of the client."""
    return not isinstance(tool, dict) or tool.get("type") in (None, "custom")


def _tool(tool: Any, where: str) -> dict[str, Any]:
    if not isinstance(tool, dict):
        raise InvalidRequest(f"{where} is an object.", param=where)
    if not isinstance(tool.get("name"), str):
        raise InvalidRequest(f"{where}.name is text.", param=f"{where}.name")
    function = {"name": short_name(tool["name"]), "parameters": tool.get("input_schema") or {"type": "object"}}
    for name in ("description", "strict"):
        if tool.get(name) is not None:
            function[name] = tool[name]
    return {"type": "function", "function": function}


def _parameters(body: Mapping[str, Any]) -> dict[str, Any]:
    found = {name: body[name] for name in _SAME if body.get(name) is not None}
    most = found.get("max_tokens", 1)
    if isinstance(most, bool) or not isinstance(most, int) or most < 1:
        raise InvalidRequest("`max_tokens` is a whole number of at least 1.", param="max_tokens")
    if stops := checked(body, "stop_sequences", list):
        found["stop"] = stops
    return {**found, **_tool_choice(checked(body, "tool_choice", dict)), **_output(body)}


def _tool_choice(given: Mapping[str, Any] | None) -> dict[str, Any]:
    if given is None:
        return {}
    found: dict[str, Any] = {}
    kind = str(given.get("type"))
    if kind == "tool":
        if not isinstance(given.get("name"), str):
            raise InvalidRequest("`tool_choice` names no tool.", param="tool_choice")
        found["tool_choice"] = {"type": "function", "function": {"name": short_name(given["name"])}}
    elif kind in _TOOL_CHOICES:
        found["tool_choice"] = _TOOL_CHOICES[kind]
    else:
        raise InvalidRequest("`tool_choice.type` is one of auto, any, tool, none.", param="tool_choice")
    if given.get("disable_parallel_tool_use"):
        found["parallel_tool_calls"] = False
    return found


def _output(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters for the effort of reasoning and the format of the answer."""
    config = body.get("output_config")
    config = config if isinstance(config, dict) else {}
    effort = _effort(body.get("thinking"), config.get("effort"))
    found: dict[str, Any] = {"reasoning_effort": effort} if effort else {}
    form = config.get("format") or body.get("output_format")
    if isinstance(form, dict) and form.get("type") == "json_schema":
        schema = {"name": "answer", "schema": form.get("schema"), "strict": True}
        found["response_format"] = {"type": "json_schema", "json_schema": schema}
    return found


def _effort(thinking: Any, effort: Any) -> str:
    """Return the reasoning effort that a request asks for, or "" if it leaves that to the model, as adaptive thinking
    without an effort does. Disabled thinking comes before an effort, and an effort before a budget."""
    thinking = thinking if isinstance(thinking, dict) else {}
    if thinking.get("type") == "disabled":
        return "none"
    if isinstance(effort, str) and effort in _EFFORTS:
        return _EFFORTS[effort]
    budget = thinking.get("budget_tokens")
    if thinking.get("type") != "enabled" or isinstance(budget, bool) or not isinstance(budget, int) or budget < 1:
        return ""
    return next((named for most, named in _BUDGETS if budget <= most), "high")


def session_in(metadata: Mapping[str, Any]) -> str:
    """Return the session that Claude Code names within `metadata.user_id`, as JSON or at its end; "" for none."""
    user_id = metadata.get("user_id")
    if not isinstance(user_id, str):
        return ""
    if match := _NAMED_SESSION.search(user_id):
        return match[1]
    try:
        named = json.loads(user_id).get("session_id")
    except (ValueError, AttributeError, RecursionError):
        return ""
    return named if isinstance(named, str) else ""
