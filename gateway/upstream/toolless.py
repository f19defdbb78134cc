"""Rewrites earlier calls of our tools as text, for a model that does not support tools. They were made by another
model: in earlier turns, or in this one before it failed."""

from collections.abc import Sequence

from gateway.messages import PARAGRAPH, ChatMessage, content_text
from gateway.tool_calls import calls_in
from prompts.conversation import CALLED_TOOLS, RESULT_AS_TEXT


def calls_as_text(messages: Sequence[ChatMessage], names: frozenset[str]) -> list[ChatMessage]:
    """Return the messages with calls of these tools and their results as text. A message that also calls other tools is
    unchanged."""
    converted: list[ChatMessage] = []
    tool_names: dict[str, str] = {}  # by call id
    results: ChatMessage | None = None  # the user message that collects consecutive results
    for message in messages:
        role = message.get("role")
        if role == "tool" and (name := tool_names.get(str(message.get("tool_call_id")))):
            text = RESULT_AS_TEXT.format(name=name, result=content_text(message.get("content")))
            if results is None:
                converted.append(results := {"role": "user", "content": text})
            else:
                results["content"] += PARAGRAPH + text
            continue
        results = None
        calls = {str(call.get("id")): str((call.get("function") or {}).get("name")) for call in calls_in(message)}
        if calls and names >= set(calls.values()):
            tool_names |= calls
            text = content_text(message.get("content")) or CALLED_TOOLS.format(names=", ".join(calls.values()))
            message = {"role": role, "content": text}
        converted.append(message)
    return converted
