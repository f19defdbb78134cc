"""Finds the session that a request to /v1 belongs to: by an id that the client sends, by our ids of its tool calls, by
the hash of the whole conversation before it (one query), or by comparing its messages with recorded turns, which
gateway.runs.candidates does before the transaction. Called by gateway.runs.v1 and gateway.commands in a transaction;
the returned session is locked."""

from uuid import UUID

from django.db.models import Exists, OuterRef

from gateway.models import Run, Session
from gateway.runs import fingerprint
from gateway.runs.by_id import after_run_match, named_match, was_edited
from gateway.runs.candidates import sessions_called
from gateway.runs.hidden import hidden_predecessors, hidden_runs, hidden_version
from gateway.runs.matching import Continuation
from gateway.runs.repeated import (
    RECENT,
    after_unanswered,
    contains_our_answers,
    is_same_turn,
    resent_with_answer,
    retried,
)
from gateway.runs.requested import ComparisonNeeded, MatchedSession, Rule, SessionLookup
from gateway.runs.session_rows import (
    idempotency_lock,
    latest_run,
    lock,
    locked_sessions,
)
from gateway.runs.summaries import may_contain_summary
from memories.database.statements import Select, given

# On the path of every further turn of a client that resends the conversation.
_SAME_HISTORY = Select(
    lambda: (
        Session.objects.select_for_update(no_key=True)
        .filter(**given(Session, "owner", "agent", "temporary", "history_hash"), state=Session.State.ACTIVE)
        .order_by("-last_active_at")[:RECENT]
    )
)


def command_session(lookup: SessionLookup, continuation: Continuation) -> Session:
    """Return the session that a `/memory` command belongs to; a new one is not stored yet. In a transaction.

    A command without earlier messages goes into the latest session that contains only commands, so that occasional
    commands do not fill the list of sessions."""
    session = session_match(lookup, None, continuation).session
    if session._state.adding and not lookup.request.session_ref and lookup.conversation.is_first:
        return _with_commands_only(lookup, history_hash__startswith=fingerprint.COMMANDS_ONLY) or session
    return session


def session_match(lookup: SessionLookup, run_id: UUID | None, continuation: Continuation | None) -> MatchedSession:
    """Return the session of a request and the reason. `run_id` is the run whose tool results end the request. Raises
    ComparisonNeeded if no hash identifies the session: then call this again with the result of `find_continuation`."""
    if lookup.request.after:
        return _by_call_ids(lookup, run_id) or after_run_match(lookup, lookup.request.after)
    if lookup.request.session_ref:
        return named_match(lookup, continuation)
    found = _by_call_ids(lookup, run_id)
    if found is None and lookup.request.idempotency_key:
        idempotency_lock(lookup.owner_id, lookup.request.idempotency_key)
    if found is None and lookup.conversation.turns_before:
        found = _same_history(lookup) or _other_version(lookup) or _same_turn(lookup)
    elif found is None:
        found = after_unanswered(lookup) or resent_with_answer(lookup) or retried(lookup) or _after_command(lookup)
    is_first = lookup.conversation.is_first and not may_contain_summary(lookup.request.client_system)
    if found is None and not is_first:
        if continuation is None:
            raise ComparisonNeeded
        found = _by_comparison(lookup, continuation)
    return found or lookup.new_session()


def keeps_waiting_run(run: Run, match: MatchedSession, conversation: fingerprint.ResentConversation) -> bool:
    """Return True if a request that continues without the tool results a run waits for still contains that run's turn;
    otherwise the turn is replaced. A request with a single message that names its session keeps the run."""
    if match.regenerates is not None and run.turn >= match.regenerates.turn:
        return False
    if run.turn <= match.through:
        return True
    before = {conversation.unanswered_user_key, conversation.previous_user_key}
    return conversation.is_first or run.user_key in before


def _by_call_ids(lookup: SessionLookup, run_id: UUID | None) -> MatchedSession | None:
    """Find the session of tool results whose run no longer waits: the request was repeated, or the run given up."""
    if run_id is None:
        return None
    sessions = locked_sessions(lookup.owner_id).filter(agent=lookup.agent, state=Session.State.ACTIVE)
    session = sessions.filter(runs=run_id).first()
    if session is None:
        return None
    again = lookup.runs(session=session, **lookup.conversation.same_turn()).first()
    hidden = None if again else hidden_version(session.pk, lookup.conversation)
    return MatchedSession(session=session, rule=Rule.CALL_IDS, regenerates=again, hidden=hidden)


def _after_command(lookup: SessionLookup) -> MatchedSession | None:
    """Find the session that answered the command at the beginning of the conversation."""
    if lookup.request.after_command is None:
        return None
    key = fingerprint.commands_key(lookup.owner_id, lookup.agent.name, *lookup.request.after_command)
    session = _with_commands_only(lookup, history_hash=key)
    return MatchedSession(session=session, rule=Rule.AFTER_COMMAND) if session else None


def _with_commands_only(lookup: SessionLookup, **filters: str) -> Session | None:
    untouched = lookup.sessions(**filters).filter(~Exists(Run.objects.filter(session=OuterRef("pk"))))
    return untouched.order_by("-last_active_at").first()


def _same_history(lookup: SessionLookup) -> MatchedSession | None:
    """Find the session whose transcript equals the earlier messages. Of two with the same words, choose the one that
    made the tool calls in them, or neither."""
    conversation = lookup.conversation
    found = _SAME_HISTORY.instances(
        owner=lookup.owner_id,
        agent=lookup.agent.pk,
        temporary=lookup.request.temporary,
        history_hash=conversation.history_hash_before,
    )
    unnamed = [session for session in found if session.external_id is None]
    if len(unnamed) == 1:  # a request would name the others by their client's ids
        found = unnamed
    if len(found) > 1 and (called := sessions_called(lookup.request)):
        found = [session for session in found if session.pk in called]
    for session in found:
        session.agent = lookup.agent
    latest = {session.pk: latest_run(session) for session in found}
    found = [session for session in found if not was_edited(latest[session.pk], conversation)]
    common = {"turns": conversation.turns_before}
    if len(found) > 1:
        return lookup.new_session(Rule.SEVERAL, parent_id=found[0].pk, common=common)
    if not found:
        return None
    run = latest[found[0].pk]
    # The next message is still being answered, or its run failed: the same message repeats that turn.
    again = run if run and conversation.matches(run) else None
    rule = Rule.SAME_TURN if again else Rule.SAME_HISTORY
    return MatchedSession(session=found[0], rule=rule, regenerates=again, through=found[0].turns, common=common)


def _other_version(lookup: SessionLookup) -> MatchedSession | None:
    """Find the session in which the answer before the request's message was generated again. If another message
    follows that answer, the request edits it, which starts a new session."""
    runs = lookup.every_run(**lookup.in_active_session, session__external_id=None)  # a request would name the others
    before = hidden_predecessors(runs, lookup.conversation)
    if not before:
        return None
    last, common = before[0], {"turns": lookup.conversation.turns_before}
    if len({run.session_id for run in before}) > 1:
        return lookup.new_session(Rule.SEVERAL, parent_id=last.session_id, common=common)
    again = hidden_version(last.session_id, lookup.conversation, follows=last.pk)
    if again is None and hidden_runs(last.session_id, follows=last.pk).exists():
        return lookup.new_session(Rule.EDITED, parent_id=last.session_id, common=common)
    if (session := lookup.sessions(pk=last.session_id).first()) is None:
        return None
    return MatchedSession(session=session, rule=Rule.SAME_HISTORY, hidden=again or last, common=common)


def _same_turn(lookup: SessionLookup) -> MatchedSession | None:
    """Find the turn that continued the same history: it is repeated, or was not answered and the next message follows,
    or its message was edited, which starts a new session. Messages that a client puts before its first one (examples,
    greetings) do not identify a session."""
    siblings = lookup.active_runs(history_hash_before=lookup.conversation.history_hash_before)
    runs = list(siblings[:RECENT])
    if runs and (called := sessions_called(lookup.request)):
        siblings = siblings.filter(session__in=called)
        runs = list(siblings[:RECENT])
    if at_end := next(filter(None, (_continued_at_end(lookup, run) for run in runs)), None):
        return at_end
    same = list(siblings.filter(user_key=lookup.conversation.user_key)[:RECENT]) if runs else []
    certain = [run for run in same if is_same_turn(lookup.request, run)]
    common = {"turns": lookup.conversation.turns_before}
    if len({run.session_id for run in certain}) == 1:
        run = certain[0]
        return MatchedSession(session=lock(run.session), rule=Rule.SAME_TURN, regenerates=run, common=common)
    if not runs:
        return None
    if unanswered := after_unanswered(lookup):
        return unanswered
    rule = Rule.NEW
    if any(map(contains_our_answers, runs)):
        rule = Rule.SEVERAL if same else Rule.EDITED
    return lookup.new_session(rule, parent_id=runs[0].session_id, common=common)


def _continued_at_end(lookup: SessionLookup, run: Run) -> MatchedSession | None:
    """Match the end of a run's session if the request, whose history equals that of the run, continues there: its
    client sends only the newest messages, and a short exchange ("off", "Done.") occurred twice."""
    session, conversation = run.session, lookup.conversation
    if session.turns <= run.turn or session.last_pair != conversation.latest_keys(1)[1][-1]:
        return None
    latest = latest_run(session)
    before = lookup.runs(pk=latest.follows).first() if latest and latest.follows else None
    if latest is None or before is None or before.history_hash_after == latest.history_hash_before:
        return None  # the client resends the whole conversation
    common = {"turns": conversation.turns_before}
    return MatchedSession(session=lock(session), rule=Rule.ALIKE, through=session.turns, common=common)


def _by_comparison(lookup: SessionLookup, continuation: Continuation) -> MatchedSession | None:
    """Return the session that was found before the transaction. Raises ComparisonNeeded if it has changed since."""
    rule, common = continuation.rule, continuation.common
    if continuation.session_id is None:
        return None
    if rule in {Rule.EDITED, Rule.SEVERAL}:
        return lookup.new_session(rule, parent_id=continuation.session_id, common=common)
    session = lookup.sessions(pk=continuation.session_id).first()
    if session is None or session.message_seq != continuation.message_seq:
        raise ComparisonNeeded
    again = lookup.runs(session=session, pk=continuation.again).first() if continuation.again else None
    if rule == Rule.SUMMARY and (latest := latest_run(session)) and lookup.conversation.matches(latest):
        again = latest
    return MatchedSession(session=session, rule=rule, regenerates=again, through=continuation.through, common=common)
