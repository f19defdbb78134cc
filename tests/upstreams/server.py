"""A scripted model server of any kind, in this process: it enforces its rules, answers in its manner, and remembers
what it said, because some servers want it back."""

import json
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx2

from tests.upstreams.rules import Rules, refusal, worded

USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10, "cost": 0.25}
KEY = "sk-upstream-0123456789"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One answer: what the model thinks and says, and its calls as (name, arguments). Or `refused`: an error."""

    text: str = ""
    thought: str = ""
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()
    refused: str = ""
    code: str | None = None
    param: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Objection:
    """A refusal that no dialect knows of: the body that the server answers, while `holds` says so of a request."""

    says: Any
    holds: Callable[[dict[str, Any]], bool]
    status: int = 400


@dataclass(slots=True)
class RuledServer(httpx2.AsyncBaseTransport):
    """The transport of a server with these rules."""

    rules: Rules
    steps: deque[Step] = field(default_factory=deque)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[httpx2.Headers] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)  # what it found wrong itself
    objections: list[Objection] = field(default_factory=list)
    _answer: tuple[int, str] | None = None
    _said: list[tuple[set[str], dict[str, Any]]] = field(default_factory=list)
    _count: int = 0

    def script(self, *steps: Step) -> None:
        """Append steps."""
        self.steps.extend(steps)

    def answers(self, status: int, body: str) -> None:
        """Answer everything with this."""
        self._answer = (status, body)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        body = json.loads(await request.aread())
        self.bodies.append(body)
        self.headers.append(request.headers)
        if self._answer is not None:
            return httpx2.Response(self._answer[0], content=self._answer[1].encode())
        if KEY not in request.headers.get(self.rules.header, ""):
            return self._refusal(401, "Who are you?", None, None)
        if wrong := refusal(self.rules, body) or self._missing(body["messages"]):
            self.refused.append(wrong[0])
            return self._refusal(self.rules.status, wrong[0], None, wrong[1])
        for objection in self.objections:
            if objection.holds(body):
                return httpx2.Response(objection.status, json=objection.says)
        step = self.steps.popleft()
        if step.refused:
            return self._refusal(self.rules.status, step.refused, step.code, step.param)
        message = self._message(step)
        head = {"id": "up-1", "created": 1, "model": body["model"], **dict(self.rules.extra)}
        finish = self.rules.stops if step.calls else "stop"
        if not body.get("stream"):
            choice = {"index": 0, "message": message, "finish_reason": finish}
            answer = {**head, "object": "chat.completion", "choices": [choice], "usage": USAGE}
            return httpx2.Response(200, json=answer)
        lines = [*self._lines(head, message, finish)]
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, stream=_Stream(lines))

    def _refusal(self, status: int, message: str, code: str | None, param: str | None) -> httpx2.Response:
        return httpx2.Response(status, json=worded(self.rules.form, status, message, code=code, param=param))

    def _message(self, step: Step) -> dict[str, Any]:
        """The message of a step, as this server gives it; it is remembered if it must come back."""
        message: dict[str, Any] = {"role": "assistant", "content": step.text or None}
        calls = []
        for name, arguments in step.calls:
            self._count += 1
            call_id = self.rules.makes.format(n=self._count, name=name)
            call: dict[str, Any] = {"id": call_id, "type": "function"}
            call["function"] = {"name": name, "arguments": json.dumps(arguments)}
            if self.rules.signature and not calls:
                call["extra_content"] = {"google": {"thought_signature": f"signed-{self._count}"}}
            calls.append(call)
        if calls:
            message["tool_calls"] = calls
        beside = self._thought(step) if step.thought else {}
        message |= beside
        if self.rules.verbatim and calls:
            ids = {call["id"] for call in calls if call["id"]}
            must = dict(beside)
            if self.rules.signature:
                must["signature"] = calls[0]["extra_content"]
            self._said.append((ids, must))
        return message

    def _thought(self, step: Step) -> dict[str, Any]:
        if self.rules.reasoning == "parts":
            thinking = {"type": "thinking", "thinking": [{"type": "text", "text": step.thought}]}
            return {"content": [thinking, *([{"type": "text", "text": step.text}] if step.text else [])]}
        if self.rules.reasoning == "details":
            detail = {"type": "reasoning.text", "text": step.thought, "signature": "signed", "index": 0}
            return {"reasoning": step.thought, "reasoning_details": [detail]}
        return {self.rules.reasoning: step.thought} if self.rules.reasoning else {}

    def _missing(self, messages: list[dict[str, Any]]) -> tuple[str, str | None] | None:
        """What it gave and did not get back."""
        said = [message for message in messages if message["role"] == "assistant"]
        called = [message for message in said if message.get("tool_calls")]
        field = self.rules.reasoning
        if self.rules.demands and called:
            for message in said if self.rules.demands == "all" else called:
                if not message.get(field):
                    return f"The `{field}` in the thinking mode must be passed back to the API.", None
        if self.rules.own_ids:
            own = {call_id for ids, _ in self._said for call_id in ids}
            if strange := {call["id"] for message in called for call in message["tool_calls"]} - own:
                return f"{strange} were not called.", None
        return self._not_as_it_was(called) or self._unsigned(messages)

    def _not_as_it_was(self, called: list[dict[str, Any]]) -> tuple[str, str | None] | None:
        for message in called:
            ids = {call["id"] for call in message["tool_calls"]}
            for given, must in self._said:
                if given and given & ids and any(message.get(name) != value for name, value in must.items()):
                    return f"Invalid `signature` in `thinking` block: {message} is not {must}", None
        return None

    def _unsigned(self, messages: list[dict[str, Any]]) -> tuple[str, str | None] | None:
        if not self.rules.signature:
            return None
        last_user = max(at for at, message in enumerate(messages) if message["role"] == "user")
        current = [message for message in messages[last_user:] if message.get("tool_calls")]
        known = [must["signature"] for _, must in self._said[len(self._said) - len(current) :]]
        for message, signature in zip(current, known, strict=True):
            if message["tool_calls"][0].get("extra_content") != signature:
                return "Function call is missing a thought_signature in functionCall parts.", None
        return None

    def _lines(self, head: dict[str, Any], message: dict[str, Any], finish: str) -> Iterator[str]:
        chunk = {**head, "object": "chat.completion.chunk"}
        if self.rules.comments:
            yield ": keep-alive"
        yield _line(chunk, {"role": "assistant", "content": ""})
        for delta in self._deltas(message):
            yield _line(chunk, delta)
        yield _line(chunk, {}, finish)
        yield "data: " + json.dumps({**chunk, "choices": [], "usage": USAGE})
        yield "data: [DONE]"

    def _deltas(self, message: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """A message in pieces: reasoning first, then the text, then the calls."""
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
            yield {"tool_calls": [{**({"index": index} if self.rules.numbered else {}), **call}]}


@dataclass(slots=True)
class _Stream(httpx2.AsyncByteStream):
    lines: list[str]

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for line in self.lines:
            yield f"{line}\n\n".encode()


def _halves(text: str) -> list[str]:
    middle = len(text) // 2
    return [piece for piece in (text[:middle], text[middle:]) if piece]


def _line(chunk: dict[str, Any], delta: dict[str, Any], finish: str | None = None) -> str:
    return "data: " + json.dumps({**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
