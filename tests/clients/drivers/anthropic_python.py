"""The anthropic package: messages, with a tool loop as programs write it."""

from typing import Any

import anthropic
from talk import HOST, KEY, MODEL, WEATHER, talk, weather

client = anthropic.Anthropic(base_url=HOST, api_key=KEY)
TOOLS: Any = [{"name": "weather", "input_schema": WEATHER}]


def ask(history: Any, said: dict[str, Any]) -> tuple[str, Any]:
    messages = [*(history or []), {"role": "user", "content": said["text"]}]
    while True:
        message = _message(messages, said)
        messages.append({"role": "assistant", "content": message.content})
        calls = [block for block in message.content if block.type == "tool_use"]
        if not calls:
            return "".join(block.text for block in message.content if block.type == "text"), messages
        results = [
            {"type": "tool_result", "tool_use_id": call.id, "content": weather(**dict(call.input))} for call in calls
        ]
        messages.append({"role": "user", "content": results})


def _message(messages: Any, said: dict[str, Any]) -> Any:
    asked: dict[str, Any] = {"model": MODEL, "max_tokens": 1000, "messages": messages}
    asked |= {"tools": TOOLS} if said["tools"] else {}
    if not said["stream"]:
        return client.messages.create(**asked)
    with client.messages.stream(**asked) as stream:
        return stream.get_final_message()


talk(ask)
