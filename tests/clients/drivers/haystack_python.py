"""Haystack's Agent, which runs the tools itself."""

from typing import Any

from haystack.components.agents import Agent
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.tools import create_tool_from_function
from haystack.utils import Secret
from talk import BASE_URL, KEY, MODEL, talk, weather

generator = OpenAIChatGenerator(model=MODEL, api_base_url=BASE_URL, api_key=Secret.from_token(KEY))


def ask(history: Any, said: dict[str, Any]) -> tuple[str, Any]:
    agent = Agent(chat_generator=generator, tools=[create_tool_from_function(weather)] if said["tools"] else [])
    stream = {"streaming_callback": lambda chunk: None} if said["stream"] else {}
    result = agent.run(messages=[*(history or []), ChatMessage.from_user(said["text"])], **stream)
    return result["last_message"].text, result["messages"]


talk(ask)
