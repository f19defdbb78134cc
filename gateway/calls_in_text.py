"""Finds tool calls that a model wrote into its text: because it was asked to, or because its server does not parse the
format of its calls. A call is a JSON object with the tool's name and arguments, under any of the usual keys and however
nested; or arguments right after the name (Llama, Mistral, DeepSeek, Kimi) or in tags (Qwen)."""

import json
import re
from collections.abc import Collection, Iterator
from typing import Any

from gateway.upstream.calls import MAX_CALLS
from memories.model_json import located_objects_in
from memories.tools import ToolCall, tool_meant

_NAMES = ("tool", "name", "tool_name", "function", "function_name")
_ARGUMENTS = ("arguments", "parameters", "args", "input")
_LABELS = frozenset({*_NAMES, "type", "index"})
_MAX_DEPTH = 5
_MAX_GAP = 60  # characters between a name and its arguments: a tag, a fence
_TAGGED_CALL = re.compile(r"<function=([^<>\s]{1,100})>((?:(?!<function=).)*?)</function>", re.DOTALL)
_TAGGED_ARGUMENT = re.compile(r"<parameter=(\w{1,40})>((?:(?!<parameter=).)*?)</parameter>", re.DOTALL)


def calls_in_text(text: str, tools: Collection[str]) -> list[ToolCall]:
    """Return the calls in a text, at most MAX_CALLS. `tools` are the names of the offered tools; a call of another tool
    is only recognised by its form, as JSON."""
    found = list(_found(text, tools))[:MAX_CALLS]
    return [
        ToolCall(
            id=str(number),
            name=tool_meant(name, tools),
            arguments=given if isinstance(given, str) else json.dumps(given, ensure_ascii=False),
        )
        for number, (name, given) in enumerate(found)
    ]


def _found(text: str, tools: Collection[str]) -> Iterator[tuple[str, Any]]:
    """Yield `(name, arguments)` of each call."""
    for before, data in located_objects_in(text):
        calls = list(_calls_of(data, tools))
        if not calls and data and (name := _last_name(before[-_MAX_GAP:], tools)):
            calls = [(name, data)]
        yield from calls
    for name, body in _TAGGED_CALL.findall(text):
        if arguments := {key: value.strip() for key, value in _TAGGED_ARGUMENT.findall(body)}:
            yield name, arguments


def _calls_of(data: Any, tools: Collection[str], depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Yield the calls in a JSON value: itself, or those nested in it."""
    if isinstance(data, dict) and (name := _name_of(data)):
        beside = {key: value for key, value in data.items() if key not in _LABELS}
        given = next((data[key] for key in _ARGUMENTS if data.get(key) is not None), None)
        if given is not None or (beside and tool_meant(name, tools) in tools):
            yield name, beside if given is None else given
        return
    if depth < _MAX_DEPTH and isinstance(data, dict | list):
        for value in data.values() if isinstance(data, dict) else data:
            yield from _calls_of(value, tools, depth + 1)


def _name_of(data: dict[str, Any]) -> str:
    return next((data[key] for key in _NAMES if isinstance(data.get(key), str)), "")


def _last_name(text: str, tools: Collection[str]) -> str:
    """Return the offered tool that is named last in a text, or ""."""
    places = {name: text.rfind(name) for name in tools}
    name = max(places, key=places.__getitem__, default="")
    return name if name and places[name] >= 0 else ""
