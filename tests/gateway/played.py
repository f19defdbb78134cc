"""Deltas that a test writes itself, for what the scripted model cannot say: `plays`, and pieces of calls."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any

import pytest

from tests.scripted_model import ScriptedModel

Plays = Callable[..., list[Any]]


def piece(index: int, arguments: str = "", name: str = "", **more: Any) -> dict[str, Any]:
    named = {"id": f"up_{index}", "type": "function"} if name else {}
    function = {"arguments": arguments, **({"name": name} if name else {})}
    return {"index": index, **named, "function": function, **more}


def custom(index: int, given: str = "", name: str = "") -> dict[str, Any]:
    named = {"id": f"up_{index}", "type": "custom"} if name else {}
    return {"index": index, **named, "custom": {"input": given, **({"name": name} if name else {})}}


def _delta(item: Any) -> dict[str, Any]:
    if isinstance(item, Exception):
        raise item
    return {"content": item} if isinstance(item, str) else {"tool_calls": [item]} if "index" in item else item


@pytest.fixture
def plays(model: ScriptedModel, monkeypatch: pytest.MonkeyPatch) -> Plays:
    """Return a function that scripts steps of the model and returns its requests. A step consists of texts, pieces of
    calls, other deltas, events to wait for, and exceptions to raise. `end` are fields of the last choice of a step, and
    `around` of each chunk."""

    def script(*steps: Sequence[Any], usage: Any = None, around: Any = None, **end: Any) -> list[Any]:
        waiting, requests = list(steps), []
        last = {"finish_reason": "stop", **end}

        async def stream(request: Any) -> AsyncGenerator[dict[str, Any]]:
            requests.append(request)
            for item in waiting.pop(0):
                if isinstance(item, asyncio.Event):
                    await item.wait()
                else:
                    choice = {"index": 0, "delta": _delta(item), "finish_reason": None}
                    yield {**(around or {}), "choices": [choice]}
            yield {"choices": [{"index": 0, "delta": {}, **last}]}
            if usage:
                yield {"choices": [], "usage": usage}

        async def complete(request: Any) -> dict[str, Any]:
            requests.append(request)
            message: dict[str, Any] = {"role": "assistant"}
            for item in waiting.pop(0):
                message |= _delta(item)
            return {"choices": [{"index": 0, "message": message, **last}], "usage": usage}

        monkeypatch.setattr(model, "stream", stream)
        monkeypatch.setattr(model, "complete", complete)
        return requests

    return script
