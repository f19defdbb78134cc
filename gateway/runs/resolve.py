"""Finds the session that a request to /v1 belongs to: by an explicit id, else by the conversation's own text."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from gateway.models import Agent, Run, Session
from gateway.runs import fingerprint
from gateway.runs.context import SystemContent
from gateway.services import require_active
from memories.caller import Caller
from memories.errors import InvalidRequest, NotFound
from memories.ids import parse_uuid

MAX_EXTERNAL_ID = 190  # an agent's name may be appended in a column of 255
# How long the same request may be one that its client sends again.
RETRY_WINDOW = timedelta(minutes=15)
IDEMPOTENCY_WINDOW = timedelta(hours=24)
# A client that cuts off older messages is recognised by the latest pair alone; not for ever, since pairs repeat.
CUT_OFF_WINDOW = timedelta(days=30)
_RECENT = 2
_UNFINISHED = (Run.State.STOPPED, Run.State.FAILED)
# What a person may go on from without having seen its end. A run that waits for tool results is no reason to take equal
# first words for the same request again: agents are often started several times with the same order.
_OPEN_ENDED = (*_UNFINISHED, Run.State.AWAITING_CLIENT_TOOLS)


@dataclass(frozen=True, slots=True, kw_only=True)
class V1Request:
    """A request for a turn, its messages split into leading system text and the conversation."""

    agent: str
    messages: tuple[dict[str, Any], ...]
    client_system: SystemContent
    session_ref: str = ""
    # The id is a chat's of a client that talks to several agents in one chat: each has a session of its own there.
    shared_ref: bool = False
    temporary: bool = False
    idempotency_key: str = ""
    is_retry: bool = False
    request_id: str = ""
    # The last `/memory` command that the request resends, with its answer; among the messages there is none.
    after_command: tuple[str, str] | None = None
    # The run whose stored transcript the messages begin with, and what is to be kept of this request with its run: both
    # of /v1/responses.
    after: UUID | None = None
    response: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class SessionMatch:
    """The session (not stored yet, if it is new), and the run whose turn is asked for again."""

    session: Session
    regenerates: Run | None = None


def session_of(caller: Caller, agent: Agent, request: V1Request, conversation: fingerprint.Conversation) -> Session:
    """Return the session that a `/memory` command belongs to; a new one is not stored yet. In a transaction.

    Before anything else was said that is the latest session that holds commands only, so that asking for help now and
    then does not fill the list of sessions."""
    session = session_match(caller, agent, request, conversation, None).session
    alone = not (request.session_ref or conversation.turns_before or conversation.unanswered_user_key)
    if session._state.adding and alone:
        return (
            _with_commands_only(caller, agent, request, history_hash__startswith=fingerprint.COMMANDS_ONLY) or session
        )
    return session


def session_match(
    caller: Caller, agent: Agent, request: V1Request, conversation: fingerprint.Conversation, run_id: UUID | None
) -> SessionMatch:
    if request.after:
        by_calls = _by_call_ids(caller, agent, conversation, run_id)
        return by_calls or _after_run(caller, agent, request, conversation, request.after)
    if request.session_ref:
        return _named(caller, agent, request, conversation)
    found = _by_call_ids(caller, agent, conversation, run_id) or _after_unanswered(caller, agent, request, conversation)
    if found is None and conversation.turns_before == 0:
        found = _retried(caller, agent, request, conversation) or _after_command(caller, agent, request)
    elif found is None:
        found = _continued(caller, agent, request, conversation)
    return found or new_session_match(caller, agent, request)


def goes_on_from(run: Run, match: SessionMatch, conversation: fingerprint.Conversation) -> bool:
    """Return True if a run that waits for tool results stands in the conversation that a request brings, which goes on
    without them; else its turn is replaced. Where a request holds one message and names its session, the run stands."""
    if match.regenerates is not None and run.turn >= match.regenerates.turn:
        return False
    alone = not (conversation.turns_before or conversation.unanswered_user_key)
    return alone or run.user_key in {conversation.unanswered_user_key, conversation.previous_user_key}


def _named(caller: Caller, agent: Agent, request: V1Request, conversation: fingerprint.Conversation) -> SessionMatch:
    """Return the session a client names by our id or by its own. An id not known yet makes a session with that name."""
    ref = request.session_ref
    of_agent = f"{ref} {agent.name}"
    found = _by_name(caller, ref, of_agent) if request.shared_ref else _by_name(caller, ref)
    session = found.get(ref)
    if session and session.agent_id != agent.pk and request.shared_ref:
        ref, session = of_agent, found.get(of_agent)
    if session is None:
        return new_session_match(caller, agent, request, external_id=ref)
    _require_usable(caller, session)
    if session.agent_id != agent.pk:
        raise InvalidRequest(f"This session talks to {session.agent.name}, not to {agent.name}.", param="model")
    return SessionMatch(session, _repeated_run(session, conversation))


def _after_run(
    caller: Caller, agent: Agent, request: V1Request, conversation: fingerprint.Conversation, after: UUID
) -> SessionMatch:
    """Return the session of a run that a request names as the one it goes on from. Where the session went on since, the
    same words are that turn again, and others go on in a new session that remembers its parent."""
    named = _sessions(caller).filter(runs=after).first()
    if named is None:
        raise NotFound("The conversation of this response has been deleted.")
    require_active(named)
    if named.agent_id != agent.pk:
        return new_session_match(caller, agent, request, parent=named.pk)
    later = _runs(caller, agent).filter(session=named, pk__gt=after)
    again = later.filter(history_hash_before=conversation.history_hash_before, user_key=conversation.user_key).first()
    if again is not None:
        return SessionMatch(named, again)
    superseded = Run.objects.filter(owner_id=caller.owner_id, pk=after, superseded=True).exists()
    if superseded or later.exclude(state__in=_UNFINISHED).exists():
        return new_session_match(caller, agent, request, parent=named.pk)
    return SessionMatch(named)


def session_named(caller: Caller, ref: str) -> Session | None:
    """Return the session, locked, that a client names by our id or by its own, whoever its agent is; None for an id not
    known yet. Raises InvalidRequest for an id that is too long, NotFound, SessionEnded."""
    session = _by_name(caller, ref).get(ref)
    if session is not None:
        _require_usable(caller, session)
    return session


def _by_name(caller: Caller, ref: str, *more: str) -> dict[str, Session]:
    """Return the sessions with these names, locked. Our own id is a name, too; the client's own comes first."""
    if len(ref) > MAX_EXTERNAL_ID:
        raise InvalidRequest(f"A session id has at most {MAX_EXTERNAL_ID} characters.", param="session_id")
    names = {ref, *more}
    rows = _sessions(caller).filter(Q(external_id__in=names) | Q(pk=parse_uuid(ref)))
    return {
        session.external_id if session.external_id in names else ref: session
        for session in sorted(rows, key=lambda session: session.external_id == ref)
    }


def _require_usable(caller: Caller, session: Session) -> None:
    caller.limits.require_agent(session.agent.name, "There is no such session. It may have been deleted.")
    require_active(session)


def _repeated_run(session: Session, conversation: fingerprint.Conversation) -> Run | None:
    """In a session named by id: the run whose turn this request repeats or edits."""
    latest = _latest_run(session)
    if (
        latest
        and latest.history_hash_before == conversation.history_hash_before
        and latest.user_key == conversation.user_key
    ):
        return latest
    if conversation.turns_before == 0 or session.history_hash == conversation.history_hash_before:
        # Clients that name a session may send only their new message: equal beginnings say nothing then.
        return None
    runs = Run.objects.filter(owner_id=session.owner_id, session=session, superseded=False)
    return (
        runs.filter(history_hash_before=conversation.history_hash_before, state=Run.State.COMPLETED)
        .order_by("-id")
        .first()
    )


def _by_call_ids(
    caller: Caller, agent: Agent, conversation: fingerprint.Conversation, run_id: UUID | None
) -> SessionMatch | None:
    """Find the session of tool results whose run no longer waits: the request came twice, or the run was given up."""
    if run_id is None:
        return None
    named = Session.objects.filter(owner_id=caller.owner_id, agent=agent, state=Session.State.ACTIVE, runs=run_id)
    session = named.first()
    if session is None:
        return None
    same_turn = _runs(caller, agent).filter(
        session=session, history_hash_before=conversation.history_hash_before, user_key=conversation.user_key
    )
    return SessionMatch(_lock(session), same_turn.first())


def _retried(
    caller: Caller, agent: Agent, request: V1Request, conversation: fingerprint.Conversation
) -> SessionMatch | None:
    """Find the session of a first message that is the same request again; None for a new session."""
    # On the path of every new conversation: the hash covers owner and agent already, so nothing is joined.
    earlier = Run.objects.filter(
        owner_id=caller.owner_id,
        history_hash_before=conversation.history_hash_before,
        user_key=conversation.user_key,
        superseded=False,
    ).order_by("-id")
    now = timezone.now()
    for pk, state, key, started in earlier.values_list("pk", "state", "idempotency_key", "started_at")[:_RECENT]:
        same_key = request.idempotency_key and key == request.idempotency_key and started > now - IDEMPOTENCY_WINDOW
        retry = request.is_retry and started > now - RETRY_WINDOW
        if same_key or retry or state in _UNFINISHED:
            run = _runs(caller, agent).get(pk=pk)
            session = _lock(run.session)
            alive = session.state == Session.State.ACTIVE and session.temporary == request.temporary
            if alive and session.turns <= run.turn:
                return SessionMatch(session, run)
    return None


def _after_command(caller: Caller, agent: Agent, request: V1Request) -> SessionMatch | None:
    """Find the session in which the command at the beginning of the conversation was answered."""
    if request.after_command is None:
        return None
    key = fingerprint.commands_key(caller.owner_id, agent.name, *request.after_command)
    session = _with_commands_only(caller, agent, request, history_hash=key)
    return SessionMatch(session) if session else None


def _with_commands_only(caller: Caller, agent: Agent, request: V1Request, **filters: str) -> Session | None:
    rows = _sessions(caller).filter(agent=agent, state=Session.State.ACTIVE, temporary=request.temporary, **filters)
    untouched = rows.filter(~Exists(Run.objects.filter(session=OuterRef("pk"))))
    return untouched.order_by("-last_active_at").first()


def _continued(
    caller: Caller, agent: Agent, request: V1Request, conversation: fingerprint.Conversation
) -> SessionMatch | None:
    active = _sessions(caller).filter(agent=agent, state=Session.State.ACTIVE, temporary=request.temporary)
    session = active.filter(history_hash=conversation.history_hash_before).order_by("-last_active_at").first()
    if session is not None:
        latest = _latest_run(session)
        # The next message is being answered, or failed: the same words again are that turn again.
        again = (
            latest
            and latest.history_hash_before == conversation.history_hash_before
            and latest.user_key == conversation.user_key
        )
        return SessionMatch(session, latest if again else None)
    if aborted := _after_aborted(caller, agent, request, conversation):
        return aborted
    went_on = _runs(caller, agent).filter(
        history_hash_before=conversation.history_hash_before,
        session__state=Session.State.ACTIVE,
        session__temporary=request.temporary,
    )
    if run := went_on.filter(user_key=conversation.user_key).first():
        return SessionMatch(_lock(run.session), run)
    if run := went_on.first():
        return new_session_match(caller, agent, request, parent=run.session_id)
    recent = active.filter(last_pair=conversation.last_pair, last_active_at__gt=timezone.now() - CUT_OFF_WINDOW)
    found = list(recent.order_by("-last_active_at")[:_RECENT])
    return SessionMatch(found[0]) if len(found) == 1 else None


def _after_aborted(
    caller: Caller, agent: Agent, request: V1Request, conversation: fingerprint.Conversation
) -> SessionMatch | None:
    """Find a run whose answer was cut off: client and gateway may have different lengths of it."""
    runs = _open_ended(caller, agent, request).filter(
        history_hash_before=conversation.history_hash_earlier, user_key=conversation.previous_user_key
    )
    for run in runs[:_RECENT]:
        ours, theirs = fingerprint.strip_whitespace(run.text), conversation.previous_answer
        if not ours and run.state == Run.State.AWAITING_CLIENT_TOOLS:
            continue  # it said nothing, so this answer is another's
        if (ours.startswith(theirs) or theirs.startswith(ours)) and run.session.turns <= run.turn:
            return SessionMatch(_lock(run.session))
    return None


def _after_unanswered(
    caller: Caller, agent: Agent, request: V1Request, conversation: fingerprint.Conversation
) -> SessionMatch | None:
    """Find a run that was never answered: the client then sends two user messages in a row."""
    if not conversation.unanswered_user_key:
        return None
    runs = _open_ended(caller, agent, request).filter(
        history_hash_before=conversation.history_hash_before, user_key=conversation.unanswered_user_key
    )
    run = runs.first()
    return SessionMatch(_lock(run.session)) if run and run.session.turns <= run.turn else None


def _open_ended(caller: Caller, agent: Agent, request: V1Request) -> "QuerySet[Run]":
    return _runs(caller, agent).filter(
        state__in=_OPEN_ENDED, session__state=Session.State.ACTIVE, session__temporary=request.temporary
    )


def _runs(caller: Caller, agent: Agent) -> "QuerySet[Run]":
    rows = Run.objects.filter(owner_id=caller.owner_id, superseded=False, session__agent=agent)
    return rows.select_related("session", "session__agent").order_by("-id")


def _latest_run(session: Session) -> Run | None:
    return Run.objects.filter(owner_id=session.owner_id, session=session, superseded=False).order_by("-id").first()


def _sessions(caller: Caller) -> "QuerySet[Session]":
    return Session.objects.select_for_update(of=("self",)).select_related("agent").filter(owner_id=caller.owner_id)


def _lock(session: Session) -> Session:
    return Session.objects.select_for_update(of=("self",)).select_related("agent").get(pk=session.pk)


def new_session_match(
    caller: Caller,
    agent: Agent,
    request: V1Request,
    *,
    parent: UUID | None = None,
    external_id: str | None = None,
) -> SessionMatch:
    """Return a new session, inserted with its final values when its first run is open."""
    return SessionMatch(
        Session(
            owner_id=caller.owner_id,
            agent=agent,
            temporary=request.temporary,
            external_id=external_id,
            parent_id=parent,
        )
    )
