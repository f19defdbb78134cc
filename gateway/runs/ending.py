"""Ends runs from outside the task that executes them: runs whose process has ended or has not renewed its lease, runs
that wait for results of client tools, and runs that a person stops. Each keeps its text so far. Called by the next
request of the session, by a stop, by the worker's sweep, and when Daybook starts."""

import asyncio
import math
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from gateway.errors import SessionBusy
from gateway.models import Message, Run, Session
from gateway.runs import active
from gateway.runs.active import StoppedBy
from gateway.runs.closing import CLIENT_TOOLS_WAIT, run_end
from gateway.runs.leases import LEASE, delete_ended, has_ended, limit_leases, reopen
from gateway.runs.rows import messages_insert, turn_context
from gateway.runs.session_rows import locked_sessions, messages_of, open_runs, run_get, steps_of
from memories.caller import UNLIMITED, KeyLimits
from memories.clocks import lease_over, since_set_forward
from memories.database.access import in_read_thread, in_thread, only_row
from prompts.conversation import NO_RESULT

MAX_AT_ONCE = 100
"""Runs of one kind that one sweep ends, so that it delays nothing else for long."""
# Another process checks for requests to stop twice a second. If the run is still open after this time, that process is
# gone, or too busy to wait for, and the run is stopped from here: its own close then comes too late.
PATIENCE_SECONDS = 2.0
_POLL_SECONDS = 0.05


def release_lapsed(session: Session, *, lease: datetime | None = None) -> list[Run]:
    """Stop an open run of the session, whose row is locked, if its process is gone. Return the runs that wait for tool
    results of clients, oldest first. Raises SessionBusy if a run is really open; details: run_id, retry_after (seconds
    until its lease ends, unless it is renewed). Also raises it while another branch is being shown in parts, unless
    that happens under the given `lease` (gateway.runs.branches)."""
    if session.branch_until not in {None, lease}:
        raise SessionBusy("Another version of this conversation is being shown. Try again in a moment.", retry_after=1)
    found = open_runs(session)
    waiting = [run for run in found if run.state == Run.State.AWAITING_CLIENT_TOOLS and not run.superseded]
    waiting.sort(key=lambda run: run.pk)
    run = next((run for run in found if run.state == Run.State.RUNNING), None)
    if run is None:
        return waiting
    now = timezone.now()
    if not is_lapsed(run, now):
        left = min(run.lease_expires_at - now, LEASE) if run.lease_expires_at else None
        raise SessionBusy(
            "An answer is still being written in this session. Wait for it or stop it.",
            run_id=str(run.pk),
            retry_after=max(1, math.ceil(left.total_seconds())) if left else 1,
        )
    _stop(session, run, now)
    return waiting


def stop_lapsed(now: datetime) -> int:
    """Stop runs whose process is gone, those with the oldest leases first and at most MAX_AT_ONCE. Return their
    number."""
    return sum(stop_run(pk, only_lapsed=True) for pk in _lapsed(now)[:MAX_AT_ONCE])


def stop_left_behind() -> int:
    """Stop all runs that earlier processes of this home left running, each in a transaction of its own; called when
    Daybook starts. Return their number. With a server database, where other processes may be at work, only runs with
    expired leases are stopped."""
    stopped = sum(stop_run(pk, only_lapsed=True) for pk in _lapsed(timezone.now()))
    delete_ended()
    return stopped


@transaction.atomic
def stop_run(run_id: UUID, *, only_lapsed: bool = False) -> bool:
    """Stop an open run from outside the process that executes it, whose own close then comes too late. Return False if
    the run has already ended or, with `only_lapsed`, if its process is alive."""
    session_id = Run.objects.filter(pk=run_id).values_list("session_id", flat=True).first()
    session = only_row(Session.objects.select_for_update(no_key=True).filter(pk=session_id)) if session_id else None
    run = only_row(Run.objects.filter(pk=run_id, state=Run.State.RUNNING))
    now = timezone.now()
    if session is None or run is None or (only_lapsed and not is_lapsed(run, now)):
        return False
    return _stop(session, run, now)


def is_lapsed(run: Run, now: datetime) -> bool:
    """Return True if an open run is known to be no longer executed. When the clock is set forward, all leases look
    expired until they are renewed, so for the duration of a lease none counts as expired."""
    expired = run.lease_expires_at is None or (run.lease_expires_at <= now and since_set_forward() >= LEASE)
    return expired or has_ended(run.holder)


def _lapsed(now: datetime) -> list[UUID]:
    limit_leases(now)
    since_set_forward()  # every sweep compares the clocks, so that a step is noticed soon
    running = Run.objects.filter(state=Run.State.RUNNING).order_by("lease_expires_at")
    return [run.pk for run in running.only("lease_expires_at", "holder").iterator() if is_lapsed(run, now)]


def _stop(session: Session, run: Run, now: datetime) -> bool:
    leased = Run.objects.filter(
        pk=run.pk, state=Run.State.RUNNING, lease_token=run.lease_token, lease_expires_at=run.lease_expires_at
    )
    stopped = leased.update(
        state=Run.State.STOPPED,
        injected=None,
        trace={**run.trace, "stopped_by": "process"},
        lease_token=None,
        lease_expires_at=None,
        finished_at=now,
    )
    if stopped != 1:
        return False
    if text := unsaved_text(run.text, steps_of(run)):
        messages_insert(session, run.pk, [{"role": Message.Role.ASSISTANT, "content": text}])
        session.save(update_fields=["message_seq"])
    return True


def unsaved_text(text: str, steps: Sequence[Message]) -> str:
    """Return a run's text after that of its stored steps, which exist if it has waited for client tools."""
    for step in steps:
        if step.text:
            text = text.lstrip().removeprefix(step.text.strip()).lstrip()
    return text


def complete_waiting(now: datetime) -> int:
    """Complete runs that have waited too long, with their text so far as the answer. Return their number."""
    over = lease_over("lease_expires_at", now, lease=CLIENT_TOOLS_WAIT)
    waiting = Run.objects.filter(over, state=Run.State.AWAITING_CLIENT_TOOLS, session__deleted_at=None)
    return sum(_end_waited(run) for run in waiting.order_by("pk")[:MAX_AT_ONCE])


def complete_waiting_of(session: Session) -> None:
    """Complete the session's runs that wait for results of client tools, unless another of its runs is executed. Then
    refresh the session."""
    waiting = Run.objects.filter(
        owner_id=session.owner_id, session_id=session.pk, state=Run.State.AWAITING_CLIENT_TOOLS
    )
    ended = [_end_waited(run) for run in waiting.order_by("pk")]
    if any(ended):
        session.refresh_from_db(from_queryset=Session.with_deleted.select_related("agent"))


@transaction.atomic
def _end_waited(waiting: Run, stopped_by: StoppedBy | None = None) -> bool:
    """Complete or stop a waiting run, and keep its text so far. Return False if another request was first, if its
    session was deleted, or while another run of its session is being executed."""
    session = only_row(locked_sessions(waiting.owner_id).filter(pk=waiting.session_id))
    found = open_runs(session) if session else []
    run = next((run for run in found if run.pk == waiting.pk), None)
    if session is None or run is None or any(other.state == Run.State.RUNNING for other in found):
        return False
    return end_waiting(run, session, [], keep=not run.superseded, stopped_by=stopped_by)


def end_waiting(
    run: Run, session: Session, results: Sequence[dict[str, Any]], *, keep: bool, stopped_by: StoppedBy | None = None
) -> bool:
    """End a run that waits for results of client tools, in the caller's transaction, with the session locked and
    without a running run. With `keep` the run ends as completed, or as stopped if `stopped_by` is given; otherwise as
    stopped and superseded. Each call without a tool message among `results` gets one that says so, since models reject
    a transcript with unanswered calls.

    Return False if another request was first. Afterwards `session` is refreshed from the database."""
    stored = messages_of(run)
    asked = [row for row in stored if row.role == Message.Role.USER]
    if not asked or not reopen(run):
        return False
    context = turn_context(session, run, asked)
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


async def stop_turn(
    owner_id: UUID, session_id: UUID | None, run_id: UUID | None, *, limits: KeyLimits = UNLIMITED
) -> Run:
    """Stop a turn that is running or waits for client tools, whether this process, another one or none executes it.
    Wait for its end, and return its row. Raises NotFound, and SessionBusy if the run waits for client tools while
    another run of its session is executed."""
    run = await in_thread(request_stop, owner_id, session_id, run_id, limits=limits)
    if run.state == Run.State.AWAITING_CLIENT_TOOLS:
        await in_thread(_end_waited, run, StoppedBy.REQUEST)
        run = await in_thread(request_stop, owner_id, session_id, run_id)  # it may have been resumed first
        if run.state == Run.State.AWAITING_CLIENT_TOOLS:
            raise SessionBusy("Another turn of this session is being executed. Stop that one first.", retry_after=1)
    active.stop(run.pk, StoppedBy.REQUEST)
    deadline = asyncio.get_running_loop().time() + PATIENCE_SECONDS
    while run.state == Run.State.RUNNING:
        if is_lapsed(run, timezone.now()) or asyncio.get_running_loop().time() > deadline:
            await in_thread(stop_run, run.pk)
        else:
            await asyncio.sleep(_POLL_SECONDS)
        run = await in_read_thread(run_get, owner_id, session_id, run_id)
    return run


def request_stop(owner_id: UUID, session_id: UUID | None, run_id: UUID | None, *, limits: KeyLimits = UNLIMITED) -> Run:
    """Request a run's process to stop it, and return the run. Raises NotFound."""
    run = run_get(owner_id, session_id, run_id, limits=limits)
    Run.objects.filter(pk=run.pk, state=Run.State.RUNNING).update(stop_requested=True)
    return run
