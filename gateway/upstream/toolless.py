"""Calls of our tools in the messages for a model that takes none. Another model made them: in earlier turns, or in this
one before it failed."""

from collections.abc import Sequence
from typing import Any

from gateway.tool_calls import calls_in
from gateway.upstream.outgoing import said_in
from prompts.conversation import CALLED_TOOLS, RESULT_AS_TEXT

_GAP = "\n\n"

Message = dict[str, Any]


def in_words(messages: Sequence[Message], names: frozenset[str]) -> list[Message]:
    """Return the messages with calls of these tools and their results as text. A message that calls other tools, too,
    stays as it is."""
    found: list[Message] = []
    called: dict[str, str] = {}  # the tools by the ids of their calls
    results: Message | None = None  # the message that the results so far stand in
    for message in messages:
        role = message.get("role")
        if role == "tool" and (name := called.get(str(message.get("tool_call_id")))):
            said = RESULT_AS_TEXT.format(name=name, result=said_in(message.get("content")))
            if results is None:
                found.append(results := {"role": "user", "content": said})
            else:
                results["content"] += _GAP + said
            continue
        results = None
        calls = {str(call.get("id")): str((call.get("function") or {}).get("name")) for call in calls_in(message)}
        if calls and names >= set(calls.values()):
            called |= calls
            said = said_in(message.get("content")) or CALLED_TOOLS.format(names=", ".join(calls.values()))
            message = {"role": role, "content": said}
        found.append(message)
    return found
