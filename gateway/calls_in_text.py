"""Finds tool calls that a model wrote into its text: because it was asked to, or because its server does not parse the
format of its calls. A call is a JSON object with the tool's name and arguments, under any of the usual keys and however
nested; or arguments right after the name (Llama, Mistral, DeepSeek, Kimi), in tags (Qwen, GLM, MiniMax, DeepSeek) or in
Python's syntax (Llama, LFM, Gemma)."""

import ast
import json
import re
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

from gateway.upstream.calls import MAX_CALLS
from memories.model_json import located_objects_in
from memories.storable import storable_text
from memories.tools import READ, TOOLS, ToolCall, tool_meant

_NAMES = ("tool", "name", "tool_name", "function", "function_name")
_ARGUMENTS = ("arguments", "parameters", "args", "input")
_NOT_ARGUMENTS = frozenset({*_NAMES, *_ARGUMENTS, "type", "index", "id"})
_MAX_DEPTH = 5
_MAX_GAP = 60  # characters between a name and its arguments: a tag, a fence
# Calls in tags and their arguments: Qwen; MiniMax and DeepSeek; GLM
_TAGGED = [
    (re.compile(call, re.DOTALL), re.compile(argument, re.DOTALL))
    for call, argument in (
        (
            r"<function=([^<>\s]{1,100})>((?:(?!<function=).)*?)</function>",
            r"<parameter=(\w{1,40})>((?:(?!<parameter=).)*?)</parameter>",
        ),
        (
            r'invoke name="([^"<>\s]{1,100})">((?:(?!invoke name=).)*?)</(?:｜DSML｜)?invoke>',
            r'parameter name="(\w{1,40})"[^<>]{0,40}>((?:(?!parameter name=).)*?)</(?:｜DSML｜)?parameter>',
        ),
        (
            r"<tool_call>\s*+([^<>\s{}]{1,100}+)((?:(?!<tool_call>).)*?)</tool_call>",
            r"<arg_key>(\w{1,40})</arg_key>\s*+<arg_value>((?:(?!<arg_key>).)*?)</arg_value>",
        ),
    )
]
_PYTHON_CALL = re.compile(r"(?:\[|\)\s*+,|<\|python_tag\|>|```tool_code)\s*+([\w.]{1,100}+)\(")
_PYTHON_ARGUMENTS = re.compile(r"((?:[^()\"']|\"(?:\\.|[^\"\\])*+\"|'(?:\\.|[^'\\])*+')*+)\)", re.DOTALL)


class Call(NamedTuple):
    """A call, and where it begins in the text. `given` is None if its arguments do not fit."""

    start: int
    name: str
    given: Any


def calls_in_text(text: str, tools: Collection[str]) -> list[ToolCall]:
    """Return the calls in a text, at most MAX_CALLS, in the form that begins first: the arguments of a call may quote
    calls in other forms. `tools` are the names of the offered tools; a call of another tool is only recognised by its
    form, as JSON."""
    forms = (list(_json_calls(text, tools)), *_tagged_calls(text, tools), list(_python_calls(text, tools)))
    first = min((calls for calls in forms if calls), key=lambda calls: calls[0].start, default=[])
    found = [call for call in first if call.given is not None][:MAX_CALLS]
    return [
        ToolCall(
            id=str(number),
            name=storable_text(tool_meant(name, tools)),
            arguments=storable_text(given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)),
        )
        for number, (_, name, given) in enumerate(found)
    ]


def _json_calls(text: str, tools: Collection[str]) -> Iterator[Call]:
    for start, before, data in located_objects_in(text):
        calls = list(_calls_of(data, tools))
        if not calls and data and (name := _last_name(before[-_MAX_GAP:], tools)) and _fits(name, data):
            calls = [(name, data)]
        yield from (Call(start, name, given) for name, given in calls)


def _tagged_calls(text: str, tools: Collection[str]) -> Iterator[list[Call]]:
    """Yield the calls in each of the forms."""
    for call, argument in _TAGGED:
        calls = []
        for found in call.finditer(text):
            arguments = {key: value.strip() for key, value in argument.findall(found[2])}
            if arguments or (not found[2].strip() and tool_meant(found[1], tools) in tools):
                calls.append(Call(found.start(), found[1], arguments))
        yield calls


def _python_calls(text: str, tools: Collection[str]) -> Iterator[Call]:
    end = 0  # of the last call: what is written within its arguments is no call
    for call in _PYTHON_CALL.finditer(text):
        if call.start(1) < end:
            continue
        written, name = _PYTHON_ARGUMENTS.match(text, call.end()), tool_meant(call[1], tools)
        given = _python_arguments(name, written[1]) if written and name in tools else None
        yield Call(call.start(), name, given or None)
        if not written:
            return  # nobody knows where it ends
        end = written.end()


def _python_arguments(name: str, written: str) -> str:
    """Return the keyword arguments of a call in Python's syntax as JSON, or "" if the tool has no such arguments."""
    try:
        call = ast.parse(f"call({written})", mode="eval").body
        keywords = call.keywords if isinstance(call, ast.Call) and not call.args else ()
        given = {keyword.arg: ast.literal_eval(keyword.value) for keyword in keywords}
        is_complete = bool(given) == bool(written.strip())
        return json.dumps(given, ensure_ascii=False) if is_complete and _fits(name, given) else ""
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return ""


def _calls_of(data: Any, tools: Collection[str], depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Yield the calls in a JSON value: itself, or those nested in it."""
    if isinstance(data, dict) and (name := next((data[key] for key in _NAMES if isinstance(data.get(key), str)), "")):
        beside = {key: value for key, value in data.items() if key not in _NOT_ARGUMENTS}
        given = next((data[key] for key in _ARGUMENTS if data.get(key) is not None), beside or None)
        meant = tool_meant(name, tools)
        if meant in tools:
            yield name, given if given is not None and _fits(meant, given) else None
        elif given is not None and given is not beside:
            yield name, given
        return
    if depth < _MAX_DEPTH and isinstance(data, dict | list):
        for value in data.values() if isinstance(data, dict) else data:
            yield from _calls_of(value, tools, depth + 1)


def _fits(name: str, given: Any) -> bool:
    """Return True if an offered tool has such arguments. `read` is a word of many texts and data formats."""
    fields = TOOLS.get(name, READ).arguments.model_fields.keys()
    return given.keys() <= fields if isinstance(given, dict) else isinstance(given, str)


def _last_name(text: str, tools: Collection[str]) -> str:
    """Return the offered tool that is named last in a text, or ""."""
    named = [match[0] for match in re.finditer(r"\w+", text) if match[0] in tools]
    return named[-1] if named else ""
