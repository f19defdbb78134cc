"""The OpenAI Agents SDK with either of its models: `python agents_python.py chat|responses`."""

import sys
from typing import Any

from agents import (
    Agent,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    function_tool,
    set_tracing_disabled,
)
from openai import AsyncOpenAI
from talk import BASE_URL, KEY, MODEL, talk, weather

set_tracing_disabled(True)
models: Any = {"chat": OpenAIChatCompletionsModel, "responses": OpenAIResponsesModel}
model = models[sys.argv[1]](model=MODEL, openai_client=AsyncOpenAI(base_url=BASE_URL, api_key=KEY))


async def ask(history: Any, said: dict[str, Any]) -> tuple[str, Any]:
    tools = [function_tool(weather)] if said["tools"] else []
    agent = Agent(name="Helper", instructions="You help.", model=model, tools=list(tools))
    given = [*(history or []), {"role": "user", "content": said["text"]}]
    if said["stream"]:
        result: Any = Runner.run_streamed(agent, given)
        async for _ in result.stream_events():
            pass
    else:
        result = await Runner.run(agent, given)
    return result.final_output, result.to_input_list()


talk(ask)
