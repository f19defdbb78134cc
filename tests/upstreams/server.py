"""A scripted model server of any kind, in this process.

It enforces its kind's rules, answers in its format, and remembers its messages, because some servers require them
back."""

import json
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx2
import openai
import pytest

from gateway.models import LearnedChange
from gateway.upstream import wire
from gateway.upstream.cache import change_of
from tests.upstreams.rules import Rules, error_body, refusal

USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10, "cost": 0.25}
KEY = "sk-upstream-0123456789"
Serve = Callable[[str], "RuledServer"]
"""The fixture `serve`."""


def learned_changes() -> list[str]:
    """Return what was learned from refusals, in words."""
    return sorted(str(change_of(row)) for row in LearnedChange.objects.all())


def connect_to(transport: httpx2.AsyncBaseTransport, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reach all upstreams by this transport until the test ends."""
    monkeypatch.setattr(wire, "http_client", lambda: openai.DefaultAsyncHttpxClient(transport=transport))


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """An answer: the model's reasoning, text and calls as (name, arguments); or an error, `refused`."""

    text: str = ""
    thought: str = ""
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()
    refused: str = ""
    code: str | None = None
    param: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A refusal that no dialect covers: the server answers requests for which `when` is true with `body`."""

    body: Any
    when: Callable[[dict[str, Any]], bool]
    status: int = 400


@dataclass(slots=True)
class RuledServer(httpx2.AsyncBaseTransport):
    """The transport of a server with these rules."""

    rules: Rules
    steps: deque[Step] = field(default_factory=deque)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[httpx2.Headers] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)  # violations of its rules
    refusals: list[Refusal] = field(default_factory=list)
    _fixed_answer: tuple[int, str] | None = None
    _sent: list[tuple[set[str], dict[str, Any]]] = field(default_factory=list)
    _count: int = 0

    def script(self, *steps: Step) -> None:
        """Append steps."""
        self.steps.extend(steps)

    def always_answer(self, status: int, body: str) -> None:
        """Answer every request with this."""
        self._fixed_answer = (status, body)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        body = json.loads(await request.aread())
        self.bodies.append(body)
        self.headers.append(request.headers)
        if self._fixed_answer is not None:
            return httpx2.Response(self._fixed_answer[0], content=self._fixed_answer[1].encode())
        if KEY not in request.headers.get(self.rules.key_header, ""):
            return self._refusal(401, "Who are you?", None, None)
        if violation := refusal(self.rules, body) or self._missing(body["messages"]):
            self.refused.append(violation[0])
            return self._refusal(self.rules.status, violation[0], None, violation[1])
        for scripted in self.refusals:
            if scripted.when(body):
                return httpx2.Response(scripted.status, json=scripted.body)
        step = self.steps.popleft()
        if step.refused:
            return self._refusal(self.rules.status, step.refused, step.code, step.param)
        message = self._message(step)
        head = {"id": "up-1", "created": 1, "model": body["model"], **dict(self.rules.extra_fields)}
        finish = self.rules.calls_finish_reason if step.calls else "stop"
        if not body.get("stream"):
            choice = {"index": 0, "message": message, "finish_reason": finish}
            answer = {**head, "object": "chat.completion", "choices": [choice], "usage": USAGE}
            return httpx2.Response(200, json=answer)
        lines = self._lines(head, message, finish)
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=_stream(lines))

    def _refusal(self, status: int, message: str, code: str | None, param: str | None) -> httpx2.Response:
        return httpx2.Response(status, json=error_body(self.rules.error_form, status, message, code=code, param=param))

    def _message(self, step: Step) -> dict[str, Any]:
        """Return a step's message in this server's format; remember it if it must come back."""
        message: dict[str, Any] = {"role": "assistant", "content": step.text or None}
        calls = []
        for name, arguments in step.calls:
            self._count += 1
            call_id = self.rules.id_format.format(n=self._count, name=name)
            call: dict[str, Any] = {"id": call_id, "type": "function"}
            call["function"] = {"name": name, "arguments": json.dumps(arguments)}
            if self.rules.requires_signature and not calls:
                call["extra_content"] = {"google": {"thought_signature": f"signed-{self._count}"}}
            calls.append(call)
        if calls:
            message["tool_calls"] = calls
        reasoning = self._thought(step) if step.thought else {}
        message |= reasoning
        if self.rules.requires_verbatim and calls:
            ids = {call["id"] for call in calls if call["id"]}
            required = dict(reasoning)
            if self.rules.requires_signature:
                required["signature"] = calls[0]["extra_content"]
            self._sent.append((ids, required))
        return message

    def _thought(self, step: Step) -> dict[str, Any]:
        if self.rules.reasoning_field == "parts":
            thinking = {"type": "thinking", "thinking": [{"type": "text", "text": step.thought}]}
            return {"content": [thinking, *([{"type": "text", "text": step.text}] if step.text else [])]}
        if self.rules.reasoning_field == "details":
            detail = {"type": "reasoning.text", "text": step.thought, "signature": "signed", "index": 0}
            return {"reasoning": step.thought, "reasoning_details": [detail]}
        return {self.rules.reasoning_field: step.thought} if self.rules.reasoning_field else {}

    def _missing(self, messages: list[dict[str, Any]]) -> tuple[str, str | None] | None:
        """Return the error for something that the server requires back and did not get."""
        from_assistant = [message for message in messages if message["role"] == "assistant"]
        with_calls = [message for message in from_assistant if message.get("tool_calls")]
        field = self.rules.reasoning_field
        if self.rules.requires_reasoning and with_calls:
            for message in from_assistant if self.rules.requires_reasoning == "all" else with_calls:
                if not message.get(field):
                    return f"The `{field}` in the thinking mode must be passed back to the API.", None
        if self.rules.only_own_ids:
            own = {call_id for ids, _ in self._sent for call_id in ids}
            if unknown := {call["id"] for message in with_calls for call in message["tool_calls"]} - own:
                return f"{unknown} were not called.", None
        return self._altered(with_calls) or self._unsigned(messages)

    def _altered(self, with_calls: list[dict[str, Any]]) -> tuple[str, str | None] | None:
        for message in with_calls:
            ids = {call["id"] for call in message["tool_calls"]}
            for call_ids, required in self._sent:
                if call_ids and call_ids & ids and any(message.get(name) != value for name, value in required.items()):
                    return f"Invalid `signature` in `thinking` block: {message} is not {required}", None
        return None

    def _unsigned(self, messages: list[dict[str, Any]]) -> tuple[str, str | None] | None:
        if not self.rules.requires_signature:
            return None
        last_user = max(at for at, message in enumerate(messages) if message["role"] == "user")
        current = [message for message in messages[last_user:] if message.get("tool_calls")]
        known = [required["signature"] for _, required in self._sent[len(self._sent) - len(current) :]]
        for message, signature in zip(current, known, strict=True):
            if message["tool_calls"][0].get("extra_content") != signature:
                return "Function call is missing a thought_signature in functionCall parts.", None
        return None

    def _lines(self, head: dict[str, Any], message: dict[str, Any], finish: str) -> Iterator[str]:
        chunk = {**head, "object": "chat.completion.chunk"}
        if self.rules.sends_comments:
            yield ": keep-alive"
        yield _line(chunk, {"role": "assistant", "content": ""})
        for delta in self._deltas(message):
            yield _line(chunk, delta)
        yield _line(chunk, {}, finish)
        yield "data: " + json.dumps({**chunk, "choices": [], "usage": USAGE})
        yield "data: [DONE]"

    def _deltas(self, message: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield a message in chunks: reasoning first, then the text, then the calls."""
        for name, value in message.items():
            if name in {"reasoning", "reasoning_content"} and isinstance(value, str):
                yield from ({name: piece} for piece in _halves(value))
        for detail in message.get("reasoning_details", ()):
            for piece in _halves(detail["text"]):
                yield {"reasoning_details": [{"type": detail["type"], "text": piece, "index": detail["index"]}]}
            yield {"reasoning_details": [{**detail, "text": None}]}
        content = message.get("content")
        for part in content if isinstance(content, list) else ():
            if part["type"] == "thinking":
                for piece in _halves(part["thinking"][0]["text"]):
                    yield {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": piece}]}]}
            else:
                yield from ({"content": piece} for piece in _halves(part["text"]))
        if isinstance(content, str):
            yield from ({"content": piece} for piece in _halves(content))
        for index, call in enumerate(message.get("tool_calls", ())):
            yield {"tool_calls": [{**({"index": index} if self.rules.indexed_calls else {}), **call}]}


async def _stream(lines: Iterable[str]) -> AsyncIterator[bytes]:
    for line in lines:
        yield f"{line}\n\n".encode()


def _halves(text: str) -> list[str]:
    middle = len(text) // 2
    return [piece for piece in (text[:middle], text[middle:]) if piece]


def _line(chunk: dict[str, Any], delta: dict[str, Any], finish: str | None = None) -> str:
    return "data: " + json.dumps({**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
