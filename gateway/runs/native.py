"""Opens a run in a session that the caller names (native API and chat). The transcript comes from our rows."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from gateway.attachments.in_message import attached_parts
from gateway.digests import digest
from gateway.models import Message, Run, Session
from gateway.runs import fingerprint
from gateway.runs.context import TurnContext
from gateway.runs.ending import end_waiting, missing_results, release_lapsed, unanswered_calls
from gateway.runs.leases import reopen
from gateway.runs.requested import OtherBranchShown
from gateway.runs.rows import messages_insert, session_touch, turn_context, turn_open
from gateway.runs.session_rows import latest_run, messages_of, run_in, session_lock, shown_runs, user_messages
from gateway.runs.window import as_openai, parts_read, window_rows
from gateway.services import require_active
from memories.caller import Caller
from memories.errors import Conflict, InvalidRequest, NotFound
from memories.ids import parse_uuid


def open_native(
    caller: Caller,
    *,
    session_id: UUID | None,
    content: str | list[dict[str, Any]] | None,
    replaces: UUID | None,
    request_id: str,
    keep_attached: bool = False,
    last_turn: str | None = None,
    lease: datetime | None = None,
) -> TurnContext:
    """Open a run in a session that the caller names. Without `content` it repeats the messages of the turn that it
    replaces; with `keep_attached` it keeps their attachments. Runs that wait for results of client tools end without
    them. `last_turn` is the id of the last turn that the client shows, "" if it shows none. `lease` is the lease under
    which later turns were hidden.

    Raises NotFound, SessionEnded, SessionBusy, Unauthorized, LaterTurnsShown if later turns must be hidden first,
    OtherBranchShown if the branch that the client shows must be shown first, and Conflict if it has newer turns."""
    # Slow for megabytes: before the lock
    canonical = None if content is None else fingerprint.canonical_content(content)
    with transaction.atomic():
        session = session_lock(caller, session_id)
        require_active(session)
        waiting = release_lapsed(session, lease=lease)
        if last_turn is not None and lease is None:  # with a lease, it was compared before later turns were hidden
            _require_last(session, last_turn)
        replaced = run_in(shown_runs(session), replaces, " to replace") if replaces else None
        for run in waiting:
            end_waiting(run, session, [], keep=run.pk != replaces)
        contents = _contents(content, replaced, keep_attached=keep_attached)
        if canonical is None or contents[-1] is not content:
            canonical = "".join(map(fingerprint.canonical_content, contents))
        summary, rows = window_rows(session, before=replaced)
        context, asked = turn_open(
            session,
            [{"role": "user", "content": content} for content in contents],
            canonical=canonical,
            replaces=replaced,
            history_hash_before=_history_hash(session, replaced, rows),
            user_key=digest(canonical),
            temporary=not caller.remembers,
            request_id=request_id,
        )
    return _with_window(context, summary, rows, asked)


def _require_last(session: Session, last_turn: str) -> None:
    """Raise OtherBranchShown, Conflict or NotFound unless this is the last turn that is shown."""
    latest, seen = latest_run(session), parse_uuid(last_turn)
    if latest.pk == seen if latest else not last_turn:
        return
    if last_turn:
        run = run_in(Run.objects.filter(owner_id=session.owner_id, session=session), seen)
        if run.superseded:
            raise OtherBranchShown(run)
    raise Conflict("This conversation went on elsewhere. Read what is new, then send your message again.")


def open_answered(
    caller: Caller, *, session_id: UUID | None, run_id: UUID | None, results: Sequence[dict[str, Any]]
) -> TurnContext:
    """Resume a run that waits for results of client tools. A call without a result gets one that says so.

    Raises NotFound, SessionEnded, SessionBusy, Unauthorized, InvalidRequest for results of other calls, and Conflict
    for a run that does not wait."""
    with transaction.atomic():
        session = session_lock(caller, session_id)
        require_active(session)
        release_lapsed(session)
        run = run_in(Run.objects.filter(owner_id=caller.owner_id, session=session), run_id)
        if run.superseded or not reopen(run):
            raise Conflict("This turn does not wait for tool results.", state=run.state)
        stored = messages_of(run)
        waited_for = {call["id"] for call in unanswered_calls(stored)}
        if unknown := [result["tool_call_id"] for result in results if result["tool_call_id"] not in waited_for]:
            raise InvalidRequest(f"This turn made no call {unknown[0]}, or already has its result.", param="results")
        messages_insert(session, run.pk, missing_results(stored, results))
        session_touch(session)
        summary, rows = window_rows(session)
        asked = [row for row in stored if row.role == Message.Role.USER]
        context = turn_context(session, run, asked)
        context = replace(context, stored=list(map(as_openai, stored)))
    return _with_window(context, summary, rows)


def _with_window(
    context: TurnContext, summary: str, rows: Sequence[Message], new: Sequence[Message] = ()
) -> TurnContext:
    parts_read(rows)
    every = (*rows, *new)
    seqs = tuple(row.seq for row in every)
    return replace(context, messages=tuple(map(as_openai, every)), message_seqs=seqs, summary=summary)


def _history_hash(session: Session, replaced: Run | None, rows: Sequence[Message]) -> str:
    """Return the history hash before a new turn, which is the one after the latest run."""
    if replaced:
        return replaced.history_hash_before
    latest = next((row.history_hash for row in reversed(rows) if row.history_hash), "")  # type: ignore[attr-defined]
    return latest or fingerprint.first_history_hash(session.owner_id, session.agent.name)


def _contents(content: str | list[dict[str, Any]] | None, replaced: Run | None, *, keep_attached: bool) -> list[Any]:
    """Return the contents of the new user messages. Raises NotFound if there is no message to repeat."""
    if content is not None and not (replaced and keep_attached and isinstance(content, str)):
        return [content]
    rows = user_messages(replaced) if replaced else []
    if not rows:
        raise NotFound("There is no message to answer again.")
    if content is None:
        return [row.parts or row.text for row in rows]
    kept = [part for row in rows for part in attached_parts(row.parts or ())]
    return [[{"type": "text", "text": content}, *kept] if kept else content]
