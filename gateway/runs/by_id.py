"""Finds sessions that a client names: by our id, by an id of its own, or by a previous response."""

from functools import partial
from uuid import UUID

from django.db.models import QuerySet

from gateway.messages import last_user_index, text_of
from gateway.models import Message, Run, Session
from gateway.runs.comparing import comparable_message, similarity
from gateway.runs.fingerprint import ResentConversation
from gateway.runs.hidden import hidden_predecessors
from gateway.runs.matching import Continuation
from gateway.runs.requested import ComparisonNeeded, MatchedSession, Rule, SessionLookup, V1Request
from gateway.runs.session_rows import (
    UNFINISHED,
    latest_run,
    locked_sessions,
    named,
    shown_runs,
    with_agent,
)
from gateway.services import require_active
from memories.caller import Caller
from memories.errors import InvalidRequest, NotFound

MAX_EXTERNAL_ID = 190  # an agent's name may be appended in a column of 255


def named_match(lookup: SessionLookup, continuation: Continuation | None) -> MatchedSession:
    """Return the session that a client names by our id or by its own. An unknown id creates a session with that name.

    Raises InvalidRequest, NotFound, SessionEnded, and ComparisonNeeded if only a comparison of the messages can tell
    which turn is meant."""
    agent, request = lookup.agent, lookup.request
    caller, ref = request.caller, request.session_ref
    agent_ref = with_agent(ref, agent.name)
    found = _by_name(caller, ref, agent_ref) if request.shared_ref else _by_name(caller, ref)
    session = found.get(ref)
    if session and session.agent_id != agent.pk and request.shared_ref:
        ref, session = agent_ref, found.get(agent_ref)
    if session is None:
        return _new_named_session(lookup, continuation, ref)
    _require_usable(caller, session)
    if session.agent_id != agent.pk:
        raise InvalidRequest(f"This session belongs to {session.agent.name}, not to {agent.name}.", param="model")
    return _match_in_session(session, request, continuation)


def _new_named_session(lookup: SessionLookup, continuation: Continuation | None, ref: str) -> MatchedSession:
    """Return a new session with the client's id. If the request begins with turns of another session, the new one is a
    fork of that. Raises ComparisonNeeded if that has not been compared yet."""
    if not lookup.conversation.turns_before:
        return lookup.new_session(Rule.ID, external_id=ref)
    if continuation is None:
        raise ComparisonNeeded
    return lookup.new_session(Rule.ID, external_id=ref, parent_id=continuation.session_id, common=continuation.common)


def after_run_match(lookup: SessionLookup, after: UUID) -> MatchedSession:
    """Return the session of the run that a request names as its predecessor. If the session has newer turns, the same
    message repeats its turn, and another one starts a new session that remembers its parent."""
    named = locked_sessions(lookup.owner_id).filter(runs=after).first()
    if named is None:
        raise NotFound("The conversation of this response has been deleted.")
    require_active(named)
    if named.agent_id != lookup.agent.pk:
        return lookup.new_session(parent_id=named.pk)
    later = lookup.runs(session=named, pk__gt=after)
    if again := later.filter(**lookup.conversation.same_turn()).first():
        return MatchedSession(session=named, rule=Rule.SAME_TURN, regenerates=again)
    superseded = Run.objects.filter(owner_id=lookup.owner_id, pk=after, superseded=True).exists()
    if superseded or later.exclude(state__in=UNFINISHED).exists():
        return lookup.new_session(Rule.EDITED, parent_id=named.pk)
    return MatchedSession(session=named, rule=Rule.PREVIOUS_RESPONSE)


def session_named(caller: Caller, ref: str) -> Session | None:
    """Return the session, locked, that a client names by our id or by its own, with any agent; None for an unknown id.
    Raises InvalidRequest for an id that is too long, NotFound, SessionEnded."""
    session = _by_name(caller, ref).get(ref)
    if session is not None:
        _require_usable(caller, session)
    return session


def _by_name(caller: Caller, ref: str, *more: str) -> dict[str, Session]:
    """Return the sessions with these names, locked. Our own id is a name, too; an external id takes precedence."""
    if len(ref) > MAX_EXTERNAL_ID:
        raise InvalidRequest(f"A session id has at most {MAX_EXTERNAL_ID} characters.", param="session_id")
    rows = locked_sessions(caller.owner_id).filter(named(ref, *more))
    return {
        session.external_id if session.external_id in more else ref: session
        for session in sorted(rows, key=lambda session: session.external_id == ref)
    }


def _require_usable(caller: Caller, session: Session) -> None:
    caller.limits.require_agent(session.agent.name, "There is no such session. It may have been deleted.")
    require_active(session)


def was_edited(latest: Run | None, conversation: ResentConversation) -> bool:
    """Return True if a request has another message in place of that of a session's latest run, whose answer was empty
    and thus did not change the session's hash."""
    if latest is None or latest.state != Run.State.COMPLETED or conversation.unanswered_user_key:
        return False
    same_history = latest.history_hash_before == conversation.history_hash_before
    return same_history and latest.user_key != conversation.user_key


def _replaced_first(request: V1Request, latest: Run | None, alike: "QuerySet[Run]") -> Run | None:
    """Return the first run of a session if a message without any before it replaces that, or None if it is the next
    one. It does for a client that has resent the conversation, or if its words are nearly those of the only turn.
    `alike` are the session's runs with as little before them."""
    if latest is None or not (request.is_whole and request.conversation.is_first):
        return None
    if (first := alike.order_by("-id").first()) is None:
        return None
    if latest.history_hash_before != first.history_hash_before:
        return first
    newest = request.messages[last_user_index(request.messages)]
    said = Message.objects.filter(owner_id=first.owner_id, run=first, role=Message.Role.USER).order_by("-seq")
    texts = said.values_list("text", flat=True).first() or "", text_of(newest.get("content"))
    return first if similarity(*(comparable_message("user", text) for text in texts)) else None


def _match_in_session(session: Session, request: V1Request, continuation: Continuation | None) -> MatchedSession:
    """Match a request within the session that it names: it repeats or edits a turn, or continues the session."""
    match, conversation = partial(MatchedSession, session=session, rule=Rule.ID), request.conversation
    latest, runs = latest_run(session), shown_runs(session)
    if latest and (conversation.matches(latest) or (conversation.turns_before and was_edited(latest, conversation))):
        return match(regenerates=latest)
    if latest and latest.state != Run.State.COMPLETED:
        earlier = runs.filter(state=Run.State.COMPLETED, history_hash_after=latest.history_hash_before)
        answered = earlier.order_by("-id").first()
        if answered and conversation.matches(answered):  # the client has dropped the message that was not answered
            return match(regenerates=answered)
    is_next = conversation.turns_before == 0 or session.history_hash == conversation.history_hash_before
    edited = runs.filter(history_hash_before=conversation.history_hash_before, state=Run.State.COMPLETED)
    if is_next or latest is None:
        # Clients that name a session may send only their new message, so equal beginnings prove nothing.
        return match(regenerates=_replaced_first(request, latest, edited))
    if run := edited.order_by("-id").first():
        return match(regenerates=run)
    every = Run.objects.filter(owner_id=session.owner_id, session=session)
    if before := hidden_predecessors(every, conversation):
        return match(hidden=before[0])
    if continuation is None or (continuation.following and continuation.message_seq != session.message_seq):
        raise ComparisonNeeded
    if continuation.hidden and (run := every.filter(pk=continuation.hidden, superseded=True).first()):
        return match(hidden=run)
    again = runs.filter(pk=continuation.following).first() if continuation.following else None
    return match(regenerates=again, through=continuation.through, common=continuation.common)
