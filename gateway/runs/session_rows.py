"""Queries for the sessions and runs of one owner."""

from uuid import UUID

from django.db.models import Q, QuerySet

from gateway.models import Message, Run, Session
from memories.caller import Caller, KeyLimits
from memories.database.statements import Select, given

OPEN = (Run.State.RUNNING, Run.State.AWAITING_CLIENT_TOOLS)
UNFINISHED = (Run.State.STOPPED, Run.State.FAILED)
# What a person may go on from without having seen its end. A run that waits for tool results is no reason to take equal
# first words for the same request again: agents are often started several times with the same order.
OPEN_ENDED = (*UNFINISHED, Run.State.AWAITING_CLIENT_TOOLS)
_LATEST_RUN = Select(lambda: Run.objects.filter(**given(Run, "owner", "session"), superseded=False).order_by("-id")[:1])
# Each state has an index of the sessions with such runs. As one condition, or with the owner beside it, SQLite would
# read every run of the session.
_OPEN_RUNS = Select(
    lambda: Run.objects.filter(**given(Run, "session"), state=Run.State.RUNNING).union(
        Run.objects.filter(**given(Run, "session"), state=Run.State.AWAITING_CLIENT_TOOLS), all=True
    )
)


def locked_sessions(caller: Caller) -> "QuerySet[Session]":
    """Return the owner's sessions with their agents; those that are read are locked."""
    return Session.objects.select_for_update(of=("self",)).select_related("agent").filter(owner_id=caller.owner_id)


def lock(session: Session) -> Session:
    """Return a session as it is now, locked, with its agent."""
    return Session.objects.select_for_update(of=("self",)).select_related("agent").get(pk=session.pk)


def runs_within(owner_id: UUID, limits: KeyLimits) -> "QuerySet[Run]":
    """Return the owner's runs that a key may see; none of deleted sessions."""
    return limits.filter(Run.objects.filter(owner_id=owner_id, session__deleted_at=None), agent="session__agent__name")


def shown_runs(session: Session) -> "QuerySet[Run]":
    """Return the runs of the branch of a session that is shown."""
    return Run.objects.filter(owner_id=session.owner_id, session=session, superseded=False)


def latest_run(session: Session) -> Run | None:
    """Return the newest run of a session that was not replaced."""
    return _LATEST_RUN.instance(owner=session.owner_id, session=session.pk)


def open_runs(session: Session) -> list[Run]:
    """Return the runs of a session that are not over: at most one of them runs."""
    return _OPEN_RUNS.instances(session=session.pk)


def messages_of(run: Run) -> list[Message]:
    """Return the messages of a run, in their order."""
    # Without the session: SQLite would take its index, and read all messages of it.
    return list(Message.objects.filter(owner_id=run.owner_id, run=run).order_by("seq"))


def from_run(run: Run, run_is: str = "") -> Q:
    """Match a run of the branch that is shown, and those after it; `run_is` is the way to a run, for other rows. A turn
    that failed or was stopped is followed by one of the same number."""
    at = {f"{run_is}turn": run.turn, f"{run_is}pk__gte": run.pk}
    return Q(**{f"{run_is}turn__gt": run.turn}) | Q(**at)
