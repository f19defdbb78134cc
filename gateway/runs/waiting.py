"""Runs that wait for results of their client's tools: which calls have none yet, and what ends a run without them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from gateway.models import Message, Run, Session
from gateway.runs import fingerprint
from gateway.runs.closing import CLIENT_TOOLS_WAIT, run_end
from gateway.runs.held import StoppedBy
from gateway.runs.leases import reopen
from gateway.runs.rows import turn_context
from gateway.runs.session_rows import lock, messages_of
from gateway.runs.window import as_openai
from memories.clocks import lease_over
from prompts.conversation import NO_RESULT

AT_ONCE = 100


def complete_waiting(now: datetime) -> int:
    """End runs that waited too long as completed: what was said so far is the answer. Returns how many."""
    over = lease_over("lease_expires_at", now, lease=CLIENT_TOOLS_WAIT)
    waiting = Run.objects.filter(over, state=Run.State.AWAITING_CLIENT_TOOLS, session__deleted_at=None)
    return sum(_complete_waited(run.pk) for run in waiting.order_by("pk")[:AT_ONCE])


@transaction.atomic
def _complete_waited(run_id: UUID) -> bool:
    run, session = _locked(run_id)
    if Run.objects.filter(session=session, state=Run.State.RUNNING).exists():  # another turn: the next sweep then
        return False
    return end_waiting(run, session, [], stands=not run.superseded)


@transaction.atomic
def stop_waiting(run_id: UUID) -> bool:
    """End a run that waits as stopped, because somebody asked for that: what was said so far is kept. Returns False
    when another request was first."""
    run, session = _locked(run_id)
    return end_waiting(run, session, [], stands=not run.superseded, stopped_by=StoppedBy.REQUEST)


def _locked(run_id: UUID) -> tuple[Run, Session]:
    """Return a run and its session, whose row is locked."""
    run = Run.objects.select_related("session__agent").get(pk=run_id)
    return run, lock(run.session)


def end_waiting(
    run: Run,
    session: Session,
    results: Sequence[dict[str, Any]],
    *,
    stands: bool,
    stopped_by: StoppedBy | None = None,
) -> bool:
    """End a run that waits for a client's tool results, in the caller's transaction, with the session locked and no run
    of it open. `stands`: as completed, or as stopped by somebody, with what it said; else as stopped and replaced. Each
    call that no tool message among `results` answers is given one that says so, or the transcript could not be sent to
    a model again.

    Returns False when another request was first. `session` is as the database has it afterwards."""
    stored = messages_of(run)
    user = next((row for row in stored if row.role == Message.Role.USER), None)
    if user is None or not reopen(run):
        return False
    context = turn_context(
        session,
        run,
        messages=(as_openai(user),),
        user=user,
        user_canonical=fingerprint.canonical_content(user.parts or user.text),
    )
    output = context.output_so_far()
    output.messages = missing_results(stored, results)
    if not stands:
        Run.objects.filter(pk=run.pk).update(superseded=True)
    if stopped_by is not None:
        output.trace = {**output.trace, "stopped_by": stopped_by.value}
    state = Run.State.COMPLETED if stands and stopped_by is None else Run.State.STOPPED
    run_end(context, output, state=state)
    session.refresh_from_db()
    return True


def unanswered_calls(stored: Sequence[Message]) -> list[dict[str, Any]]:
    """Return the tool calls of a run's stored messages that have no result."""
    answered = {row.tool_call_id for row in stored if row.role == Message.Role.TOOL}
    return [call for row in stored for call in row.calls if call["id"] not in answered]


def missing_results(stored: Sequence[Message], results: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a tool message for each unanswered call: the one among `results`, else one that says there is none."""
    given = {str(message.get("tool_call_id", "")): message for message in results}
    unanswered = [str(call["id"]) for call in unanswered_calls(stored)]
    return [given.get(key, {"role": "tool", "tool_call_id": key, "content": NO_RESULT}) for key in unanswered]
