"""The words of recorded runs, for the short-term lane: memories keeps pointers, the gateway keeps the messages."""

from collections.abc import Sequence
from uuid import UUID

from gateway.models import Message, Run
from memories.models import ThreadRecord
from memories.threads import ThreadTurn


def read_turns(owner_id: UUID, session_id: UUID, after: UUID | None) -> Sequence[ThreadTurn]:
    """The recorded turns of a session after a record, oldest first; superseded runs are left out."""
    records = ThreadRecord.objects.filter(owner_id=owner_id, session_id=session_id, cleared_at=None).order_by("id")
    if after is not None:
        records = records.filter(id__gt=after)
    by_run = {record.run_id: record.pk for record in records}
    runs = Run.objects.filter(owner_id=owner_id, pk__in=by_run, superseded=False).in_bulk()
    users = Message.objects.filter(owner_id=owner_id, session_id=session_id, run_id__in=runs, role=Message.Role.USER)
    said = {message.run_id: message.text for message in users}
    return [
        ThreadTurn(
            record_id=record_id,
            run_id=run_id,
            turn=runs[run_id].turn,
            user=said.get(run_id, ""),
            assistant=runs[run_id].text,
            said_at=runs[run_id].started_at,
        )
        for run_id, record_id in by_run.items()
        if run_id in runs
    ]
