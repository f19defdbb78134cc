"""Reads the texts of recorded runs for the short-term lane. memories stores only references to the gateway's rows."""

from collections.abc import Sequence
from uuid import UUID

from gateway.models import Message, Run
from gateway.runs.wrappers import own_words
from memories.models import ThreadRecord
from memories.recall.threads import ThreadTurn


def read_turns(owner_id: UUID, session_id: UUID) -> Sequence[ThreadTurn]:
    """Return the recorded turns of a session, oldest first; superseded runs are left out."""
    records = ThreadRecord.objects.filter(owner_id=owner_id, session_id=session_id, cleared_at=None).order_by("id")
    by_run = {record.run_id: record.pk for record in records}
    runs = Run.objects.filter(owner_id=owner_id, pk__in=by_run, superseded=False).in_bulk()
    users, answers = _texts(owner_id, session_id, list(runs))
    return [
        ThreadTurn(
            record_id=record_id,
            run_id=run_id,
            turn=runs[run_id].turn,
            user=users.get(run_id, ""),
            assistant=runs[run_id].text,
            answer=answers.get(run_id, ""),
            said_at=runs[run_id].started_at,
        )
        for run_id, record_id in by_run.items()
        if run_id in runs
    ]


def _texts(owner_id: UUID, session_id: UUID, runs: Sequence[UUID]) -> tuple[dict[UUID, str], dict[UUID, str]]:
    """Return, by run, the user's own words, and the last assistant message with text."""
    users: dict[UUID, str] = {}
    answers: dict[UUID, str] = {}
    roles = (Message.Role.USER, Message.Role.ASSISTANT)
    rows = Message.objects.filter(owner_id=owner_id, session_id=session_id, run_id__in=runs, role__in=roles)
    for run_id, role, text in rows.order_by("seq").values_list("run_id", "role", "text"):
        if run_id is None:
            continue
        if role == Message.Role.USER:
            users.setdefault(run_id, own_words(text) or text)
        elif text.strip():
            answers[run_id] = text
    return users, answers
