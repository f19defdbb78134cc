"""Runs that wait for results of client tools: their unanswered calls, and ending a run without the results."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from gateway.models import Message, Run, Session
from gateway.runs import fingerprint
from gateway.runs.active import StoppedBy
from gateway.runs.closing import CLIENT_TOOLS_WAIT, run_end
from gateway.runs.leases import reopen
from gateway.runs.rows import turn_context
from gateway.runs.session_rows import lock, messages_of
from gateway.runs.window import as_openai
from memories.clocks import lease_over
from prompts.conversation import NO_RESULT

MAX_AT_ONCE = 100


def complete_waiting(now: datetime) -> int:
    """Complete runs that have waited too long, with their text so far as the answer. Return their number."""
    over = lease_over("lease_expires_at", now, lease=CLIENT_TOOLS_WAIT)
    waiting = Run.objects.filter(over, state=Run.State.AWAITING_CLIENT_TOOLS, session__deleted_at=None)
    return sum(_complete_waited(run.pk) for run in waiting.order_by("pk")[:MAX_AT_ONCE])


@transaction.atomic
def _complete_waited(run_id: UUID) -> bool:
    run = Run.objects.select_related("session__agent").get(pk=run_id)
    session = lock(run.session)
    if Run.objects.filter(session=session, state=Run.State.RUNNING).exists():  # left to a later sweep
        return False
    return end_waiting(run, session, [], keep=not run.superseded)


@transaction.atomic
def stop_waiting(run_id: UUID) -> bool:
    """Stop a waiting run on request, and keep its text so far. Return False if another request was first."""
    run = Run.objects.select_related("session__agent").get(pk=run_id)
    return end_waiting(run, lock(run.session), [], keep=not run.superseded, stopped_by=StoppedBy.REQUEST)


def end_waiting(
    run: Run,
    session: Session,
    results: Sequence[dict[str, Any]],
    *,
    keep: bool,
    stopped_by: StoppedBy | None = None,
) -> bool:
    """End a run that waits for results of client tools, in the caller's transaction, with the session locked and
    without a running run. With `keep` the run ends as completed, or as stopped if `stopped_by` is given; otherwise as
    stopped and superseded. Each call without a tool message among `results` gets one that says so, since models reject
    a transcript with unanswered calls.

    Return False if another request was first. Afterwards `session` is refreshed from the database."""
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
    if not keep:
        Run.objects.filter(pk=run.pk).update(superseded=True)
    if stopped_by is not None:
        output.trace = {**output.trace, "stopped_by": stopped_by.value}
    state = Run.State.COMPLETED if keep and stopped_by is None else Run.State.STOPPED
    run_end(context, output, state=state)
    session.refresh_from_db(from_queryset=Session.with_deleted.select_related("agent"))
    return True


def unanswered_calls(stored: Sequence[Message]) -> list[dict[str, Any]]:
    """Return the tool calls in a run's stored messages that have no result."""
    answered = {row.tool_call_id for row in stored if row.role == Message.Role.TOOL}
    return [call for row in stored for call in row.calls if call["id"] not in answered]


def missing_results(stored: Sequence[Message], results: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a tool message for each unanswered call: the one among `results`, or one that says there is none."""
    given = {str(message.get("tool_call_id", "")): message for message in results}
    unanswered = [str(call["id"]) for call in unanswered_calls(stored)]
    return [given.get(key, {"role": "tool", "tool_call_id": key, "content": NO_RESULT}) for key in unanswered]
