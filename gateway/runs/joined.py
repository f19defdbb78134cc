"""Joins a request that is repeated while it is being answered to the run of the first one. No second run is opened, so
no model is asked, and nothing is stored or counted, twice."""

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from gateway.errors import run_failure
from gateway.models import Message, Run, Session
from gateway.runs.context import RunOutput, TurnContext, agent_config
from gateway.runs.ending import is_lapsed, unanswered_calls, unsaved_text
from gateway.runs.fingerprint import ResentConversation
from gateway.runs.requested import MatchedSession, SameTurnRunning
from gateway.runs.session_rows import messages_of, steps_of
from memories import tools as memory_tools
from memories.errors import DomainError, NotFound

ANSWERED_STATES = (Run.State.COMPLETED, Run.State.AWAITING_CLIENT_TOOLS)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """The result of a run that has ended, or of a command, as the APIs report it."""

    state: Run.State
    output: RunOutput
    client_calls: list[dict[str, Any]] = field(default_factory=list)
    changes: list[dict[str, Any]] = field(default_factory=list)
    turns_since_review: int
    error: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, run: Run) -> "RunResult":
        """Return the result of a run from its rows."""
        waits = run.state == Run.State.AWAITING_CLIENT_TOOLS
        return cls(
            state=Run.State(run.state),
            output=RunOutput.of(run),
            client_calls=unanswered_calls(messages_of(run)) if waits else [],
            changes=memory_tools.changes_of_run(run.owner_id, run.pk),
            turns_since_review=run.session.turns_since_memory_review,
            error=run.error or {},
        )

    def failure(self) -> DomainError:
        """Return the error of a failed run. The memory changes of its tools are not stored with it, since they may have
        been forgotten meanwhile."""
        failure = run_failure(self.error)
        if self.changes:
            failure.details["memory_changes"] = self.changes
        return failure


def require_not_running(match: MatchedSession, conversation: ResentConversation, now: datetime) -> None:
    """Raise SameTurnRunning if an identical request for this turn is already being answered."""
    run = match.regenerates
    if run is None or run.state != Run.State.RUNNING or not conversation.matches(run) or is_lapsed(run, now):
        return
    context = placeholder_context(
        match.session, run.pk, turn=run.turn, request_id=run.request_id, started_at=run.started_at
    )
    steps = steps_of(run)  # none unless the run was resumed
    sent = run.text.removesuffix(unsaved_text(run.text, steps))
    stored = [{"role": Message.Role.ASSISTANT.value, "content": step.text, "tool_calls": step.calls} for step in steps]
    raise SameTurnRunning(replace(context, stored=stored, earlier=replace(RunOutput.of(run), text=sent)))


def running_state(owner_id: UUID, run_id: UUID) -> str:
    """Return the state of a run, or "" if it was deleted."""
    return Run.objects.filter(owner_id=owner_id, pk=run_id).values_list("state", flat=True).first() or ""


def placeholder_context(
    session: Session, run_id: UUID, *, turn: int, started_at: datetime, request_id: str = ""
) -> TurnContext:
    """Return the context of a turn without an engine, whose result the APIs only report."""
    return TurnContext(
        owner_id=session.owner_id,
        session_id=session.pk,
        run_id=run_id,
        lease_token=run_id,  # never used, since no run is closed with this context
        turn=turn,
        counted=False,
        temporary=session.temporary,
        agent=agent_config(session.agent),
        book=None,
        user_text="",
        user_canonical="",
        request_id=request_id,
        started_at=started_at,
        joined=True,
    )


def run_result(owner_id: UUID, run_id: UUID) -> RunResult | None:
    """Return the result of a run, or None while it is running. Raises NotFound if it was deleted."""
    run = Run.objects.select_related("session").filter(owner_id=owner_id, pk=run_id).first()
    if run is None:
        raise NotFound("There is no such turn. It may have been deleted.")
    return None if run.state == Run.State.RUNNING else RunResult.of(run)
