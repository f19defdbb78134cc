"""Exports a conversation as a file: Markdown for people, JSON for programs. Replaced turns and injected memories are
left out. Rows are read in pages."""

import json
from collections.abc import Iterator
from datetime import datetime
from enum import StrEnum
from itertools import groupby
from operator import attrgetter
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from django.utils.text import slugify

from gateway.api.session_json import message_json, session_json, with_runs
from gateway.attachments.in_message import attached_parts, first_text, name_of
from gateway.attachments.reading import content_read
from gateway.models import Message, Run, Session
from memories.selectors import paged

_NAME_LENGTH = 60


class ExportFormat(StrEnum):
    MARKDOWN = "markdown"
    JSON = "json"

    @property
    def content_type(self) -> str:
        return "application/json" if self is ExportFormat.JSON else "text/markdown; charset=utf-8"


def export_name(session: Session, title: str, kind: ExportFormat) -> str:
    name = slugify(title)[:_NAME_LENGTH].strip("-") or f"session-{session.created_at:%Y-%m-%d}"
    return f"{name}.{'json' if kind is ExportFormat.JSON else 'md'}"


def export_session(session: Session, title: str, kind: ExportFormat) -> Iterator[str]:
    """Yield the file in pieces, one per message. The agent must be selected with the session."""
    rows = Message.objects.filter(owner_id=session.owner_id, session=session).exclude(run__superseded=True)
    messages = paged(with_runs(rows), "seq")
    return _json(session, messages) if kind is ExportFormat.JSON else _markdown(session, title, messages)


def _json(session: Session, messages: Iterator[Message]) -> Iterator[str]:
    yield f'{{"object": "session.export", "session": {_dumped(session_json(session))}, "messages": ['
    for number, message in enumerate(messages):
        message.parts = content_read(session.owner_id, message.parts)
        yield f"{',' if number else ''}\n{_dumped(message_json(message))}"
    yield "\n]}\n"


def _dumped(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, cls=DjangoJSONEncoder)


def _markdown(session: Session, title: str, messages: Iterator[Message]) -> Iterator[str]:
    yield f"# {title}\n\nWith {session.agent.name}, from {session.created_at:%Y-%m-%d %H:%M} UTC.\n"
    if session.tag_list:
        yield f"\nTags: {', '.join(session.tag_list)}\n"
    for run, of_run in groupby(messages, key=attrgetter("run")):
        answered = False
        for message in of_run:
            parts = message.parts or ()
            text = first_text(parts) if parts else message.text
            attached = [f"*Attached: {name_of(part)}*" for part in attached_parts(parts)]
            if message.role == Message.Role.TOOL or not (text or attached):
                continue
            answered = message.role != Message.Role.USER
            yield _section(session.agent.name if answered else "You", message.created_at, text, *attached)
        # As in the chat: the text of a failed run is in no message.
        if run and run.state == Run.State.FAILED and run.text and not answered:
            yield _section(session.agent.name, run.finished_at or run.started_at, run.text, "*Incomplete*")


def _section(author: str, at: datetime, text: str, *notes: str) -> str:
    body = "\n\n".join(filter(None, [text.strip(), *notes]))
    return f"\n## {author}, {at:%Y-%m-%d %H:%M}\n\n{body}\n"
