"""Custom tools, whose input is any text, for servers that know only functions. A custom tool is offered as a function
with one text parameter, and a call of that function comes back as a call of the custom tool."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gateway.upstream.answer import Chunk, choices_of

_INPUT = {"type": "string", "description": "The whole input of the tool, as plain text."}
_PARAMETERS = {"type": "object", "properties": {"input": _INPUT}, "required": ["input"], "additionalProperties": False}


def custom_names(tools: Iterable[Any]) -> frozenset[str]:
    """Return the names of the custom tools among these."""
    found = (tool.get("custom") for tool in tools if isinstance(tool, dict) and tool.get("type") == "custom")
    return frozenset(str(custom["name"]) for custom in found if isinstance(custom, dict) and custom.get("name"))


def with_functions(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request with functions in place of custom tools, also in earlier calls and in `tool_choice`."""
    sent = dict(body)
    if isinstance(tools := body.get("tools"), Sequence):
        sent["tools"] = [_function(tool) for tool in tools]
    if isinstance(choice := body.get("tool_choice"), dict):
        sent["tool_choice"] = _choice(choice)
    if isinstance(messages := body.get("messages"), Sequence):
        sent["messages"] = [_with_called(message) for message in messages]
    return sent


def _custom(given: Any) -> dict[str, Any] | None:
    custom = given.get("custom") if isinstance(given, dict) and given.get("type") == "custom" else None
    return custom if isinstance(custom, dict) else None


def _function(tool: Any) -> Any:
    if (custom := _custom(tool)) is None:
        return tool
    said = str(custom.get("description") or "")
    form = custom.get("format")
    grammar = form.get("grammar") if isinstance(form, dict) else None
    if isinstance(grammar, dict) and grammar.get("definition"):
        said += f"\n\nThe input follows this grammar ({grammar.get('syntax', 'lark')}):\n{grammar['definition']}"
    function = {"name": custom.get("name"), "description": said.strip(), "parameters": _PARAMETERS}
    return {"type": "function", "function": {name: value for name, value in function.items() if value}}


def _choice(choice: dict[str, Any]) -> dict[str, Any]:
    if (custom := _custom(choice)) is not None:
        return {"type": "function", "function": {"name": custom.get("name")}}
    allowed = choice.get("allowed_tools")
    if isinstance(allowed, dict) and isinstance(tools := allowed.get("tools"), list):
        named = [_choice(tool) if isinstance(tool, dict) else tool for tool in tools]
        return {**choice, "allowed_tools": {**allowed, "tools": named}}
    return choice


def _with_called(message: Any) -> Any:
    calls = message.get("tool_calls") if isinstance(message, dict) else None
    if not isinstance(calls, list) or not any(map(_custom, calls)):
        return message
    return {**message, "tool_calls": [_called(call) for call in calls]}


def _called(call: Any) -> Any:
    if (custom := _custom(call)) is None:
        return call
    arguments = json.dumps({"input": custom.get("input") or ""}, ensure_ascii=False)
    rest = {name: value for name, value in call.items() if name != "custom"}
    return {**rest, "type": "function", "function": {"name": custom.get("name"), "arguments": arguments}}


@dataclass(slots=True)
class _Call:
    first: dict[str, Any]
    name: str
    arguments: list[str] = field(default_factory=list)

    def whole(self) -> dict[str, Any]:
        rest = {name: value for name, value in self.first.items() if name != "function"}
        return {**rest, "type": "custom", "custom": {"name": self.name, "input": _input("".join(self.arguments))}}


class CustomCalls:
    """The calls of custom tools in an answer. In a stream each call is held back until its choice ends, since its input
    can be read from the JSON only when that is complete."""

    def __init__(self, names: frozenset[str]) -> None:
        self._names = names
        self._open: dict[tuple[Any, Any], _Call] = {}

    def taken(self, chunk: Chunk) -> Chunk:
        """Return a chunk without pieces of such calls. If it ends a choice it holds the complete calls of that
        choice."""
        if not self._names:
            return chunk
        return {**chunk, "choices": [self._of_choice(choice) for choice in choices_of(chunk)]}

    def rest(self) -> Chunk | None:
        """Return a chunk with the calls of an answer that ended without a `finish_reason`; None if there are none."""
        places = dict.fromkeys(place for place, _ in self._open)
        choices = [{"index": place, "delta": {"tool_calls": self._whole(place)}} for place in places]
        return {"object": "chat.completion.chunk", "choices": choices} if choices else None

    def completion(self, answer: dict[str, Any]) -> dict[str, Any]:
        """Return a whole answer with calls of custom tools in place of calls of functions."""
        if not self._names:
            return answer
        return {**answer, "choices": [self._of_choice(choice, part="message") for choice in choices_of(answer)]}

    def _of_choice(self, choice: dict[str, Any], *, part: str = "delta") -> dict[str, Any]:
        place, said = choice.get("index", 0), choice.get(part)
        pieces = said.get("tool_calls") if isinstance(said, dict) else None
        kept = [
            piece
            for at, piece in enumerate(pieces if isinstance(pieces, list) else ())
            if not self._takes((place, at if part == "message" else _number(piece, at)), piece)
        ]
        if choice.get("finish_reason") or part == "message":
            kept += self._whole(place)
        if not pieces and not kept:
            return choice
        rest = {name: value for name, value in (said or {}).items() if name != "tool_calls"}
        return {**choice, part: {**rest, **({"tool_calls": kept} if kept else {})}}

    def _takes(self, at: tuple[Any, Any], piece: Any) -> bool:
        """Keep a piece of such a call and return True; return False for any other piece."""
        function = piece.get("function") if isinstance(piece, dict) else None
        if not isinstance(function, dict):
            return False
        if at not in self._open:
            if function.get("name") not in self._names:
                return False
            self._open[at] = _Call(piece, str(function["name"]))
        given = function.get("arguments") or ""
        self._open[at].arguments.append(given if isinstance(given, str) else json.dumps(given))
        return True

    def _whole(self, place: Any) -> list[dict[str, Any]]:
        return [self._open.pop(at).whole() for at in list(self._open) if at[0] == place]


def _number(piece: Any, at: int) -> Any:
    number = piece.get("index") if isinstance(piece, dict) else None
    return at if number is None else number


def _input(arguments: str) -> str:
    """Return the text in a call's arguments. Arguments that are not the expected JSON are the text themselves."""
    try:
        given = json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments
    text = given.get("input") if isinstance(given, dict) else given
    return text if isinstance(text, str) else arguments
