"""Extracts a model's reasoning, for which every server uses another field, or the text."""

import re
from collections.abc import Mapping
from typing import Any

_TEXTS = ("reasoning_content", "reasoning")
_OPEN, _CLOSE = "<think>", "</think>"
_LONE_CLOSE = re.compile(r"^[ \t]*</think>[ \t]*$", re.MULTILINE)
_MAX_MODELS = 100
_unopened: set[tuple[str, str]] = set()
"""Upstreams and models of this process whose answers begin within a thought: their prompts end with the opening tag."""


def forget_models() -> None:
    """Forget which models begin within a thought (for tests)."""
    _unopened.clear()


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


def without_thinking(text: str) -> str:
    """Return a text without a leading <think> section, even if a server omitted its opening tag. Return "" if the
    section is never closed."""
    thinking, end_tag, rest = text.partition(_CLOSE)
    has_start_tag = thinking.lstrip().startswith(_OPEN)
    if end_tag and (has_start_tag or _OPEN not in thinking):
        return rest.lstrip()
    return "" if has_start_tag else text


class ThoughtInText:
    """Moves a <think> section at the beginning of a step's text into `reasoning_content`, for servers that do not parse
    their model's reasoning. A section that is never closed is all of the text.

    Servers that write the opening tag into the prompt do not send it. Once a `model` (upstream and name) has closed a
    thought that it had not opened, its answers are taken to begin within one, until one is not closed."""

    def __init__(self, model: tuple[str, str] = ("", "")) -> None:
        self._model = model
        self._assumes = model in _unopened
        self._state = "begins"  # begins, thinks, thought, speaks
        self._held = ""  # may be the beginning of a tag
        self._thought = ""

    def moved(self, part: Mapping[str, Any], *, last: bool = False) -> Mapping[str, Any]:
        """Return a delta with the thought moved. `last`: a complete message or, at the end of a stream, an empty delta;
        nothing follows."""
        content = part.get("content") or ""
        if self._state == "speaks" or not isinstance(content, str):
            return part
        if not content and not (last and (self._held or self._is_unclosed)):
            return part
        thought, text = self._split(content, last=last)
        if text == content and not thought:
            return part
        return {**part, "content": text} | ({"reasoning_content": reasoning_in(part) + thought} if thought else {})

    def learn(self, text: str) -> None:
        """Note from the whole text of an answer whether its model's answers begin within a thought."""
        if self._state == "speaks" and _closes_unopened(text) and len(_unopened) < _MAX_MODELS:
            _unopened.add(self._model)

    @property
    def _is_unclosed(self) -> bool:
        return self._assumes and self._state == "thinks"

    def _split(self, content: str, *, last: bool) -> tuple[str, str]:
        """Return what the content adds to the thought, and to the text."""
        text, self._held = self._held + content, ""
        if self._state == "begins":
            begun = text.lstrip()
            if not last and _OPEN.startswith(begun):
                self._held = text
                return "", ""
            if begun.startswith(_OPEN):
                self._assumes = False
            elif not self._assumes and not (last and _closes_unopened(text)):
                self._state = "speaks"
                return "", text
            self._state, text = "thinks", begun.removeprefix(_OPEN)
        thought = ""
        if self._state == "thinks":
            thought, closed, text = text.partition(_CLOSE)
            if closed:
                self._state = "thought"
            elif not last:
                at = _beginning_of(_CLOSE, thought)
                thought, self._held = thought[:at], thought[at:]
            elif self._is_unclosed:  # it was the answer
                _unopened.discard(self._model)
                return "", self._thought + thought
            thought = thought if self._thought else thought.lstrip()
            self._thought += thought
        if self._state == "thought" and (text := text.lstrip()):
            self._state = "speaks"
        return thought, text


def _closes_unopened(text: str) -> bool:
    """Return True if a line is only the closing tag of a thought, and nothing before opens one."""
    closing = _LONE_CLOSE.search(text) if _CLOSE in text else None
    return closing is not None and _OPEN not in text[: closing.start()]


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
