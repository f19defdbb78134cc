"""Queries for the sessions and runs of one owner."""

from collections.abc import Iterable
from uuid import UUID

from django.db import connection
from django.db.models import Case, Exists, F, Q, QuerySet, TextField, Value, When
from django.db.models.functions import Concat, Left, Length, Right
from django.db.models.lookups import GreaterThan

from gateway.agents.rows import KEY_REVOKED
from gateway.keys import keys_of
from gateway.models import Message, Run, Session
from gateway.runs.comparing import END_CHARS
from gateway.runs.fingerprint import canonical_content
from memories.caller import UNLIMITED, Caller, KeyLimits
from memories.database.access import only_row
from memories.database.statements import Select, given
from memories.errors import NotFound, Unauthorized
from memories.ids import parse_uuid

OPEN = (Run.State.RUNNING, Run.State.AWAITING_CLIENT_TOOLS)
UNFINISHED = (Run.State.STOPPED, Run.State.FAILED)
# Runs that may be continued by somebody who has not seen their end. A run that waits for tool results does not make an
# equal first message a retry: agents are often started several times with the same task.
OPEN_ENDED = (*UNFINISHED, Run.State.AWAITING_CLIENT_TOOLS)
# A program may begin any number of sessions with the same message.
MAX_ALIKE = 50
SHORTENED_TEXT = Case(
    When(
        GreaterThan(Length("text"), 2 * END_CHARS),
        then=Concat(Left("text", END_CHARS), Value("\n"), Right("text", END_CHARS)),
    ),
    default=F("text"),
    output_field=TextField(),
)
"""The part of a text that gateway.runs.comparing reads."""
_LATEST_RUN = Select(lambda: Run.objects.filter(**given(Run, "owner", "session"), superseded=False).order_by("-id")[:1])
# Each state has its own index of sessions. With a single condition, or with the owner in it, SQLite would read every
# run of the session.
_OPEN_RUNS = Select(
    lambda: Run.objects.filter(**given(Run, "session"), state=Run.State.RUNNING).union(
        Run.objects.filter(**given(Run, "session"), state=Run.State.AWAITING_CLIENT_TOOLS), all=True
    )
)


def locked_sessions(owner_id: UUID) -> "QuerySet[Session]":
    """Return the owner's sessions with their agents. Rows that are read are locked."""
    rows = Session.objects.select_for_update(of=("self",), no_key=True)
    return rows.select_related("agent").filter(owner_id=owner_id)


def session_lock(caller: Caller, session_id: UUID | None) -> Session:
    """Return the owner's session, locked, with its agent, and check the key again. Raises NotFound, Unauthorized."""
    rows = caller.limits.filter(locked_sessions(caller.owner_id), agent="agent__name")
    if caller.key_id:
        rows = rows.annotate(key_valid=Exists(keys_of(caller)))
    session = only_row(rows.filter(pk=session_id)) if session_id else None
    if session is None:
        raise NotFound("There is no such session. It may have been deleted.")
    if caller.key_id and not getattr(session, "key_valid", False):
        raise Unauthorized(KEY_REVOKED)
    return session


def with_agent(ref: str, agent_name: str) -> str:
    """Return the external id of an agent's session in a chat in which the client talks to several agents."""
    return f"{ref} {agent_name}"


def named(ref: str, *more: str) -> Q:
    """Filter sessions by what a client calls them: an id of its own, here one of several, or `ref` as our id."""
    own_id = parse_uuid(ref)
    external = Q(external_id__in={ref, *more})
    return external | Q(pk=own_id) if own_id else external


def idempotency_lock(owner_id: UUID, key: str) -> None:
    """Let the owner's other requests with this key wait for the end of the transaction, since a first message has no
    row to lock yet. On SQLite a transaction is the only writer anyway."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"{owner_id} {key}"])


def lock(session: Session) -> Session:
    """Return the current row of a session, locked, with its agent."""
    return Session.objects.select_for_update(of=("self",), no_key=True).select_related("agent").get(pk=session.pk)


def runs_within(owner_id: UUID, limits: KeyLimits) -> "QuerySet[Run]":
    """Return the owner's runs that a key may see, without those of deleted sessions."""
    return limits.filter(Run.objects.filter(owner_id=owner_id, session__deleted_at=None), agent="session__agent__name")


def run_get(owner_id: UUID, session_id: UUID | None, run_id: UUID | None, *, limits: KeyLimits = UNLIMITED) -> Run:
    """Return a turn of the owner's session. Raises NotFound."""
    runs = runs_within(owner_id, limits)
    return run_in(runs.filter(session_id=session_id) if session_id else runs.none(), run_id)


def run_in(runs: "QuerySet[Run]", run_id: UUID | None, purpose: str = "") -> Run:
    """Return the run with this id among the runs of a session. Raises NotFound, which mentions the purpose."""
    run = only_row(runs.filter(pk=run_id)) if run_id else None
    if run is None:
        raise NotFound(f"There is no such turn in this session{purpose}.")
    return run


def shown_runs(session: Session) -> "QuerySet[Run]":
    """Return the runs of a session's shown branch."""
    return Run.objects.filter(owner_id=session.owner_id, session=session, superseded=False)


def latest_run(session: Session) -> Run | None:
    """Return the newest run of a session's shown branch."""
    return _LATEST_RUN.instance(owner=session.owner_id, session=session.pk)


def open_runs(session: Session) -> list[Run]:
    """Return the open runs of a session, of which at most one is running."""
    return _OPEN_RUNS.instances(session=session.pk)


def messages_of(run: Run) -> list[Message]:
    """Return the messages of a run, in their order."""
    # Not filtered by session: SQLite would use that index, and read all of the session's messages.
    return list(Message.objects.filter(owner_id=run.owner_id, run=run).order_by("seq"))


def user_messages(run: Run) -> list[Message]:
    """Return the user messages of a run: the one that it answers, and before it those that came with it."""
    return list(Message.objects.filter(owner_id=run.owner_id, run=run, role=Message.Role.USER).order_by("seq"))


def canonical_question(rows: Iterable[Message]) -> str:
    """Return the canonical text of the user messages among the messages of a run."""
    return "".join(canonical_content(row.parts or row.text) for row in rows if row.role == Message.Role.USER)


def shown_messages(owner_id: UUID, session_id: UUID) -> "QuerySet[Message]":
    """Return the messages of a session's shown branch, without commands."""
    rows = Message.objects.filter(owner_id=owner_id, session_id=session_id)
    return rows.exclude(kind=Message.Kind.COMMAND).exclude(run__superseded=True)


def steps_of(run: Run) -> list[Message]:
    """Return the assistant's messages of a run, in their order, with their texts and calls only. A run may have many
    megabytes of results, content parts and reasoning."""
    rows = Message.objects.filter(owner_id=run.owner_id, run=run, role=Message.Role.ASSISTANT)
    return list(rows.only("text", "tool_calls").order_by("seq"))


def from_run(run: Run, prefix: str = "") -> Q:
    """Match a run of the shown branch and the runs after it. `prefix` is the look-up path from other rows to a run. A
    turn that failed or was stopped is followed by one with the same number."""
    at = {f"{prefix}turn": run.turn, f"{prefix}pk__gte": run.pk}
    return Q(**{f"{prefix}turn__gt": run.turn}) | Q(**at)
