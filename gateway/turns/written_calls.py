"""Calls of our tools that a server leaves in the text of a step, because it does not parse its model's format. Such
text is held back and replaced by the calls. Calls of a client's tools stay text: they pass as the server sent them."""

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from gateway.calls_in_text import calls_in_text
from gateway.messages import ChatMessage, content_text
from gateway.runs.fingerprint import strip_whitespace
from gateway.steps import ModelStepResult
from gateway.upstream.calls import StepCall, replacement_id

_MARKERS = (
    "<tool_call>", "<function=", "[TOOL_CALLS]", "<|python_tag|>", "<|tool_call", "<｜tool▁call", "<｜DSML｜",
    "<invoke", "<minimax:tool_call>",
)  # fmt: skip
_MARKER = re.compile("|".join(map(re.escape, _MARKERS)))
_LONGEST = max(map(len, _MARKERS))
_STARTS = ("{", "[", "`", "<")  # an answer that begins otherwise can only have calls after a marker
_UNDECIDED = 80  # characters within which a call names its tool
_CLOSERS = "}]>)"
_AROUND_CALL = re.compile(r"<\|[^|<>]*\|>|```\w*|\A\s*\[|\]\s*\Z")
_WORD = re.compile(r"\w+")
_NEVER_WRITTEN = frozenset({"delete_memory"})  # needs no evidence, so it must not be made of a quotation


class WrittenCalls:
    """The text of one step in which calls of the tools `names` are looked for. `key` makes the ids of the calls;
    `messages` are those of the request: a call that they contain is a quotation, such as of a page.

    A call is the end of a text, and begins it or follows a marker. Text that may become one is held back until it is
    certain, so ordinary answers arrive as they are written."""

    def __init__(self, names: Collection[str], key: str, messages: Sequence[ChatMessage] = ()) -> None:
        self._names, self._key, self._messages = frozenset(names) - _NEVER_WRITTEN, key, messages
        self._held = ""
        self._held_logprobs: list[Any] = []
        self._shown: list[str] = []
        self._state = "begins" if self._names else "shown"  # begins, searched, undecided, held, shown
        self._calls: list[StepCall] = []

    def take(self, text: str, *, parsed: bool = False) -> str:
        """Add a piece of the text, and return what can be shown now. If the server has `parsed` a call of the step, it
        parses all of them, and the text is shown before it."""
        if parsed and self._state != "shown":
            self._state, text = "shown", self._release() + text
        if self._state == "shown":
            return self._show(text)
        self._held += text
        if self._state == "begins":
            self._begin()
        show = self._before_marker() if self._state == "searched" else ""
        if self._state == "undecided":
            head = self._held[:_UNDECIDED]
            if not self._names.isdisjoint(_WORD.findall(head)):
                self._state = "held"
            elif len(self._held) >= _UNDECIDED:
                self._state = "shown"
                show += self._release()
        return self._show(show)

    def with_logprobs(self, choice: dict[str, Any]) -> dict[str, Any]:
        """Return the choice that contained the last piece, with the log probabilities of the text that is shown now."""
        given = choice.get("logprobs")
        logprobs: dict[str, Any] = given if isinstance(given, dict) else {}
        entries = logprobs.get("content")
        if not self._held_logprobs and not (self._held and entries):
            return choice
        self._held_logprobs += entries if isinstance(entries, list) else ()
        if self._held:
            return {**choice, "logprobs": None}
        shown, self._held_logprobs = self._held_logprobs, []
        return {**choice, "logprobs": {**logprobs, "content": shown}}

    def end(self) -> str:
        """Return the held text at the end of the step, unless it is calls."""
        ends_with_call = not any(map(str.isalnum, self._held[1 + max(map(self._held.rfind, _CLOSERS)) :]))
        if self._state == "held" and ends_with_call and not self._is_quoted():
            found = [call for call in calls_in_text(self._held, self._names) if call.name in self._names]
            for call in found:
                call_id = replacement_id(f"{self._key}:{call.id}", taken=())
                self._calls.append(StepCall(id=call_id, name=call.name, arguments=call.arguments))
        return "" if self._calls else self._show(self._release())

    def applied(self, result: ModelStepResult) -> ModelStepResult:
        """Return the step's result with the calls in place of their text."""
        if not self._calls:
            return result
        return replace(result, text="".join(self._shown).rstrip(), calls=[*result.calls, *self._calls])

    def _is_quoted(self) -> bool:
        as_json = self._held[max(0, self._held.find("{")) : self._held.rfind("}") + 1]
        call = strip_whitespace(as_json or _AROUND_CALL.sub("", self._held))
        return any(call in strip_whitespace(content_text(message.get("content"))) for message in self._messages)

    def _begin(self) -> None:
        if begun := self._held.lstrip():
            self._state = "undecided" if begun.startswith(_STARTS) else "searched"

    def _before_marker(self) -> str:
        """Return the text before a marker, or before what may become one."""
        marker = _MARKER.search(self._held)
        at = marker.start() if marker else _beginning_of_marker(self._held)
        show, self._held = self._held[:at], self._held[at:]
        if marker:
            self._state = "undecided"
        return show

    def _release(self) -> str:
        text, self._held = self._held, ""
        return text

    def _show(self, text: str) -> str:
        if self._names and text:
            self._shown.append(text)
        return text


def _beginning_of_marker(text: str) -> int:
    """Return where the beginning of a marker is at the end of a text, or the length of the text."""
    places = range(max(0, len(text) - _LONGEST), len(text)) if "<" in text or "[" in text else ()
    return next((at for at in places if any(marker.startswith(text[at:]) for marker in _MARKERS)), len(text))
