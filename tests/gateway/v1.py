"""Send requests to /v1/chat/completions: one at a time, or as a client that resends the whole conversation."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.conftest import Api
from tests.scripted_model import ScriptedModel

PATH = "/v1/chat/completions"
streamed_and_not = pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])


@dataclass(frozen=True, slots=True)
class Answer:
    """A response: status, JSON body, and the session and run IDs from its headers."""

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
    """Send messages. Plain strings become user and assistant messages in turn."""
    as_messages = [as_message(message, index) for index, message in enumerate(messages)]
    payload = {"model": "assistant", "messages": as_messages, **body}
    response = await api.raw("POST", PATH, payload, **(headers or {}))
    return Answer(
        response.status_code,
        json.loads(response.content),
        response.headers.get("x-daybook-session", ""),
        response.headers.get("x-daybook-run", ""),
    )


async def stream(api: Api, *messages: Any, **body: Any) -> list[Any]:
    """Send messages, and return the chunks of the stream without `[DONE]`."""
    as_messages = [as_message(message, index) for index, message in enumerate(messages)]
    status, text = await api.stream(PATH, {"model": "assistant", "messages": as_messages, "stream": True, **body})
    assert status == 200, text
    lines = [line.removeprefix("data: ") for line in text.split("\n") if line]
    assert lines[-1] == "[DONE]", lines[-1]
    return [json.loads(line) for line in lines[:-1]]


def streamed_text(chunks: Iterable[Any]) -> str:
    return "".join(choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"])


async def answer_text(api: Api, *messages: Any, streamed: bool, **body: Any) -> str:
    """Send messages, and return the text of the answer, streamed or not."""
    if streamed:
        return streamed_text(await stream(api, *messages, **body))
    answer = await ask(api, *messages, **body)
    assert answer.status == 200, answer.json
    return answer.text


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def assistant(content: Any, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **more}


def as_message(message: Any, index: int) -> dict[str, Any]:
    """Return a message; a plain string is from the user at an even index, else from the assistant."""
    if isinstance(message, str):
        return assistant(message) if index % 2 else user(message)
    return dict(message)


@dataclass(slots=True)
class Chat:
    """A chat client that keeps the messages and sends all of them each time."""

    api: Api
    model: ScriptedModel
    headers: dict[str, str] = field(default_factory=dict)
    body: dict[str, Any] = field(default_factory=dict)
    messages: list[Any] = field(default_factory=list)

    async def say(self, text: str, answer: str) -> Answer:
        """Send one turn, which the scripted model answers with `answer`."""
        self.messages.append({"role": "user", "content": text})
        self.model.script(answer)
        response = await ask(self.api, *self.messages, headers=self.headers, **self.body)
        self.messages.append({"role": "assistant", "content": answer})
        return response

    async def again(self, answer: str) -> Answer:
        """Regenerate the last answer."""
        last = self.messages[-2]["content"]
        del self.messages[-2:]
        return await self.say(last, answer)
