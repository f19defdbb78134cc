"""Finds the session that a request to /v1 belongs to, in this order: an id that the client sends; ids that we gave to
its calls; the whole conversation before it, which one query finds by its hash; and else what its turns have in common
with recorded ones, which gateway.runs.candidates looks at before the transaction. Called by gateway.runs.v1 and
gateway.commands, in a transaction; what is returned is locked."""

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from django.db.models import Exists, OuterRef
from django.utils import timezone

from gateway.models import Agent, Run, Session
from gateway.runs import fingerprint
from gateway.runs.by_id import after_run_match, named_match
from gateway.runs.call_ids import runs_called
from gateway.runs.candidates import Finding
from gateway.runs.requested import Rule, SessionMatch, SessionUnknown, V1Request, new_session_match
from gateway.runs.session_rows import OPEN_ENDED, UNFINISHED, latest_run, lock, locked_sessions, standing_runs
from memories.caller import Caller
from memories.statements import Select, given

# How long the same request may be one that its client sends again.
RETRY_WINDOW = timedelta(minutes=15)
IDEMPOTENCY_WINDOW = timedelta(hours=24)
_RECENT = 2
# On the path of every new conversation: the hash covers owner and agent already, so nothing is joined.
_SAME_FIRST_MESSAGE = Select(
    lambda: (
        Run.objects.filter(**given(Run, "owner", "history_hash_before", "user_key"), superseded=False)
        .order_by("-id")
        .values_list("pk", "state", "idempotency_key", "started_at")[:_RECENT]
    )
)


def session_of(
    caller: Caller, agent: Agent, request: V1Request, conversation: fingerprint.Conversation, finding: Finding
) -> Session:
    """Return the session that a `/memory` command belongs to; a new one is not stored yet. In a transaction.

    Before anything else was said that is the latest session that holds commands only, so that asking for help now and
    then does not fill the list of sessions."""
    session = session_match(caller, agent, request, conversation, None, finding).session
    alone = not (request.session_ref or conversation.turns_before or conversation.unanswered_user_key)
    if session._state.adding and alone:
        return (
            _with_commands_only(caller, agent, request, history_hash__startswith=fingerprint.COMMANDS_ONLY) or session
        )
    return session


def session_match(
    caller: Caller,
    agent: Agent,
    request: V1Request,
    conversation: fingerprint.Conversation,
    run_id: UUID | None,
    finding: Finding | None,
) -> SessionMatch:
    """Return the session of a request, and why it is that one. `run_id`: the run whose calls the request ends with the
    results of. Raises SessionUnknown where none is known by its hash: then `find_session` takes a closer look, and this
    is called again with what it found."""
    if request.after:
        by_calls = _by_call_ids(caller, agent, conversation, run_id)
        return by_calls or after_run_match(caller, agent, request, conversation, request.after)
    if request.session_ref:
        return named_match(caller, agent, request, conversation, finding)
    found = _by_call_ids(caller, agent, conversation, run_id)
    if found is None and conversation.turns_before == 0:
        found = _after_unanswered(caller, agent, request, conversation) or _retried(
            caller, agent, request, conversation
        )
        found = found or _after_command(caller, agent, request)
    elif found is None:
        found = _same_history(caller, agent, request, conversation) or _same_turn(caller, agent, request, conversation)
        found = found or _after_unanswered(caller, agent, request, conversation)
    if found is None and (conversation.turns_before or conversation.unanswered_user_key):
        if finding is None:
            raise SessionUnknown
        found = _as_found(caller, agent, request, finding)
    return found or new_session_match(caller, agent, request)


def goes_on_from(run: Run, match: SessionMatch, conversation: fingerprint.Conversation) -> bool:
    """Return True if a run that waits for tool results stands in the conversation that a request brings, which goes on
    without them; else its turn is replaced. Where a request holds one message and names its session, the run stands."""
    if match.regenerates is not None and run.turn >= match.regenerates.turn:
        return False
    if run.turn <= match.through:
        return True
    alone = not (conversation.turns_before or conversation.unanswered_user_key)
    return alone or run.user_key in {conversation.unanswered_user_key, conversation.previous_user_key}


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
    same_turn = standing_runs(caller, agent).filter(
        session=session, history_hash_before=conversation.history_hash_before, user_key=conversation.user_key
    )
    return SessionMatch(session=lock(session), rule=Rule.CALL_IDS, regenerates=same_turn.first())


def _retried(
    caller: Caller, agent: Agent, request: V1Request, conversation: fingerprint.Conversation
) -> SessionMatch | None:
    """Find the session of a first message that is the same request again; None for a new session."""
    earlier = _SAME_FIRST_MESSAGE.rows(
        owner=caller.owner_id, history_hash_before=conversation.history_hash_before, user_key=conversation.user_key
    )
    now = timezone.now()
    for pk, state, key, started in earlier:
        same_key = request.idempotency_key and key == request.idempotency_key and started > now - IDEMPOTENCY_WINDOW
        retry = request.is_retry and started > now - RETRY_WINDOW
        if same_key or retry or state in UNFINISHED:
            run = standing_runs(caller, agent).filter(pk=pk).first()
            if run is None:  # its session was deleted
                continue
            session = lock(run.session)
            alive = session.state == Session.State.ACTIVE and session.temporary == request.temporary
            if alive and session.turns <= run.turn:
                return SessionMatch(session=session, rule=Rule.RETRY, regenerates=run)
    return None


def _after_command(caller: Caller, agent: Agent, request: V1Request) -> SessionMatch | None:
    """Find the session in which the command at the beginning of the conversation was answered."""
    if request.after_command is None:
        return None
    key = fingerprint.commands_key(caller.owner_id, agent.name, *request.after_command)
    session = _with_commands_only(caller, agent, request, history_hash=key)
    return SessionMatch(session=session, rule=Rule.AFTER_COMMAND) if session else None


def _with_commands_only(caller: Caller, agent: Agent, request: V1Request, **filters: str) -> Session | None:
    rows = locked_sessions(caller).filter(
        agent=agent, state=Session.State.ACTIVE, temporary=request.temporary, **filters
    )
    untouched = rows.filter(~Exists(Run.objects.filter(session=OuterRef("pk"))))
    return untouched.order_by("-last_active_at").first()


def _same_history(
    caller: Caller, agent: Agent, request: V1Request, conversation: fingerprint.Conversation
) -> SessionMatch | None:
    """Find the session whose transcript is all that was said before. Two with the same words are neither's: the request
    goes on in a new one."""
    active = locked_sessions(caller).filter(agent=agent, state=Session.State.ACTIVE, temporary=request.temporary)
    rows = active.filter(history_hash=conversation.history_hash_before).order_by("-last_active_at")
    found: Sequence[Session] = _unnamed(list(rows[:_RECENT]))
    common = {"turns": conversation.turns_before}
    if len(found) > 1:
        return new_session_match(caller, agent, request, rule=Rule.SEVERAL, parent=found[0].pk, common=common)
    if not found:
        return None
    latest = latest_run(found[0])
    # The next message is being answered, or failed: the same words again are that turn again.
    again = latest if latest and conversation.is_of(latest) else None
    rule = Rule.SAME_TURN if again else Rule.SAME_HISTORY
    return SessionMatch(session=found[0], rule=rule, regenerates=again, through=found[0].turns, common=common)


def _unnamed(found: Sequence[Session]) -> Sequence[Session]:
    """Return, of several sessions, the one without an id of its client, if it is one: such a request would name it."""
    unnamed = [session for session in found if session.external_id is None]
    return unnamed if len(unnamed) == 1 else found


def _same_turn(
    caller: Caller, agent: Agent, request: V1Request, conversation: fingerprint.Conversation
) -> SessionMatch | None:
    """Find the turn that went on from the same words: it is repeated, or its message was edited, which begins a new
    session. What a client says before its first message (examples, greetings) is no reason to call two requests one."""
    went_on = standing_runs(caller, agent).filter(
        history_hash_before=conversation.history_hash_before,
        session__state=Session.State.ACTIVE,
        session__temporary=request.temporary,
    )
    runs = list(went_on[:_RECENT])
    same = list(went_on.filter(user_key=conversation.user_key)[:_RECENT]) if runs else []
    certain = [run for run in same if _holds_our_answers(run) or run.state in UNFINISHED or _is_repeated(request, run)]
    common = {"turns": conversation.turns_before}
    if len({run.session_id for run in certain}) == 1:
        run = certain[0]
        return SessionMatch(session=lock(run.session), rule=Rule.SAME_TURN, regenerates=run, common=common)
    if not runs:
        return None
    rule = Rule.NEW
    if any(map(_holds_our_answers, runs)):
        rule = Rule.SEVERAL if same else Rule.EDITED
    return new_session_match(caller, agent, request, rule=rule, parent=runs[0].session_id, common=common)


def _holds_our_answers(run: Run) -> bool:
    """Return True if the conversation before a run holds answers of ours, and not only what its client began with."""
    rule = run.trace.get("session", {}).get("rule")
    return run.turn > 1 or rule in {Rule.EDITED, Rule.SEVERAL, Rule.BUSY, Rule.PREVIOUS_RESPONSE}


def _is_repeated(request: V1Request, run: Run) -> bool:
    same_key = bool(request.idempotency_key) and run.idempotency_key == request.idempotency_key
    return same_key or (request.is_retry and run.started_at > timezone.now() - RETRY_WINDOW)


def _after_unanswered(
    caller: Caller, agent: Agent, request: V1Request, conversation: fingerprint.Conversation
) -> SessionMatch | None:
    """Find a run that was never answered: the client then sends two user messages in a row. Where the request holds
    calls of ours, these say whose it is."""
    if not conversation.unanswered_user_key or any(map(runs_called, request.messages)):
        return None
    runs = standing_runs(caller, agent).filter(
        state__in=OPEN_ENDED,
        session__state=Session.State.ACTIVE,
        session__temporary=request.temporary,
        history_hash_before=conversation.history_hash_before,
        user_key=conversation.unanswered_user_key,
    )
    found = [run for run in runs[:_RECENT] if run.session.turns <= run.turn]
    if len({run.session_id for run in found}) != 1:
        return None
    return SessionMatch(session=lock(found[0].session), rule=Rule.UNANSWERED, through=found[0].turn)


def _as_found(caller: Caller, agent: Agent, request: V1Request, finding: Finding) -> SessionMatch | None:
    """Return what was found before the transaction, if it still stands. Raises SessionUnknown if it does not."""
    verdict = finding.verdict
    if verdict.session_id is None:
        if verdict.parent is None:
            return None
        rule = Rule.SEVERAL if verdict.rivals else Rule.EDITED
        return new_session_match(caller, agent, request, rule=rule, parent=verdict.parent, common=verdict.common)
    active = locked_sessions(caller).filter(agent=agent, state=Session.State.ACTIVE, temporary=request.temporary)
    session = active.filter(pk=verdict.session_id).first()
    if session is None or session.message_seq != finding.message_seq:
        raise SessionUnknown
    again = standing_runs(caller, agent).filter(session=session, pk=verdict.again).first() if verdict.again else None
    rule = Rule.SUMMARY if verdict.by_summary else Rule.ALIKE
    return SessionMatch(session=session, rule=rule, regenerates=again, through=verdict.through, common=verdict.common)
