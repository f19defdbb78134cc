"""Reads a run's conversation as evidence for memory writes: every text with its speaker and its stored message."""

import json
from collections.abc import Collection, Container, Iterator, Sequence, Set
from itertools import takewhile
from typing import Any

from gateway.messages import SYSTEM_ROLES, ChatMessage, has_media, last_user_index, text_of
from gateway.models import Message
from gateway.runs.context import RunOutput, TurnContext
from gateway.runs.instructions import earlier_instructions
from gateway.runs.own_messages import split_client_notes
from gateway.runs.participants import is_from_other, other_participants
from gateway.runs.session_rows import shown_messages
from gateway.runs.utterances import (
    SEARCHED,
    UNSTORED,
    UNTRUSTED,
    answers_elsewhere,
    calls_made,
    newest_within,
    noted_in,
    own_calls,
    utterances_of,
)
from gateway.tool_calls import calls_in, tool_names
from memories.evidence import Conversation, Speaker, Utterance
from memories.evidence.client_texts import announces_text, is_written_by_client
from memories.recall.two_lanes import Injection

MISSED_QUOTES = "missed_quotes"
"""Key in a run's trace: how many quotes that its model gave as evidence were not found."""
_MAX_ROWS = 400
_MAX_WITH_PARTS = 20


def conversation_of(
    context: TurnContext, output: RunOutput, injection: Injection, client_tools: Sequence[dict[str, Any]]
) -> Conversation:
    """Return a run's conversation, prepared for look-ups. `output` is what it has so far, and `client_tools` are
    definitions. At most six queries.

    Earlier messages that the request does not contain are read from the session: a snippet or a summary of them, which
    counts as memory, does not tell who said what."""
    rows = _stored(context)
    stored = utterances_of(rows)
    places = {(said.speaker, said.text): said for said in stored}
    messages = [*context.messages, *output.messages]
    made = [*calls_made(rows), *_calls_made(context, output.messages)]
    own = own_calls(made, tool_names(client_tools))
    others = other_participants(context.messages) | {row.participant for row in rows if row.participant}
    ours = _ours_in(context.messages, made, own)
    said_in = [*_spoken(context.messages, ours, others), *_spoken(output.messages, own)]
    spoken = [
        places.get(said)
        or Utterance(speaker=said[0], text=said[1], session_id=context.session_id, run_id=context.run_id)
        for said in said_in
    ]
    recalled = (injection.guidance, injection.frozen, injection.recall)
    memories = [Utterance(speaker=Speaker.MEMORY, text=text) for text in recalled if text]
    summary = [Utterance(speaker=Speaker.ASSISTANT, text=context.summary)] if context.summary else []
    answers = answers_elsewhere(context.owner_id, context.session_id)
    known = {(said.speaker, said.text) for said in spoken}
    earlier, page_left = newest_within([said for said in stored if (said.speaker, said.text) not in known])
    has_picture = any(has_media(message.get("content")) for message in messages if message.get("role") != "assistant")
    noted = {*output.trace, *noted_in(rows, SEARCHED, UNSTORED)}
    conversation = Conversation(
        [*memories, *earlier, *summary, *spoken],
        missed=output.trace.get(MISSED_QUOTES, 0),
        answers=answers,
        instructions=output.instructions,
        earlier_instructions=earlier_instructions(context.owner_id, context.session_id),
        unread=page_left or has_picture or SEARCHED in noted or _has_earlier_media(rows),
        unstored=UNSTORED in noted,
    )
    conversation.prepare()
    return conversation


def _has_earlier_media(rows: Sequence[Message]) -> bool:
    """Whether the newest of these messages with content parts have pictures, sounds or files. One query."""
    said = [row.pk for row in rows if row.role == Message.Role.USER]
    newest = Message.objects.filter(pk__in=said, parts__isnull=False).order_by("-seq")
    return any(map(has_media, newest.values_list("parts", flat=True)[:_MAX_WITH_PARTS]))


def note_foreign_texts(context: TurnContext, trace: dict[str, Any], client_tools: Collection[str]) -> None:
    """Note in a run's trace if it reads results of its client's tools, system messages within the conversation, or
    messages of other participants, of which only the newest are stored."""
    messages, _ = split_client_notes(tuple(context.messages))
    if last_user_index(messages) + 1 < len(messages):  # rarely; comparing the calls takes time
        made = _calls_made(context, context.stored)
        if reads_untrusted(messages, _ours_in(context.messages, made, own_calls(made, client_tools))):
            trace[UNTRUSTED] = True
            if not context.stored:  # such as those of a step that the client repeats
                trace[UNSTORED] = True
    has_system = any(message.get("role") in SYSTEM_ROLES for message in context.messages)
    if has_system or other_participants(context.messages):
        trace[UNSTORED] = True


def reads_untrusted(messages: Sequence[ChatMessage], own: Container[str]) -> bool:
    """Return True if results of client tools follow the last user message. `own` are the ids of calls that are ours."""
    return any(speaker == Speaker.TOOL for speaker, _ in _spoken(messages[last_user_index(messages) + 1 :], own))


def _calls_made(context: TurnContext, messages: Sequence[ChatMessage]) -> list[Any]:
    """Return the calls in these messages of ours, and in a native transcript. Those in what a client sends are its own,
    or another model's, whatever their tools are called."""
    ours = [*context.messages, *messages] if context.is_native else messages
    return [call for message in ours for call in calls_in(message)]


def _ours_in(messages: Sequence[ChatMessage], made: Sequence[Any], own: Set[str]) -> Set[str]:
    """Return those of our calls' ids that no other call in these messages has: some servers only number the calls of an
    answer."""
    if not own:
        return own
    ours = {_key(call) for call in made if str(call.get("id")) in own}
    sent = (call for message in messages for call in calls_in(message) if str(call.get("id")) in own)
    return own - {str(call["id"]) for call in sent if _key(call) not in ours}


def _key(call: dict[str, Any]) -> tuple[str, str]:
    return str(call["id"]), json.dumps(call.get("function"), sort_keys=True)


def _spoken(
    messages: Sequence[ChatMessage], own: Container[str], others: Set[str] = frozenset()
) -> Iterator[tuple[Speaker, str]]:
    for message in messages:
        role, content = message.get("role"), message.get("content")
        if role == "user":
            speaker = Speaker.TOOL if is_from_other(message, others) else Speaker.PERSON
            for text in _texts(content):
                yield speaker, text
        elif role == "assistant" and (text := text_of(content)):
            yield Speaker.ASSISTANT, text
        elif role in {"tool", "function"}:
            yield (Speaker.MEMORY if message.get("tool_call_id") in own else Speaker.TOOL), text_of(content)
        elif text := text_of(content):  # a system message within the conversation, in which clients send tool results
            yield Speaker.TOOL, text


def _texts(content: Any) -> Iterator[str]:
    """Yield the texts of a user message part by part, since an attached text file is a separate part. A message that
    begins with a client's mark is one text, and so are a part that announces others and those."""
    texts = [text for part in content if (text := text_of([part]))] if isinstance(content, list) else []
    if len(texts) > 1 and not is_written_by_client(texts[0]):
        alone = list(takewhile(lambda text: not announces_text(text), texts))
        yield from alone
        if len(alone) < len(texts):
            yield "\n".join(texts[len(alone) :])
    elif text := text_of(content):
        yield text


def _stored(context: TurnContext) -> Sequence[Message]:
    """Return the newest messages of the session's branch, oldest first."""
    rows = shown_messages(context.owner_id, context.session_id).order_by("-seq")
    columns = ("owner_id", "session_id", "run_id", "kind", "role", "text", "tool_calls", "tool_call_id", "participant")
    return [*reversed(rows.only(*columns)[:_MAX_ROWS])]
