"""pydantic-ai with one of its models: `python pydantic_ai_python.py chat|responses|anthropic`."""

import sys
from typing import Any

from anthropic import AsyncAnthropic
from pydantic_ai import Agent
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider
from talk import BASE_URL, HOST, KEY, MODEL, talk, weather

models: Any = {
    "chat": lambda: OpenAIChatModel(MODEL, provider=OpenAIProvider(base_url=BASE_URL, api_key=KEY)),
    "responses": lambda: OpenAIResponsesModel(MODEL, provider=OpenAIProvider(base_url=BASE_URL, api_key=KEY)),
    "anthropic": lambda: AnthropicModel(
        MODEL, provider=AnthropicProvider(anthropic_client=AsyncAnthropic(base_url=HOST, api_key=KEY))
    ),
}
model = models[sys.argv[1]]()


async def ask(history: Any, said: dict[str, Any]) -> tuple[str, Any]:
    agent = Agent(model, tools=[weather] if said["tools"] else [])
    if said["stream"]:
        async with agent.run_stream(said["text"], message_history=history) as streamed:
            return await streamed.get_output(), streamed.all_messages()
    result = await agent.run(said["text"], message_history=history)
    return result.output, result.all_messages()


talk(ask)
