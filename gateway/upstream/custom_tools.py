"""Custom tools, whose input is free text, for servers that only support functions. A custom tool is offered as a
function with one text parameter, and calls of that function are converted to calls of the custom tool."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gateway.upstream.answer import Chunk, choices_of

_INPUT = {"type": "string", "description": "The whole input of the tool, as plain text."}
_PARAMETERS = {"type": "object", "properties": {"input": _INPUT}, "required": ["input"], "additionalProperties": False}


def custom_names(tools: Iterable[Any]) -> frozenset[str]:
    return frozenset(str(custom["name"]) for custom in map(_custom, tools) if custom and custom.get("name"))


def with_functions(body: Mapping[str, Any]) -> dict[str, Any]:
    """Replace custom tools in a request body by functions: in `tools`, `tool_choice` and the messages' calls."""
    sent = dict(body)
    if isinstance(tools := body.get("tools"), Sequence):
        sent["tools"] = [_function(tool) for tool in tools]
    if isinstance(choice := body.get("tool_choice"), dict):
        sent["tool_choice"] = _choice(choice)
    if isinstance(messages := body.get("messages"), Sequence):
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


def _message(message: Any) -> Any:
    calls = message.get("tool_calls") if isinstance(message, dict) else None
    if not isinstance(calls, list) or not any(map(_custom, calls)):
        return message
    return {**message, "tool_calls": [_function_call(call) for call in calls]}


def _function_call(call: Any) -> Any:
    if (custom := _custom(call)) is None:
        return call
    arguments = json.dumps({"input": custom.get("input") or ""}, ensure_ascii=False)
    rest = {name: value for name, value in call.items() if name != "custom"}
    return {**rest, "type": "function", "function": {"name": custom.get("name"), "arguments": arguments}}


@dataclass(slots=True)
class _Call:
    first_piece: dict[str, Any]
    name: str
    arguments: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        rest = {name: value for name, value in self.first_piece.items() if name != "function"}
        return {**rest, "type": "custom", "custom": {"name": self.name, "input": _input("".join(self.arguments))}}


class CustomCalls:
    """Converts function calls in an answer back to calls of the custom tools with these names. In a stream, a call is
    held back until its choice ends, since its input can only be read from the complete JSON."""

    def __init__(self, names: frozenset[str]) -> None:
        self._names = names
        self._open: dict[tuple[Any, Any], _Call] = {}  # by the index of the choice and that of the call

    def convert_chunk(self, chunk: Chunk) -> Chunk:
        """Return a chunk without pieces of custom calls. If it ends a choice, it has that choice's complete calls."""
        if not self._names:
            return chunk
        return {**chunk, "choices": [self._convert(choice) for choice in choices_of(chunk)]}

    def flush(self) -> Chunk | None:
        """Return a chunk with the calls still held back after an answer without a `finish_reason`, or None."""
        indexes = dict.fromkeys(choice_index for choice_index, _ in self._open)
        choices = [{"index": index, "delta": {"tool_calls": self._close_calls(index)}} for index in indexes]
        return {"object": "chat.completion.chunk", "choices": choices} if choices else None

    def convert_completion(self, answer: dict[str, Any]) -> dict[str, Any]:
        if not self._names:
            return answer
        return {**answer, "choices": [self._convert(choice, part="message") for choice in choices_of(answer)]}

    def _convert(self, choice: dict[str, Any], *, part: str = "delta") -> dict[str, Any]:
        index, message = choice.get("index", 0), choice.get(part)
        pieces = message.get("tool_calls") if isinstance(message, dict) else None
        calls = [
            piece
            for at, piece in enumerate(pieces if isinstance(pieces, list) else ())
            if not self._hold((index, at if part == "message" else _index(piece, at)), piece)
        ]
        if choice.get("finish_reason") or part == "message":
            calls += self._close_calls(index)
        if not pieces and not calls:
            return choice
        rest = {name: value for name, value in (message or {}).items() if name != "tool_calls"}
        return {**choice, part: {**rest, **({"tool_calls": calls} if calls else {})}}

    def _hold(self, key: tuple[Any, Any], piece: Any) -> bool:
        """Hold back a piece of a custom call and return True; return False for any other piece."""
        function = piece.get("function") if isinstance(piece, dict) else None
        if not isinstance(function, dict):
            return False
        if key not in self._open:
            if function.get("name") not in self._names:
                return False
            self._open[key] = _Call(piece, str(function["name"]))
        given = function.get("arguments") or ""
        self._open[key].arguments.append(given if isinstance(given, str) else json.dumps(given))
        return True

    def _close_calls(self, choice_index: Any) -> list[dict[str, Any]]:
        return [self._open.pop(key).as_json() for key in list(self._open) if key[0] == choice_index]


def _index(piece: Any, default: int) -> Any:
    index = piece.get("index") if isinstance(piece, dict) else None
    return default if index is None else index


def _input(arguments: str) -> str:
    """Return the text in a call's arguments, or the arguments themselves if they are not the expected JSON."""
    try:
        parsed = json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments
    text = parsed.get("input") if isinstance(parsed, dict) else parsed
    return text if isinstance(text, str) else arguments
