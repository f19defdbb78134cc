"""Tools of the client in /v1/chat/completions: a tool, calls of it, and the results that a client sends."""

from typing import Any

from tests.gateway.v1 import Answer

LOOKUP = {"type": "function", "function": {"name": "lookup", "parameters": {"type": "object"}}}
FIRST, SECOND = ("lookup", '{"q": "a"}'), ("lookup", '{"q": "b"}')
ADD = ("add_memory", '{"content": "Is vegetarian.", "target": "user"}')  # a call of one of our own tools
USER = {"role": "user", "content": "Look it up"}


def tool_calls_of(answer: Answer) -> list[dict[str, Any]]:
    return list(answer.json["choices"][0]["message"]["tool_calls"])


def results(answer: Answer, *texts: str) -> list[dict[str, Any]]:
    """Return the assistant's message and the results, as a client appends them."""
    calls = tool_calls_of(answer)
    tool_messages = [
        {"role": "tool", "tool_call_id": call["id"], "content": text} for call, text in zip(calls, texts, strict=True)
    ]
    return [answer.json["choices"][0]["message"], *tool_messages]
