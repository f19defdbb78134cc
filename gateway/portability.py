"""The gateway's part of exports and of the erasure of an owner's memory."""

from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

from django.db.models import Q

from gateway.attachments.reading import content_read
from gateway.models import Message, Run, Session
from memories.selectors import paged
from memories.services.erasing import ErasureStep, updating


def export_conversations(owner_id: UUID) -> Iterator[dict[str, Any]]:
    """Yield an owner's sessions, reasoning and messages, including superseded ones."""
    for session in paged(Session.objects.filter(owner_id=owner_id).select_related("agent"), "id"):
        yield {
            "type": "session",
            "id": str(session.pk),
            "agent": session.agent.name,
            "title": session.title,
            "state": session.state,
            "temporary": session.temporary,
            "tags": session.tag_list,
            "created_at": session.created_at,
        }
    runs = Run.objects.filter(owner_id=owner_id, session__deleted_at=None)
    thinking = runs.exclude(reasoning="").only("session_id", "reasoning")
    for run in paged(thinking, "id"):
        yield {"type": "reasoning", "session_id": str(run.session_id), "turn_id": str(run.pk), "content": run.reasoning}
    for message in paged(Message.objects.filter(owner_id=owner_id, session__deleted_at=None), "session_id", "seq"):
        yield {
            "type": "message",
            "session_id": str(message.session_id),
            "id": str(message.seq),
            "role": message.role,
            "kind": message.kind,
            "content": content_read(owner_id, message.parts) or message.text,
            "tool_calls": message.tool_calls,
            "tool_call_id": message.tool_call_id or None,
            "kept": message.kept,
            "turn_id": str(message.run_id) if message.run_id else None,
            "created_at": message.created_at,
        }


def erase_traces(owner_id: UUID, books: Sequence[UUID]) -> list[ErasureStep]:
    """Return the steps that erase memory from an owner's runs, and the models' reasoning. The transcript stays."""
    noted = Run.objects.filter(owner_id=owner_id).filter(~Q(recalled=[]) | Q(injected__isnull=False))
    return [ErasureStep("traces", updating(noted, recalled=[], trace={}, injected=None, reasoning=""))]
