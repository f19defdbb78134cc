"""Joining messages takes time in proportion to their text, however many there are. Some of it is done on the event
loop, where everybody else waits."""

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from gateway.api.anthropic_body import read_messages
from gateway.api.responses_items import as_messages
from gateway.runs.v1 import split_system
from gateway.upstream.dialects import Dialect
from gateway.upstream.outgoing import _alternating, request_body
from memories.limits import MESSAGES
from tests.call_count import count_calls

COUNT = MESSAGES - 10
TEXT = "x" * 1900  # of all messages nearly as much as a body may have
CALL = {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "look", "input": {}}]}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "seen"}
REMINDER = {"type": "text", "text": f"<system-reminder>{TEXT}</system-reminder>"}


def messages_of(role: str) -> list[dict[str, Any]]:
    return [{"role": role, "content": TEXT} for _ in range(COUNT)]


def anthropic_body(messages: list[dict[str, Any]]) -> Callable[[], Any]:
    raw = json.dumps({"model": "assistant", "messages": messages}).encode()
    return lambda: read_messages(raw)


@pytest.mark.parametrize(
    "join",
    [
        lambda: split_system(messages_of("system")),
        lambda: as_messages([], messages_of("assistant"), {}),
        lambda: _alternating(messages_of("user")),
        lambda: _alternating(messages_of("assistant")),
        anthropic_body([CALL, {"role": "user", "content": [RESULT]}, *messages_of("system")]),
        anthropic_body([CALL, {"role": "user", "content": [RESULT, *[REMINDER] * COUNT]}]),
    ],
    ids=["system", "items", "users", "assistants", "system after a result", "reminders"],
)
def test_joining_is_linear(join: Callable[[], Any]) -> None:
    begun = time.process_time()
    join()
    assert time.process_time() - begun < 1  # pair by pair it takes several seconds


def test_replacing_equal_call_ids_is_linear() -> None:
    def work(count: int) -> int:
        call = {"id": "same", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        message = {"role": "assistant", "content": None, "tool_calls": [call] * count}
        return count_calls(lambda: request_body({"model": "m", "messages": [message]}, Dialect(), upstream="u"))

    assert work(800) < 2.3 * work(400)


def test_equal_call_ids_are_replaced_by_the_same_ones_when_the_conversation_grows() -> None:
    def ids(count: int) -> list[str]:
        call = {"id": "same", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        messages = [{"role": "assistant", "content": None, "tool_calls": [call]} for _ in range(count)]
        sent = request_body({"model": "m", "messages": messages}, Dialect(), upstream="u")["messages"]
        return [call["id"] for message in sent for call in message.get("tool_calls", ())]

    assert len(set(ids(50))) == 50
    assert ids(50)[:20] == ids(20)
