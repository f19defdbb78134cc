"""Opening a run in a session that the caller named: the native API and the chat, whose transcript is kept here."""

from uuid import UUID

from django.db import transaction

from gateway.models import Run, Session
from gateway.runs import fingerprint
from gateway.runs.context import TurnContext
from gateway.runs.lapsed import release_lapsed
from gateway.runs.rows import (
    is_new_turn,
    messages_insert,
    run_insert,
    session_lock,
    session_touch,
    supersede,
    title_of,
    turn_context,
)
from gateway.runs.window import as_openai, window_rows
from gateway.services import require_active
from memories.caller import Caller
from memories.errors import NotFound


@transaction.atomic
def open_native(
    caller: Caller, *, session_id: UUID | None, content: str, replaces: UUID | None, request_id: str
) -> TurnContext:
    """Open a run in a session the caller named. Raises NotFound, SessionEnded, SessionBusy, Unauthorized."""
    session = session_lock(caller, session_id)
    require_active(session)
    release_lapsed(session)
    replaced = _replaced_run(session, replaces)
    summary, rows = window_rows(session, before=replaced)
    transcript = tuple(as_openai(row) for row in rows)
    turns_before = fingerprint.read_conversation(
        caller.owner_id, session.agent.name, [*transcript, {"role": "user", "content": content}]
    )
    run = run_insert(
        caller,
        session,
        turn=replaced.turn if replaced else session.turns + 1,
        counted=is_new_turn(replaced),
        conversation=turns_before,
        temporary=session.temporary or not caller.remembers,
        request_id=request_id,
    )
    if replaced:
        supersede(session, replaced)
    message = messages_insert(session, run.pk, [{"role": "user", "content": content}])[-1]
    if not session.title:
        session.title = title_of(content)
    session_touch(session)
    return turn_context(
        session,
        run,
        messages=(*transcript, {"role": "user", "content": content}),
        message_seqs=(*(row.seq for row in rows), message.seq),
        summary=summary,
        user=message,
        user_canonical=turns_before.user,
        history_hash_before=turns_before.history_hash_before,
    )


def _replaced_run(session: Session, replaces: UUID | None) -> Run | None:
    if replaces is None:
        return None
    run = Run.objects.filter(owner_id=session.owner_id, session=session, pk=replaces, superseded=False).first()
    if run is None:
        raise NotFound("There is no such turn in this session to replace.")
    return run
