"""Extracts a model's reasoning, for which every server uses another field, or the text."""

import json
import re
from collections.abc import Mapping
from typing import Any

_TEXTS = ("reasoning_content", "reasoning")
_OPEN, _CLOSE = "<think>", "</think>"
_TAGS: Mapping[str, str] = {_OPEN: _CLOSE, "[THINK]": "[/THINK]"}  # the second: Magistral
_LONE_CLOSE = re.compile(r"^[ \t]*(</think>)[ \t]*$", re.MULTILINE)
_FENCE = "```"
_MAX_MODELS = 100
_MAX_CHARS = 500  # of the values of _SWITCHES
_MAX_UNCLOSED = 2
_MAX_HELD = 1_000  # characters of white space and of a tag's beginning that are held back
_TELLING = frozenset({"thought", "speaks", "unclosed"})  # states at the end of a stream that had a thought, or text
# Parameters of a request that switch thinking on or off, on vLLM and SGLang, DashScope, Z.ai, OpenRouter, Ollama.
_SWITCHES = ("chat_template_kwargs", "enable_thinking", "thinking", "reasoning", "reasoning_effort", "think")
_NO_PARAMETERS: Mapping[str, Any] = {}
_unopened: dict[tuple[str, str, str], int] = {}
"""Upstreams, models and values of _SWITCHES in this process whose answers begin within a thought, since their prompts
end with the opening tag, and how many of their latest answers closed none."""


def reasoning_in(part: Mapping[str, Any]) -> str:
    """Return the reasoning in a delta or a message; "" if there is none, or if it is encrypted."""
    for name in _TEXTS:
        if isinstance(part.get(name), str) and part[name]:
            return str(part[name])
    if text := _thinking(part):  # some proxies
        return text
    details = part.get("reasoning_details")
    if isinstance(details, list):
        return "".join(_text(item, ("text", "summary")) for item in details)
    content = part.get("content")
    if isinstance(content, list):  # Mistral
        return "".join(_thinking(item) for item in content if isinstance(item, dict) and item.get("type") == "thinking")
    return ""


class ThoughtInText:
    """Moves a section of _TAGS at the beginning of a step's text into `reasoning_content`, for servers that do not
    parse their model's reasoning. A section that is never closed is all of the text.

    Servers that write the opening tag into the prompt do not send it. Once a stream of a `model` (upstream and name)
    has closed a thought that it had not opened, its streams with the same `parameters` of thinking are taken to begin
    within one. What is not closed then was the answer, unless it was cut off, and is moved back at the end."""

    def __init__(self, model: tuple[str, str] = ("", ""), parameters: Mapping[str, Any] = _NO_PARAMETERS) -> None:
        self._model = model
        self._switches = json.dumps([parameters.get(name) for name in _SWITCHES], sort_keys=True)[:_MAX_CHARS]
        self._is_assumed = (*model, self._switches) in _unopened
        self._state = "begins"  # begins, thinks, thought, speaks, unclosed
        self._close = _CLOSE
        self._held = ""  # may be the beginning of a tag
        self._has_thought = False
        self._pieces: list[str] = []  # of a thought that is assumed to be one

    def moved(self, part: Mapping[str, Any], *, last: bool = False, cut_off: bool = False) -> Mapping[str, Any]:
        """Return a delta with the thought moved. `last`: a complete message or, at the end of a stream, an empty delta;
        nothing follows. `cut_off`: the stream did not end by itself."""
        content = part.get("content") or ""
        if self._state == "speaks" or not isinstance(content, str):
            return part
        if self._state == "begins" and not content.strip() and part.get("tool_calls"):
            last = True  # a thought would have begun before the calls; held white space belongs before them
        if not content and not (last and (self._held or self._pieces)):
            return part
        thought, text = self._split(content, last=last, cut_off=cut_off)
        if text == content and not thought:
            return part
        return {**part, "content": text} | ({"reasoning_content": reasoning_in(part) + thought} if thought else {})

    def ended(self, model: tuple[str, str], text: str) -> None:
        """Note what the end of a stream shows about the model that answered; `text` is its text without the thought."""
        key = (*model, self._switches)
        if self._state == "speaks" and _unopened_end(text):
            _unopened.setdefault(key, 0)
            if len(_unopened) > _MAX_MODELS:
                del _unopened[next(iter(_unopened))]
        elif self._is_assumed and model == self._model and key in _unopened and self._state in _TELLING:
            _unopened[key] = _unopened[key] + 1 if self._state == "unclosed" else 0
            if _unopened[key] >= _MAX_UNCLOSED:
                del _unopened[key]

    def _split(self, content: str, *, last: bool, cut_off: bool) -> tuple[str, str]:
        """Return what the content adds to the thought, and to the text."""
        text, self._held = self._held + content, ""
        if self._state == "begins":
            begun = text.lstrip()
            if not last and len(text) < _MAX_HELD and any(tag.startswith(begun) for tag in _TAGS):
                self._held = text
                return "", ""
            if opened := next(filter(begun.startswith, _TAGS), ""):
                self._is_assumed, self._close = False, _TAGS[opened]
            elif last and (end := _unopened_end(text)):
                self._state = "speaks"
                return text[: end - len(_CLOSE)].strip(), text[end:].lstrip()
            elif last or not self._is_assumed:
                self._state = "speaks"
                return "", text
            self._state, text = "thinks", begun.removeprefix(opened)
        thought = ""
        if self._state == "thinks":
            thought, text = self._think(text, last=last, cut_off=cut_off)
        if self._state == "thought" and (text := text.lstrip()):
            self._state = "speaks"
        return thought, text

    def _think(self, content: str, *, last: bool, cut_off: bool) -> tuple[str, str]:
        thought, closed, text = content.partition(self._close)
        if closed:
            self._state = "thought"
        elif not last:
            at = _beginning_of(self._close, thought)
            thought, self._held = thought[:at], thought[at:]
        elif self._is_assumed and not cut_off:
            self._state = "unclosed"
            return "", "".join([*self._pieces, thought])
        thought = thought if self._has_thought else thought.lstrip()
        self._has_thought = self._has_thought or bool(thought)
        if self._is_assumed:
            self._pieces.append(thought)
        return thought, text


def _unopened_end(text: str) -> int:
    """Return the end of the closing tag of a thought that nothing opened: alone on a line, outside code. 0 if there is
    none."""
    closing = _LONE_CLOSE.search(text) if _CLOSE in text else None
    if closing is None:
        return 0
    before = text[: closing.start()]
    return 0 if _OPEN in before or before.count(_FENCE) % 2 else closing.end(1)


def _beginning_of(tag: str, text: str) -> int:
    """Return where the beginning of a tag is at the end of a text, or the length of the text."""
    places = range(max(0, len(text) - len(tag) + 1), len(text))
    return next((at for at in places if tag.startswith(text[at:])), len(text))


def _thinking(item: Mapping[str, Any]) -> str:
    value = item.get("thinking")
    if isinstance(value, list):
        return "".join(_text(part, ("text",)) for part in value)
    return value if isinstance(value, str) else ""


def _text(item: Any, names: tuple[str, ...]) -> str:
    values = (item.get(name) for name in names) if isinstance(item, dict) else ()
    return next((text for text in values if isinstance(text, str)), "")
