"""Which session does a request to /v1 belong to? Explicit ids win, then the conversation's own words (gateway.identity).
One transaction: the session is found or made, and the run is opened in it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction

from gateway import identity
from gateway.client_tools import open_continued, waiting_run_id
from gateway.context import TurnContext
from gateway.errors import SessionBusy
from gateway.models import Agent, Run, Session
from gateway.runs import agent_find, open_in, release_expired
from gateway.services import require_active
from memories.caller import Caller
from memories.errors import InvalidRequest
from memories.ids import parse_uuid

MAX_EXTERNAL_ID = 255
_RECENT = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class V1Request:
    """A request for a turn, its messages split into leading system text and the conversation."""

    agent: str
    messages: tuple[dict[str, Any], ...]
    client_system: str
    session_ref: str = ""
    temporary: bool = False
    idempotency_key: str = ""
    is_retry: bool = False
    request_id: str = ""


@dataclass(frozen=True, slots=True)
class _Place:
    session: Session
    regenerates: Run | None = None


def open_v1(caller: Caller, request: V1Request, *, fork_if_busy: bool = False) -> TurnContext:
    """Open a run for a request that carries its whole context.

    Raises ModelNotFound, Unauthorized, InvalidRequest, SessionEnded; SessionBusy while another run of the session is
    open, unless `fork_if_busy`: then the conversation goes on in a new session that remembers its parent."""
    try:
        return _open(caller, request, fork_if_busy=fork_if_busy)
    except IntegrityError:
        # Another request made the session of that name, or opened a run in it, between our look and our insert.
        return _open(caller, request, fork_if_busy=fork_if_busy)


@transaction.atomic
def _open(caller: Caller, request: V1Request, *, fork_if_busy: bool) -> TurnContext:
    if waiting := waiting_run_id(request.messages):
        taken_up = open_continued(caller, waiting, messages=request.messages, client_system=request.client_system)
        if taken_up is not None:
            return taken_up
    agent = agent_find(caller, request.agent)
    conversation = identity.read_conversation(caller.owner_id, agent.name, request.messages)
    place = _find(caller, agent, request, conversation)
    if place is not None:
        try:
            release_expired(place.session)
        except SessionBusy:
            if not fork_if_busy:
                raise
            place = _Place(_make(caller, agent, request, parent=place.session.pk))
    place = place or _Place(_make(caller, agent, request, external_id=request.session_ref or None))
    return open_in(
        caller,
        place.session,
        messages=request.messages,
        client_system=request.client_system,
        conversation=conversation,
        regenerates=place.regenerates,
        request_id=request.request_id,
        idempotency_key=request.idempotency_key,
    )


def _find(caller: Caller, agent: Agent, request: V1Request, conversation: identity.Conversation) -> _Place | None:
    if request.session_ref:
        return _named(caller, agent, request, conversation)
    if conversation.turns_before == 0:
        return _retried(caller, agent, request, conversation)
    return _continued(caller, agent, request, conversation)


def _named(caller: Caller, agent: Agent, request: V1Request, conversation: identity.Conversation) -> _Place | None:
    """The session a client names by our id or by its own. An id not known yet makes a session with that name."""
    if len(request.session_ref) > MAX_EXTERNAL_ID:
        raise InvalidRequest(f"A session id has at most {MAX_EXTERNAL_ID} characters.", param="session_id")
    rows = _sessions(caller)
    session = rows.filter(external_id=request.session_ref).first()
    if session is None and (own := parse_uuid(request.session_ref)):
        session = rows.filter(pk=own).first()
    if session is None:
        return None
    require_active(session)
    if session.agent_id != agent.pk:
        raise InvalidRequest(f"This session talks to {session.agent.name}, not to {agent.name}.", param="model")
    latest = _latest_run(session)
    same = latest and latest.chain_before == conversation.chain_before and latest.user_key == conversation.user_key
    return _Place(session, latest if same else None)


def _retried(caller: Caller, agent: Agent, request: V1Request, conversation: identity.Conversation) -> _Place | None:
    """A first message is a new session, unless it is the same request again."""
    # On the path of every new conversation: the chain names owner and agent already, so nothing is joined.
    earlier = Run.objects.filter(
        owner_id=caller.owner_id,
        chain_before=conversation.chain_before,
        user_key=conversation.user_key,
        superseded=False,
    ).order_by("-id")
    for pk, state, key in earlier.values_list("pk", "state", "idempotency_key")[:_RECENT]:
        same_key = request.idempotency_key and key == request.idempotency_key
        not_completed = state in {Run.State.FAILED, Run.State.STOPPED}
        if same_key or request.is_retry or not_completed:
            run = _runs(caller, agent).get(pk=pk)
            session = _lock(run.session)
            alive = session.state == Session.State.ACTIVE and session.temporary == request.temporary
            if alive and session.turns <= run.turn:
                return _Place(session, run)
    return None


def _continued(caller: Caller, agent: Agent, request: V1Request, conversation: identity.Conversation) -> _Place | None:
    active = _sessions(caller).filter(agent=agent, state=Session.State.ACTIVE, temporary=request.temporary)
    session = active.filter(chain=conversation.chain_before).order_by("-last_active_at").first()
    if session is not None:
        latest = _latest_run(session)
        # The next message is being answered, or failed: the same words again are that turn again.
        again = latest and latest.chain_before == conversation.chain_before and latest.user_key == conversation.user_key
        return _Place(session, latest if again else None)
    if aborted := _after_aborted(caller, agent, conversation):
        return aborted
    went_on = _runs(caller, agent).filter(chain_before=conversation.chain_before, session__state=Session.State.ACTIVE)
    if run := went_on.first():
        if run.user_key == conversation.user_key:
            return _Place(_lock(run.session), run)
        return _Place(_make(caller, agent, request, parent=run.session_id))
    recent = list(active.filter(last_pair=conversation.last_pair).order_by("-last_active_at")[:_RECENT])
    return _Place(recent[0]) if len(recent) == 1 else None


def _after_aborted(caller: Caller, agent: Agent, conversation: identity.Conversation) -> _Place | None:
    """An answer that was cut off: client and gateway may hold different lengths of it."""
    runs = _runs(caller, agent).filter(
        chain_before=conversation.chain_earlier,
        user_key=conversation.previous_user_key,
        state=Run.State.STOPPED,
        session__state=Session.State.ACTIVE,
    )
    for run in runs[:_RECENT]:
        ours, theirs = identity.fold(run.text), conversation.previous_answer
        if (ours.startswith(theirs) or theirs.startswith(ours)) and run.session.turns <= run.turn:
            return _Place(_lock(run.session))
    return None


def _runs(caller: Caller, agent: Agent) -> Any:
    rows = Run.objects.filter(owner_id=caller.owner_id, superseded=False, session__agent=agent)
    return rows.select_related("session", "session__agent").order_by("-id")


def _latest_run(session: Session) -> Run | None:
    return Run.objects.filter(owner_id=session.owner_id, session=session, superseded=False).order_by("-id").first()


def _sessions(caller: Caller) -> Any:
    return Session.objects.select_for_update(of=("self",)).select_related("agent").filter(owner_id=caller.owner_id)


def _lock(session: Session) -> Session:
    return Session.objects.select_for_update(of=("self",)).select_related("agent").get(pk=session.pk)


def _make(
    caller: Caller,
    agent: Agent,
    request: V1Request,
    *,
    parent: UUID | None = None,
    external_id: str | None = None,
) -> Session:
    """A new session, inserted with its final values when its first run is open."""
    return Session(
        owner_id=caller.owner_id,
        agent=agent,
        temporary=request.temporary,
        external_id=external_id,
        parent_id=parent,
    )


def split_system(messages: Sequence[dict[str, Any]]) -> tuple[str, tuple[dict[str, Any], ...]]:
    """The client's leading system and developer messages as one text, and the rest of the conversation."""
    leading = 0
    while leading < len(messages) and messages[leading].get("role") in {"system", "developer"}:
        leading += 1
    texts = [identity.text_of(message.get("content")) for message in messages[:leading]]
    return "\n\n".join(text for text in texts if text), tuple(messages[leading:])
