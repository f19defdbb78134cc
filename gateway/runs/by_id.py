"""Sessions that a client names: by our id, by an id of its own, or by the response that it goes on from."""

from uuid import UUID

from django.db.models import Q

from gateway.models import Run, Session
from gateway.runs.fingerprint import Conversation
from gateway.runs.matching import Verdict
from gateway.runs.requested import Asked, Rule, SessionMatch, SessionUnknown
from gateway.runs.session_rows import UNFINISHED, latest_run, locked_sessions, shown_runs
from gateway.services import require_active
from memories.caller import Caller
from memories.errors import InvalidRequest, NotFound
from memories.ids import parse_uuid

MAX_EXTERNAL_ID = 190  # an agent's name may be appended in a column of 255


def named_match(asked: Asked, finding: Verdict | None) -> SessionMatch:
    """Return the session a client names by our id or by its own. An id not known yet makes a session with that name.

    Raises InvalidRequest, NotFound, SessionEnded; SessionUnknown where it takes a look at what was said there to tell
    which turn is meant."""
    caller, agent, request = asked.caller, asked.agent, asked.request
    ref = request.session_ref
    of_agent = f"{ref} {agent.name}"
    found = _by_name(caller, ref, of_agent) if request.shared_ref else _by_name(caller, ref)
    session = found.get(ref)
    if session and session.agent_id != agent.pk and request.shared_ref:
        ref, session = of_agent, found.get(of_agent)
    if session is None:
        return _newly_named(asked, finding, ref)
    _require_usable(caller, session)
    if session.agent_id != agent.pk:
        raise InvalidRequest(f"This session talks to {session.agent.name}, not to {agent.name}.", param="model")
    return _in_named(session, asked.conversation, finding)


def _newly_named(asked: Asked, finding: Verdict | None, ref: str) -> SessionMatch:
    """Return a new session with the id that a client sends. One that begins with turns of another is a fork of that.
    Raises SessionUnknown where it takes a look to tell."""
    if not asked.conversation.turns_before:
        return asked.new_session(Rule.ID, external_id=ref)
    if finding is None:
        raise SessionUnknown
    parent = finding.session_id or finding.parent
    return asked.new_session(Rule.ID, external_id=ref, parent=parent, common=finding.common)


def after_run_match(asked: Asked, after: UUID) -> SessionMatch:
    """Return the session of a run that a request names as the one it goes on from. Where the session went on since, the
    same words are that turn again, and others go on in a new session that remembers its parent."""
    named = locked_sessions(asked.caller).filter(runs=after).first()
    if named is None:
        raise NotFound("The conversation of this response has been deleted.")
    require_active(named)
    if named.agent_id != asked.agent.pk:
        return asked.new_session(parent=named.pk)
    later = asked.runs(session=named, pk__gt=after)
    if again := later.filter(**asked.same_turn()).first():
        return SessionMatch(session=named, rule=Rule.SAME_TURN, regenerates=again)
    superseded = Run.objects.filter(owner_id=asked.caller.owner_id, pk=after, superseded=True).exists()
    if superseded or later.exclude(state__in=UNFINISHED).exists():
        return asked.new_session(Rule.EDITED, parent=named.pk)
    return SessionMatch(session=named, rule=Rule.PREVIOUS_RESPONSE)


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
    names, own_id = {ref, *more}, parse_uuid(ref)
    rows = locked_sessions(caller).filter(Q(external_id__in=names) | Q(pk__in=[own_id] if own_id else []))
    return {
        session.external_id if session.external_id in names else ref: session
        for session in sorted(rows, key=lambda session: session.external_id == ref)
    }


def _require_usable(caller: Caller, session: Session) -> None:
    caller.limits.require_agent(session.agent.name, "There is no such session. It may have been deleted.")
    require_active(session)


def _in_named(session: Session, conversation: Conversation, finding: Verdict | None) -> SessionMatch:
    """Return whether a request repeats or edits a turn of the session that it names, or goes on there."""
    latest = latest_run(session)
    if latest and conversation.is_of(latest):
        return SessionMatch(session=session, rule=Rule.ID, regenerates=latest)
    if conversation.turns_before == 0 or session.history_hash == conversation.history_hash_before:
        # Clients that name a session may send only their new message: equal beginnings say nothing then.
        return SessionMatch(session=session, rule=Rule.ID)
    runs = shown_runs(session)
    edited = runs.filter(history_hash_before=conversation.history_hash_before, state=Run.State.COMPLETED)
    if run := edited.order_by("-id").first():
        return SessionMatch(session=session, rule=Rule.ID, regenerates=run)
    if latest is None:
        return SessionMatch(session=session, rule=Rule.ID)
    if finding is None or (finding.following and finding.message_seq != session.message_seq):
        raise SessionUnknown
    again = runs.filter(pk=finding.following).first() if finding.following else None
    return SessionMatch(
        session=session, rule=Rule.ID, regenerates=again, through=finding.through, common=finding.common
    )
