"""Requests that come again while they are being answered: they get the answer of the run that was opened for the first
one. No second run is opened, so nothing is asked, stored or counted twice."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from gateway.models import Run, Session
from gateway.runs.context import RunOutput, TurnContext, agent_config
from gateway.runs.fingerprint import Conversation
from gateway.runs.lapsed import is_lapsed
from gateway.runs.requested import SameTurnRunning, SessionMatch
from gateway.runs.session_rows import messages_of
from gateway.runs.waiting import unanswered_calls
from memories import tools as memory_tools
from memories.errors import NotFound

ANSWERED_STATES = (Run.State.COMPLETED, Run.State.AWAITING_CLIENT_TOOLS)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """A run that is over, or a command, with what the client is told at its end."""

    state: Run.State
    output: RunOutput
    client_calls: list[dict[str, Any]] = field(default_factory=list)
    changes: list[dict[str, Any]] = field(default_factory=list)
    turns_since_review: int
    error: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, run: Run) -> "RunResult":
        """Return how a run stands, from its rows."""
        waits = run.state == Run.State.AWAITING_CLIENT_TOOLS
        return cls(
            state=Run.State(run.state),
            output=RunOutput.of(run),
            client_calls=unanswered_calls(messages_of(run)) if waits else [],
            changes=memory_tools.changes_of_run(run.owner_id, run.pk),
            turns_since_review=run.session.turns_since_memory_review,
            error=run.error or {},
        )


def require_not_running(match: SessionMatch, conversation: Conversation, now: datetime) -> None:
    """Raises SameTurnRunning if the turn that a request asks for is being answered for the same request."""
    run = match.regenerates
    if run is None or run.state != Run.State.RUNNING or not conversation.matches(run) or is_lapsed(run, now):
        return
    raise SameTurnRunning("The same request is being answered.", run_id=str(run.pk))


def running_state(owner_id: UUID, run_id: UUID) -> str:
    """Return the state of a run, "" for one that was deleted."""
    return Run.objects.filter(owner_id=owner_id, pk=run_id).values_list("state", flat=True).first() or ""


def joined_context(owner_id: UUID, run_id: UUID) -> TurnContext:
    """Return a run as a request knows it that waits for its answer. Raises NotFound."""
    run = Run.objects.select_related("session__agent").filter(owner_id=owner_id, pk=run_id).first()
    if run is None:
        raise NotFound("There is no such turn. It may have been deleted.")
    return placeholder_context(run.session, run.pk, turn=run.turn, request_id=run.request_id, started_at=run.started_at)


def placeholder_context(
    session: Session, run_id: UUID, *, turn: int, started_at: datetime, request_id: str = ""
) -> TurnContext:
    """Return what the APIs know of a turn that nobody executes for them: it is only told."""
    return TurnContext(
        owner_id=session.owner_id,
        session_id=session.pk,
        run_id=run_id,
        lease_token=run_id,  # never shown: no run is closed with it
        turn=turn,
        counted=False,
        temporary=session.temporary,
        agent=agent_config(session.agent),
        book=None,
        messages=(),
        user_text="",
        user_canonical="",
        request_id=request_id,
        started_at=started_at,
        joined=True,
    )


def run_result(owner_id: UUID, run_id: UUID) -> RunResult | None:
    """Return a run that is over; None while it is not. Raises NotFound for one that was deleted."""
    run = Run.objects.select_related("session").filter(owner_id=owner_id, pk=run_id).first()
    if run is None:
        raise NotFound("There is no such turn. It may have been deleted.")
    return None if run.state == Run.State.RUNNING else RunResult.of(run)
