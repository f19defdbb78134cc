"""Send requests to /v1/messages and read its event streams."""

import json
from dataclasses import dataclass
from typing import Any

from tests.conftest import Api
from tests.gateway.v1 import as_message

PATH = "/v1/messages"


@dataclass(frozen=True, slots=True)
class Message:
    """A response: status, JSON body and headers."""

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


def request_body(*messages: Any, **body: Any) -> dict[str, Any]:
    """Return a request body. Plain strings become user and assistant messages in turn."""
    as_messages = [as_message(message, index) for index, message in enumerate(messages)]
    return {"model": "assistant", "max_tokens": 500, "messages": as_messages, **body}


async def send(api: Api, *messages: Any, headers: dict[str, str] | None = None, **body: Any) -> Message:
    response = await api.raw("POST", PATH, request_body(*messages, **body), **(headers or {}))
    return Message(response.status_code, json.loads(response.content), response.headers)


async def stream(api: Api, *messages: Any, **body: Any) -> list[dict[str, Any]]:
    """Stream an answer and return its events, after checking the order that clients rely on."""
    status, text = await api.stream(PATH, request_body(*messages, stream=True, **body))
    assert status == 200, text
    events = read_events(text)
    check_order(events)
    return events


def read_events(text: str) -> list[dict[str, Any]]:
    events = []
    for event in text.strip().split("\n\n"):
        name, data = event.split("\n")
        events.append(json.loads(data.removeprefix("data: ")))
        assert name == f"event: {events[-1]['type']}"
    return events


def check_order(events: list[dict[str, Any]]) -> None:
    """Check that one message is sent, nothing follows its end, and its blocks are numbered and do not overlap."""
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


def tool_result(call: dict[str, Any], content: Any = "42", **more: Any) -> dict[str, Any]:
    """Return a tool_result block for a tool_use block."""
    return {"type": "tool_result", "tool_use_id": call["id"], "content": content, **more}
