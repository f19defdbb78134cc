"""Talking to /v1/messages in tests."""

import json
from dataclasses import dataclass
from typing import Any

from tests.conftest import Api
from tests.gateway.v1 import said

PATH = "/v1/messages"


@dataclass(frozen=True, slots=True)
class Message:
    """One answer: status, JSON, its headers, and the session and run that these name."""

    status: int
    json: Any
    headers: Any

    @property
    def session(self) -> str:
        return str(self.headers.get("x-daybook-session", ""))

    @property
    def run(self) -> str:
        return str(self.headers.get("x-daybook-run", ""))

    @property
    def text(self) -> str:
        return "".join(block["text"] for block in self.json["content"] if block["type"] == "text")

    @property
    def error(self) -> tuple[int, str]:
        return self.status, str(self.json["error"]["type"])


def asks(*messages: Any, **body: Any) -> dict[str, Any]:
    """The body of a request; a plain string is a user message, after it an assistant's, and so on."""
    listed = [said(message, index) for index, message in enumerate(messages)]
    return {"model": "assistant", "max_tokens": 500, "messages": listed, **body}


async def send(api: Api, *messages: Any, headers: dict[str, str] | None = None, **body: Any) -> Message:
    response = await api.raw("POST", PATH, asks(*messages, **body), **(headers or {}))
    return Message(response.status_code, json.loads(response.content), response.headers)


async def stream(api: Api, *messages: Any, **body: Any) -> list[dict[str, Any]]:
    """The same streamed: its events, checked for the order that clients rely on."""
    status, text = await api.stream(PATH, asks(*messages, stream=True, **body))
    assert status == 200, text
    events = read_events(text)
    check_order(events)
    return events


def read_events(text: str) -> list[dict[str, Any]]:
    found = []
    for event in text.strip().split("\n\n"):
        name, data = event.split("\n")
        found.append(json.loads(data.removeprefix("data: ")))
        assert name == f"event: {found[-1]['type']}"
    return found


def check_order(events: list[dict[str, Any]]) -> None:
    """One message, one block open at a time, numbered without holes; nothing after the end."""
    kinds = [event["type"] for event in events]
    assert (kinds[0], kinds[-2:]) == ("message_start", ["message_delta", "message_stop"]), kinds
    assert kinds.count("message_start") == kinds.count("message_stop") == 1
    open_block, number = None, 0
    for event in events[1:-2]:
        if event["type"] == "content_block_start":
            assert (open_block, event["index"]) == (None, number), kinds
            open_block, number = number, number + 1
        else:
            assert event["index"] == open_block, event
            open_block = None if event["type"] == "content_block_stop" else open_block
    assert open_block is None


def result(call: dict[str, Any], content: Any = "42", **more: Any) -> dict[str, Any]:
    """The block that answers a tool_use."""
    return {"type": "tool_result", "tool_use_id": call["id"], "content": content, **more}
