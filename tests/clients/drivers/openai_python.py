"""The openai package: chat completions, with a tool loop as programs write it."""

import json
from typing import Any

import openai
from talk import BASE_URL, KEY, MODEL, WEATHER, talk, weather

client = openai.OpenAI(base_url=BASE_URL, api_key=KEY)
TOOLS: Any = [{"type": "function", "function": {"name": "weather", "parameters": WEATHER}}]


def ask(history: Any, said: dict[str, Any]) -> tuple[str, Any]:
    messages = [*(history or []), {"role": "user", "content": said["text"]}]
    while True:
        message = _message(messages, said)
        messages.append(message.model_dump(exclude_none=True))
        if not message.tool_calls:
            return message.content, messages
        for call in message.tool_calls:
            result = weather(**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


def _message(messages: Any, said: dict[str, Any]) -> Any:
    asked: dict[str, Any] = {"model": MODEL, "messages": messages} | ({"tools": TOOLS} if said["tools"] else {})
    if not said["stream"]:
        return client.chat.completions.create(**asked).choices[0].message
    with client.chat.completions.stream(**asked) as stream:
        for _ in stream:
            pass
        return stream.get_final_completion().choices[0].message


talk(ask)
