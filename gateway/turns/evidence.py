"""Reads a run's conversation as evidence for memory writes: every text with its speaker and its stored message."""

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from gateway.messages import ChatMessage, last_user_index, text_of
from gateway.models import Message
from gateway.runs.answers import answers_elsewhere
from gateway.runs.call_ids import run_of_call
from gateway.runs.context import TurnContext
from gateway.tool_calls import calls_in
from memories import tools as memory_tools
from memories.evidence import Conversation, Speaker, Utterance
from memories.recall.two_lanes import Injection

_MAX_ROWS = 400


def conversation_of(
    context: TurnContext, own: Sequence[ChatMessage], injection: Injection, client_tools: Collection[str], missed: int
) -> Conversation:
    """Return a run's conversation, prepared for look-ups. `own` are the run's messages so far, `missed` is the number
    of quotes that were not found. Two queries."""
    places = _places(context)
    recalled = (context.summary, injection.guidance, injection.frozen, injection.recall)
    spoken = [Utterance(speaker=Speaker.MEMORY, text=text) for text in recalled if text]
    for speaker, text in _spoken([*context.messages, *own], client_tools):
        message_id, run_id = places.get((speaker, text), (None, context.run_id))
        spoken.append(
            Utterance(speaker=speaker, text=text, session_id=context.session_id, run_id=run_id, message_id=message_id)
        )
    answers = answers_elsewhere(context.owner_id, context.session_id)
    conversation = Conversation(spoken, missed=missed, answers=answers)
    conversation.prepare()
    return conversation


def reads_untrusted(messages: Sequence[ChatMessage], client_tools: Collection[str]) -> bool:
    """Return True if results of client tools follow the last user message."""
    first = last_user_index(messages) + 1
    if first == len(messages):
        return False
    return any(speaker == Speaker.TOOL for speaker, _ in _spoken(messages, client_tools, first=first))


def _spoken(
    messages: Sequence[ChatMessage], client_tools: Collection[str], first: int = 0
) -> Iterator[tuple[Speaker, str]]:
    calls = [call for message in messages for call in calls_in(message) if isinstance(call.get("id"), str)]
    own_calls = {call["id"] for call in calls if _is_own_call(call, client_tools)}
    for message in messages[first:]:
        role, content = message.get("role"), message.get("content")
        if role == "user":
            for text in _texts(content):
                yield Speaker.PERSON, text
        elif role == "assistant" and (text := text_of(content)):
            yield Speaker.ASSISTANT, text
        elif role in {"tool", "function"}:
            yield (Speaker.MEMORY if message.get("tool_call_id") in own_calls else Speaker.TOOL), text_of(content)


def _is_own_call(call: dict[str, Any], client_tools: Collection[str]) -> bool:
    """Return True for a call of a memory tool. A client may have a tool of the same name, such as `read`; calls that
    went to a client have ids of ours."""
    function = call.get("function")
    name = function.get("name") if isinstance(function, dict) else None
    is_ours = isinstance(name, str) and name in memory_tools.TOOLS and name not in client_tools
    return is_ours and run_of_call(call["id"]) is None


def _texts(content: Any) -> Iterator[str]:
    """Yield the texts of a user message part by part, since an attached text file is a separate part."""
    if isinstance(content, list):
        yield from (text for part in content if (text := text_of([part])))
    elif text := text_of(content):
        yield text


def _places(context: TurnContext) -> dict[tuple[Speaker, str], tuple[Any, Any]]:
    """Return the message id and run id of the conversation's stored texts, by speaker and text."""
    speakers = {
        Message.Role.USER: Speaker.PERSON,
        Message.Role.ASSISTANT: Speaker.ASSISTANT,
        Message.Role.TOOL: Speaker.TOOL,
    }
    rows = Message.objects.filter(owner_id=context.owner_id, session_id=context.session_id).order_by("-seq")
    found = rows.values_list("role", "text", "id", "run_id")[:_MAX_ROWS]
    return {(speakers[Message.Role(role)], text): (message_id, run_id) for role, text, message_id, run_id in found}
