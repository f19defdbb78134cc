"""Stored messages as evidence: who said each of them."""

import re
from collections.abc import Sequence, Set

from django.db.models import QuerySet

from gateway.messages import has_media
from gateway.models import Message, Run
from gateway.runs.call_ids import run_of_call
from memories.evidence import Speaker, Utterance
from memories.tools import TOOLS

EARLIER_CHARS = 50_000
"""Characters of earlier messages that are examined although a model is not shown them: its answers may repeat them."""
SEARCHED = "searched"
"""Key in the trace of a run whose model server read something itself, such as the results of a web search."""
_MAX_ROWS = 400
_TOOL_RESULT = re.compile(r"\[tool result, \d+ characters\]")


def tool_result_words(result: str) -> str:
    """Return the placeholder for a tool result."""
    return f"[tool result, {len(result)} characters]"


def newest_within(rows: QuerySet[Message], max_chars: int) -> list[Message]:
    """Return the newest messages within `max_chars`, at most _MAX_ROWS, oldest first. One query."""
    kept: list[Message] = []
    for row in rows.order_by("-seq")[:_MAX_ROWS]:
        max_chars -= len(row.text)
        if max_chars < 0:
            break
        kept.append(row)
    return kept[::-1]


def utterances_of(rows: Sequence[Message]) -> tuple[Utterance, ...]:
    """Return messages as input for evidence: untruncated, and including tool results."""
    # A client may have a tool of the same name, such as `read`. Calls that went to a client have ids of ours, and in a
    # history that a client sent, all calls are its own.
    calls = [call for row in rows if row.kind != Message.Kind.HISTORY for call in row.calls]
    named = {str(call.get("id")) for call in calls if (call.get("function") or {}).get("name") in TOOLS}
    memory_calls = {call_id for call_id in named if run_of_call(call_id) is None}
    return tuple(
        Utterance(
            speaker=_speaker(row, memory_calls),
            text=row.text,
            session_id=row.session_id,
            run_id=row.run_id,
            message_id=row.pk,
        )
        for row in rows
    )


def unread_in(rows: Sequence[Message]) -> tuple[Utterance, ...]:
    """Return what belongs to messages and has no text that could be examined: a person's pictures, sounds and files,
    and what a model server read for its answer. One query."""
    media = [row.run_id for row in rows if has_media(row.parts)]
    attached = (Utterance(speaker=Speaker.ATTACHMENT, text="", run_id=run_id) for run_id in media)
    return (*attached, *searched_in(rows))


def searched_in(rows: Sequence[Message]) -> tuple[Utterance, ...]:
    """Return what model servers read for the answers among these messages; it has no text. One query."""
    of_rows = {row.run_id for row in rows if row.run_id is not None}
    runs = Run.objects.filter(pk__in=of_rows, trace__has_key=SEARCHED)
    return tuple(
        Utterance(speaker=Speaker.ATTACHMENT, text="", run_id=run_id) for run_id in runs.values_list("pk", flat=True)
    )


def _speaker(row: Message, memory_calls: Set[str]) -> Speaker:
    if row.role == Message.Role.USER:
        return Speaker.PERSON
    if row.role == Message.Role.TOOL:
        return Speaker.MEMORY if row.tool_call_id in memory_calls else Speaker.TOOL
    return Speaker.TOOL if _TOOL_RESULT.fullmatch(row.text) else Speaker.ASSISTANT
