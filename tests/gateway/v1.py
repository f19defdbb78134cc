"""Talking to /v1 in tests: a client that resends everything, and one request at a time."""

import json
from dataclasses import dataclass, field
from typing import Any

from tests.conftest import Api
from tests.scripted_model import ScriptedModel

PATH = "/v1/chat/completions"


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer: status, JSON, and the session and run that its headers name."""

    status: int
    json: Any
    session: str
    run: str

    @property
    def text(self) -> str:
        return str(self.json["choices"][0]["message"]["content"])

    @property
    def code(self) -> str:
        return str(self.json["error"]["code"])


async def ask(api: Api, *messages: Any, headers: dict[str, str] | None = None, **body: Any) -> Answer:
    """Send messages; a plain string is a user message, after it an assistant's, and so on."""
    listed = [said(message, index) for index, message in enumerate(messages)]
    given = {"model": "assistant", "messages": listed, **body}
    response = await api.raw("POST", PATH, given, **(headers or {}))
    return Answer(
        response.status_code,
        json.loads(response.content),
        response.headers.get("x-daybook-session", ""),
        response.headers.get("x-daybook-run", ""),
    )


async def stream(api: Api, *messages: Any, **body: Any) -> list[Any]:
    """The same streamed: the chunks, without `[DONE]`."""
    listed = [said(message, index) for index, message in enumerate(messages)]
    status, text = await api.stream(PATH, {"model": "assistant", "messages": listed, "stream": True, **body})
    assert status == 200, text
    lines = [line.removeprefix("data: ") for line in text.split("\n") if line]
    assert lines[-1] == "[DONE]", lines[-1]
    return [json.loads(line) for line in lines[:-1]]


def said(message: Any, index: int) -> dict[str, Any]:
    """A message; a plain string is a user's or an assistant's by its place."""
    if isinstance(message, str):
        return {"role": "assistant" if index % 2 else "user", "content": message}
    return dict(message)


@dataclass(slots=True)
class Chat:
    """A chat client: keeps the messages and sends all of them each time."""

    api: Api
    model: ScriptedModel
    headers: dict[str, str] = field(default_factory=dict)
    body: dict[str, Any] = field(default_factory=dict)
    messages: list[Any] = field(default_factory=list)

    async def say(self, text: str, answer: str) -> Answer:
        """One turn, answered as scripted."""
        self.messages.append({"role": "user", "content": text})
        self.model.script(answer)
        got = await ask(self.api, *self.messages, headers=self.headers, **self.body)
        self.messages.append({"role": "assistant", "content": answer})
        return got

    async def again(self, answer: str) -> Answer:
        """Regenerate the last answer."""
        last = self.messages[-2]["content"]
        del self.messages[-2:]
        return await self.say(last, answer)
