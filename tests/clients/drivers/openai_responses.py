"""The openai package: responses, each with the previous one's id."""

import json
from typing import Any

import openai
from talk import BASE_URL, KEY, MODEL, WEATHER, talk, weather

client = openai.OpenAI(base_url=BASE_URL, api_key=KEY)
TOOLS: Any = [{"type": "function", "name": "weather", "parameters": WEATHER, "strict": False}]


def ask(previous: Any, said: dict[str, Any]) -> tuple[str, Any]:
    given: Any = [{"role": "user", "content": said["text"]}]
    while True:
        response = _response(given, previous, said)
        previous = response.id
        given = [
            {"type": "function_call_output", "call_id": item.call_id, "output": weather(**json.loads(item.arguments))}
            for item in response.output
            if item.type == "function_call"
        ]
        if not given:
            return response.output_text, previous


def _response(given: Any, previous: Any, said: dict[str, Any]) -> Any:
    asked: dict[str, Any] = {"model": MODEL, "input": given, "previous_response_id": previous or openai.omit}
    asked |= {"tools": TOOLS} if said["tools"] else {}
    if not said["stream"]:
        return client.responses.create(**asked)
    with client.responses.stream(**asked) as stream:
        for _ in stream:
            pass
        return stream.get_final_response()


talk(ask)
