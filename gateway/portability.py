"""The gateway's part of exports and of the erasure of an owner's memory."""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any
from uuid import UUID

from django.db.models import Case, JSONField, Q, Value, When

from gateway.api.session_json import message_json, session_json, with_runs
from gateway.attachments.reading import content_read
from gateway.models import Message, Run, Session
from gateway.runs.utterances import READ_ELSEWHERE
from memories.selectors import paged
from memories.services.erasing import ErasureStep, updating


def export_conversations(owner_id: UUID) -> Iterator[dict[str, Any]]:
    """Yield an owner's sessions, reasoning and messages, including superseded ones."""
    for session in paged(Session.objects.filter(owner_id=owner_id).select_related("agent"), "id"):
        yield {"type": "session", **session_json(session)}
    runs = Run.objects.filter(owner_id=owner_id, session__deleted_at=None)
    thinking = runs.exclude(reasoning="").only("session_id", "reasoning")
    for run in paged(thinking, "id"):
        yield {"type": "reasoning", "session_id": str(run.session_id), "turn_id": str(run.pk), "content": run.reasoning}
    messages = Message.objects.filter(owner_id=owner_id, session__deleted_at=None)
    for message in paged(with_runs(messages), "session_id", "seq"):
        message.parts = content_read(owner_id, message.parts)
        line = {"type": "message", "session_id": str(message.session_id), **message_json(message)}
        yield {**line, "kept": message.kept}


def erase_traces(owner_id: UUID, books: Sequence[UUID]) -> list[ErasureStep]:
    """Return the steps that erase memory from an owner's runs, and the models' reasoning. The transcript stays, and so
    do the notes that its answers may repeat something else."""
    noted = Run.objects.filter(owner_id=owner_id).filter(~Q(recalled=[]) | Q(injected__isnull=False))
    return [ErasureStep("traces", updating(noted, recalled=[], trace=_notes_kept(), injected=None, reasoning=""))]


def _notes_kept() -> Case:
    """Return the expression for a trace with only those of READ_ELSEWHERE that it has."""
    sets = [keys for size in range(len(READ_ELSEWHERE), 0, -1) for keys in combinations(READ_ELSEWHERE, size)]
    kept = [When(trace__has_keys=keys, then=Value(dict.fromkeys(keys, True), JSONField())) for keys in sets]
    return Case(*kept, default=Value({}, JSONField()))
