"""LangChain's ChatOpenAI, with its tool messages."""

from typing import Any

from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from talk import BASE_URL, KEY, MODEL, talk, weather

plain = ChatOpenAI(base_url=BASE_URL, api_key=KEY, model=MODEL)
lookup = tool(weather)


def ask(history: Any, said: dict[str, Any]) -> tuple[str, Any]:
    messages = [*(history or []), HumanMessage(said["text"])]
    model: Any = plain.bind_tools([lookup]) if said["tools"] else plain
    while True:
        message = _streamed(model, messages) if said["stream"] else model.invoke(messages)
        messages.append(message)
        if not message.tool_calls:
            return message.text, messages
        messages += [ToolMessage(lookup.invoke(call["args"]), tool_call_id=call["id"]) for call in message.tool_calls]


def _streamed(model: Any, messages: Any) -> Any:
    message = None
    for chunk in model.stream(messages):
        message = chunk if message is None else message + chunk
    return message


talk(ask)
