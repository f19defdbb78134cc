"""Stops runs whose process has ended, or has not renewed its lease, and keeps their text so far. Called by the next
turn of the session, by a stop, by the worker's sweep, and when Daybook starts."""

import math
from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from gateway.errors import SessionBusy
from gateway.models import Message, Run, Session
from gateway.runs.holder import delete_ended, has_ended
from gateway.runs.leases import LEASE, limit_leases
from gateway.runs.rows import messages_insert
from gateway.runs.session_rows import open_runs, steps_of
from memories.clocks import set_forward_within
from memories.database.access import only_row

MAX_AT_ONCE = 100
"""Runs that one sweep stops, so that it delays nothing else for long."""


def release_lapsed(session: Session, *, lease: datetime | None = None) -> list[Run]:
    """Stop an open run of the session, whose row is locked, if its process is gone. Return the runs that wait for tool
    results of clients, oldest first. Raises SessionBusy if a run is really open; details: run_id, retry_after (seconds
    until its lease ends, unless it is renewed). Also raises it while another branch is being shown in parts, unless
    that happens under the given `lease` (gateway.runs.branch_lease)."""
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
    expired = run.lease_expires_at is None or (run.lease_expires_at <= now and not set_forward_within(LEASE))
    return expired or has_ended(run.holder)


def _lapsed(now: datetime) -> list[UUID]:
    limit_leases(now)
    set_forward_within(LEASE)  # every sweep compares the clocks, so that a step is noticed soon
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
