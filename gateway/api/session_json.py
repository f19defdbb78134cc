"""Sessions, messages and search results as JSON of the native API."""

from typing import Any

from django.db.models import QuerySet

from gateway.api import answers
from gateway.models import Message, Session
from gateway.sessions.search import FoundSession
from memories.api.answers import as_shape

_LONG_COLUMNS = ("run__reasoning", "run__recalled", "run__trace", "run__injected", "run__responses")


def session_json(session: Session) -> dict[str, Any]:
    """Return a session. Its agent must be selected with it."""
    return as_shape(
        answers.Session,
        session,
        object="session",
        agent=session.agent.name,
        tags=session.tag_list,
        pinned=session.pinned_at is not None,
        archived=session.archived_at is not None,
    )


def with_runs(messages: "QuerySet[Message]") -> "QuerySet[Message]":
    """Select the runs of messages with them, without their long columns: a run may have many messages."""
    return messages.select_related("run").defer(*_LONG_COLUMNS)


def message_json(message: Message) -> dict[str, Any]:
    """Return a message without the bytes of its attachments. Its run must be selected with it (`with_runs`)."""
    return as_shape(
        answers.Message,
        message,
        id=str(message.seq),
        object="message",
        content=message.parts or message.text,
        tool_calls=message.calls or None,
        tool_call_id=message.tool_call_id or None,
        turn_id=message.run_id,
        superseded=bool(message.run and message.run.superseded),
        follows=message.run.follows if message.run else None,
    )


def found_json(found: FoundSession) -> dict[str, Any]:
    """Return a search result: a session with its newest matching messages."""
    matches = [
        as_shape(
            answers.SessionMatch,
            hit,
            message_id=str(hit.seq),
            snippet=hit.snippet.text,
            highlights=[list(mark) for mark in hit.snippet.marks],
            created_at=hit.said_at,
        )
        for hit in found.hits
    ]
    return {**session_json(found.session), "matches": matches, "match_count": found.count}
