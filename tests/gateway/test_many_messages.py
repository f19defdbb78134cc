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
from gateway.upstream.outgoing import _alternating
from memories.limits import MESSAGES

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
