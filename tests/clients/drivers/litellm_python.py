"""LiteLLM's SDK with one of its providers: `python litellm_python.py openai|anthropic`."""

import json
import sys
from typing import Any

import litellm
from talk import BASE_URL, HOST, KEY, MODEL, WEATHER, talk, weather

provider = sys.argv[1]
address = {"openai": BASE_URL, "anthropic": HOST}[provider]
tool = {"type": "function", "function": {"name": "weather", "description": weather.__doc__, "parameters": WEATHER}}


def ask(history: Any, said: dict[str, Any]) -> tuple[str, Any]:
    messages = [*(history or []), {"role": "user", "content": said["text"]}]
    tools = {"tools": [tool]} if said["tools"] else {}
    while True:
        answer: Any = litellm.completion(
            f"{provider}/{MODEL}", messages, stream=said["stream"], api_base=address, api_key=KEY, **tools
        )
        message = (litellm.stream_chunk_builder(list(answer)) if said["stream"] else answer).choices[0].message
        messages.append(message.model_dump(exclude_none=True))
        if not message.tool_calls:
            return message.content, messages
        messages += [
            {"role": "tool", "tool_call_id": call.id, "content": weather(**json.loads(call.function.arguments))}
            for call in message.tool_calls
        ]


talk(ask)
