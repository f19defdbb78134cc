"""Open runs are leases: a crashed process does not block its session for ever, a late close is noticed by its token.
Called by gateway.runs (the two transactions), gateway.live (heartbeat, stop) and gateway.sweep."""

from datetime import datetime, timedelta
from enum import Enum, auto
from uuid import UUID

from django.conf import settings
from django.utils import timezone

from gateway.errors import SessionBusy
from gateway.models import Run, Session
from gateway.runs.context import TurnContext
from memories.errors import NotFound
from memories.ids import uuid7


class Heard(Enum):
    """What a heartbeat has to say."""

    STOP = auto()
    LOST = auto()


LEASE_MARGIN = timedelta(seconds=30)


def heartbeat(context: TurnContext, text: str) -> Heard | None:
    """Flush what was said so far and renew the lease. STOP when somebody asked for it, LOST when the run is closed or
    somebody else's."""
    mine = Run.objects.filter(pk=context.run_id, state=Run.State.RUNNING, lease_token=context.lease_token)
    if mine.update(text=text, lease_expires_at=lease_end()) != 1:
        return Heard.LOST
    return Heard.STOP if mine.filter(stop_requested=True).exists() else None


def stop(owner_id: UUID, session_id: UUID | None, run_id: UUID | None) -> Run:
    """Ask a run to stop; it is looked at when its text is flushed. Raises NotFound."""
    run = run_get(owner_id, session_id, run_id)
    Run.objects.filter(pk=run.pk, state=Run.State.RUNNING).update(stop_requested=True)
    return run


def run_get(owner_id: UUID, session_id: UUID | None, run_id: UUID | None) -> Run:
    """A turn of the owner's session. Raises NotFound."""
    run = (
        Run.objects.filter(owner_id=owner_id, session_id=session_id, pk=run_id).first()
        if session_id and run_id
        else None
    )
    if run is None:
        raise NotFound("There is no such turn in this session.")
    return run


def expire_runs(now: datetime) -> int:
    """Give up open runs whose lease ran out (their process died); their text is kept. Returns how many."""
    expired = Run.objects.filter(state=Run.State.RUNNING, lease_expires_at__lt=now)
    return expired.update(
        state=Run.State.FAILED,
        lease_token=None,
        lease_expires_at=None,
        finished_at=now,
        error={"code": "upstream_error", "message": "The process that answered this turn went away."},
    )


def release_expired(session: Session) -> list[Run]:
    """Give up an open run of the session whose lease ran out. Returns those that wait for a client's tool results,
    oldest first. Raises SessionBusy while one is really open."""
    open_states = (Run.State.RUNNING, Run.State.AWAITING_CLIENT_TOOLS)
    found = list(Run.objects.filter(owner_id=session.owner_id, session=session, state__in=open_states))
    open_run = next((run for run in found if run.state == Run.State.RUNNING), None)
    if open_run is not None:
        if open_run.lease_expires_at and open_run.lease_expires_at > timezone.now():
            raise SessionBusy(
                "An answer is still being written in this session. Wait for it or stop it.",
                run_id=str(open_run.pk),
            )
        expire_runs(timezone.now())
    return sorted((run for run in found if run is not open_run and not run.superseded), key=lambda run: run.pk)


def reopen(run: Run) -> bool:
    """Take up a run that waits for a client's tools; False when another request was first."""
    run.lease_token, run.lease_expires_at = uuid7(), lease_end()
    waiting = Run.objects.filter(pk=run.pk, state=Run.State.AWAITING_CLIENT_TOOLS)
    return (
        waiting.update(state=Run.State.RUNNING, lease_token=run.lease_token, lease_expires_at=run.lease_expires_at) == 1
    )


def lease_end() -> datetime:
    return timezone.now() + timedelta(seconds=settings.RUN_SECONDS) + LEASE_MARGIN
