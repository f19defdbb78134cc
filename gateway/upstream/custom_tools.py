"""Custom tools, whose input is free text, for servers that only support functions. A custom tool is offered as a
function with one text parameter, and gateway.upstream.calls converts calls of that function to calls of the custom
tool."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from gateway.messages import ChatMessage
from gateway.tool_calls import calls_in

_INPUT = {"type": "string", "description": "The whole input of the tool, as plain text."}
_PARAMETERS = {"type": "object", "properties": {"input": _INPUT}, "required": ["input"], "additionalProperties": False}


def custom_names(tools: Iterable[Any]) -> frozenset[str]:
    """Return the names of the custom tools among these."""
    return frozenset(str(custom["name"]) for custom in map(_custom, tools) if custom and custom.get("name"))


def with_functions(body: Mapping[str, Any]) -> dict[str, Any]:
    """Replace custom tools in a request body by functions: in `tools`, `tool_choice` and the messages' calls."""
    sent = dict(body)
    if tools := body.get("tools"):
        sent["tools"] = [_function(tool) for tool in tools]
    if isinstance(choice := body.get("tool_choice"), dict):
        sent["tool_choice"] = _choice(choice)
    if messages := body.get("messages"):
        sent["messages"] = [_message(message) for message in messages]
    return sent


def _custom(item: Any) -> dict[str, Any] | None:
    """Return the `custom` object of a tool, a tool choice or a call; None if it is of another type."""
    custom = item.get("custom") if isinstance(item, dict) and item.get("type") == "custom" else None
    return custom if isinstance(custom, dict) else None


def _function(tool: Any) -> Any:
    if (custom := _custom(tool)) is None:
        return tool
    description = str(custom.get("description") or "")
    form = custom.get("format")
    grammar = form.get("grammar") if isinstance(form, dict) else None
    if isinstance(grammar, dict) and grammar.get("definition"):
        description += f"\n\nThe input follows this grammar ({grammar.get('syntax', 'lark')}):\n{grammar['definition']}"
    function = {"name": custom.get("name"), "description": description.strip(), "parameters": _PARAMETERS}
    return {"type": "function", "function": {name: value for name, value in function.items() if value}}


def _choice(choice: dict[str, Any]) -> dict[str, Any]:
    if (custom := _custom(choice)) is not None:
        return {"type": "function", "function": {"name": custom.get("name")}}
    allowed = choice.get("allowed_tools")
    if isinstance(allowed, dict) and isinstance(tools := allowed.get("tools"), list):
        converted = [_choice(tool) if isinstance(tool, dict) else tool for tool in tools]
        return {**choice, "allowed_tools": {**allowed, "tools": converted}}
    return choice


def _message(message: ChatMessage) -> ChatMessage:
    calls = calls_in(message)
    return {**message, "tool_calls": [_function_call(call) for call in calls]} if any(map(_custom, calls)) else message


def _function_call(call: dict[str, Any]) -> dict[str, Any]:
    if (custom := _custom(call)) is None:
        return call
    arguments = json.dumps({"input": custom.get("input") or ""}, ensure_ascii=False)
    rest = {name: value for name, value in call.items() if name != "custom"}
    return {**rest, "type": "function", "function": {"name": custom.get("name"), "arguments": arguments}}


def input_in(arguments: str) -> str:
    """Return the input in the arguments of such a function, or the arguments if they are not the expected JSON."""
    try:
        parsed = json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments
    text = parsed.get("input") if isinstance(parsed, dict) else parsed
    return text if isinstance(text, str) else arguments
