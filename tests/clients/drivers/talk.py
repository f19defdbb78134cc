"""Shared by the Python drivers: read a conversation from standard input and write the answers to standard output.

Input: `{"base_url", "key", "say": [{"text", "stream", "tools", "after"?}]}`; `after` is the number of earlier turns
that this one follows (all by default), so a smaller number repeats or changes a turn. Output: the answers. A driver
defines `ask(history, said)`, which returns the answer and the history after it; the first history is None."""

import asyncio
import inspect
import json
import sys
from collections.abc import Callable
from typing import Any

GIVEN = json.load(sys.stdin)
BASE_URL: str = GIVEN["base_url"]
HOST = BASE_URL.removesuffix("/v1")
KEY: str = GIVEN["key"]
MODEL = "assistant"


def weather(place: str) -> str:
    """How warm it is in a place."""
    return f"21 degrees in {place}"


WEATHER: dict[str, Any] = {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]}


def talk(ask: Callable[[Any, dict[str, Any]], Any]) -> None:
    """Send every message and print the answers."""
    sys.stdout.write(json.dumps(asyncio.run(_talk(ask))))


async def _talk(ask: Callable[[Any, dict[str, Any]], Any]) -> list[str]:
    histories: list[Any] = [None]
    answers = []
    for said in GIVEN["say"]:
        histories = histories[: said.get("after", len(histories) - 1) + 1]
        found = ask(histories[-1], said)
        answer, history = await found if inspect.isawaitable(found) else found
        histories.append(history)
        answers.append(answer)
    return answers
