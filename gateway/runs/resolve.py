"""Finds the session that a request to /v1 belongs to: by an id that the client sends, by our ids of its tool calls, by
the hash of the whole conversation before it (one query), or by comparing its messages with recorded turns, which
gateway.runs.candidates does before the transaction. Called by gateway.runs.v1 and gateway.commands in a transaction;
the returned session is locked."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from gateway.models import Run, Session
from gateway.runs import fingerprint
from gateway.runs.by_id import after_run_match, named_match, was_edited
from gateway.runs.call_ids import runs_called
from gateway.runs.candidates import sessions_called
from gateway.runs.comparing import comparable_message, contains_answer
from gateway.runs.hidden import hidden_predecessors, hidden_runs, hidden_version
from gateway.runs.matching import Continuation
from gateway.runs.requested import ComparisonNeeded, MatchedSession, Rule, SessionLookup, V1Request
from gateway.runs.session_rows import (
    MAX_ALIKE,
    OPEN_ENDED,
    SHORTENED_TEXT,
    UNFINISHED,
    idempotency_lock,
    latest_run,
    lock,
    locked_sessions,
)
from gateway.runs.summaries import may_contain_summary
from memories.database.statements import Select, given

# How long the same request may count as a retry.
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
# On the path of every further turn of a client that resends the conversation.
_SAME_HISTORY = Select(
    lambda: (
        Session.objects.select_for_update(no_key=True)
        .filter(**given(Session, "owner", "agent", "temporary", "history_hash"), state=Session.State.ACTIVE)
        .order_by("-last_active_at")[:_RECENT]
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
        found = _after_unanswered(lookup) or _resent_with_answer(lookup) or _retry(lookup) or _after_command(lookup)
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


def _resent_with_answer(lookup: SessionLookup) -> MatchedSession | None:
    """Find the turn of a first message whose answer the request also contains and asks to continue. Some clients send
    tool results in system messages after it, others have a partial answer continued, or run the code in an answer and
    insert its output."""
    hash_after = lookup.conversation.history_hash_after()
    if not hash_after:
        return None
    same = lookup.active_runs(**lookup.conversation.same_turn())
    newest = same.values_list("pk", "history_hash_after")[:MAX_ALIKE]  # the hash after the answer has no index
    pks = [pk for pk, after in newest if after == hash_after][:_RECENT]
    if not pks:
        given = comparable_message("assistant", lookup.conversation.answer)
        texts = same.annotate(shortened=SHORTENED_TEXT).values_list("pk", "shortened")[:_RECENT]
        pks = [pk for pk, text in texts if contains_answer(comparable_message("assistant", text), given)]
    run = _only_last_turn(lookup.active_runs(pk__in=pks))
    return MatchedSession(session=lock(run.session), rule=Rule.SAME_TURN, regenerates=run) if run else None


def _only_last_turn(runs: Iterable[Run]) -> Run | None:
    """Return the first of the runs that are last turns, if all of these belong to one session."""
    found = [run for run in runs if run.session.turns <= run.turn]
    return found[0] if len({run.session_id for run in found}) == 1 else None


def _retry(lookup: SessionLookup) -> MatchedSession | None:
    """Find the session of a first message that repeats an earlier request; None for a new session."""
    request = lookup.request
    earlier = _SAME_FIRST_MESSAGE.rows(owner=lookup.owner_id, **lookup.conversation.same_turn())
    for pk, state, key, started in earlier:
        if state in UNFINISHED or _is_declared_retry(request, key, started):
            run = lookup.runs(pk=pk).first()
            if run is None or not _was_found_by_content(run):  # None: its session was deleted
                continue
            session = lock(run.session)
            usable = session.state == Session.State.ACTIVE and session.temporary == request.temporary
            if usable and session.turns <= run.turn:
                return MatchedSession(session=session, rule=Rule.RETRY, regenerates=run)
    return None


def _is_declared_retry(request: V1Request, key: str, started: datetime) -> bool:
    """Return True if a client declares that a request repeats the one with this key, from this time."""
    age = timezone.now() - started
    same_key = bool(request.idempotency_key) and key == request.idempotency_key
    return (same_key and age < IDEMPOTENCY_WINDOW) or (request.is_retry and age < RETRY_WINDOW)


def _was_found_by_content(run: Run) -> bool:
    return Rule.by_content(run.trace.get("session", {}).get("rule"))


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
    runs = list(siblings[:_RECENT])
    if runs and (called := sessions_called(lookup.request)):
        siblings = siblings.filter(session__in=called)
        runs = list(siblings[:_RECENT])
    if at_end := next(filter(None, (_continued_at_end(lookup, run) for run in runs)), None):
        return at_end
    same = list(siblings.filter(user_key=lookup.conversation.user_key)[:_RECENT]) if runs else []
    certain = [run for run in same if _is_same_turn(lookup.request, run)]
    common = {"turns": lookup.conversation.turns_before}
    if len({run.session_id for run in certain}) == 1:
        run = certain[0]
        return MatchedSession(session=lock(run.session), rule=Rule.SAME_TURN, regenerates=run, common=common)
    if not runs:
        return None
    if after_unanswered := _after_unanswered(lookup):
        return after_unanswered
    rule = Rule.NEW
    if any(map(_contains_our_answers, runs)):
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


def _contains_our_answers(run: Run) -> bool:
    """Return True if the conversation before a run contains answers of ours, not only the client's initial messages."""
    rule = run.trace.get("session", {}).get("rule")
    return run.turn > 1 or rule in {Rule.EDITED, Rule.SEVERAL, Rule.BUSY, Rule.PREVIOUS_RESPONSE}


def _is_same_turn(request: V1Request, run: Run) -> bool:
    """Return True if a run with the same messages is the same turn, not another conversation that begins alike."""
    certain = _contains_our_answers(run) or run.state in UNFINISHED
    return certain or _is_declared_retry(request, run.idempotency_key, run.started_at)


def _after_unanswered(lookup: SessionLookup) -> MatchedSession | None:
    """Find the unanswered run of a request with two user messages in a row, or the run that followed it and that the
    request repeats. Not used if it contains tool calls with our ids, which identify more reliably."""
    conversation = lookup.conversation
    if not conversation.unanswered_user_key or any(map(runs_called, lookup.request.messages)):
        return None
    runs = lookup.active_runs(
        history_hash_before=conversation.history_hash_before, user_key=conversation.unanswered_user_key
    ).filter(Q(state__in=OPEN_ENDED) | Q(state=Run.State.COMPLETED, text__regex=r"^\s*$"))
    run = _only_last_turn(filter(_was_found_by_content, runs[:_RECENT]))
    if run is None:
        return None
    if again := lookup.runs(session=run.session_id, follows=run.pk, **conversation.same_turn()).first():
        return MatchedSession(session=lock(run.session), rule=Rule.SAME_TURN, regenerates=again)
    if run.state != Run.State.COMPLETED and run.session.turns == run.turn:
        return None  # another message followed it, and was answered
    return MatchedSession(session=lock(run.session), rule=Rule.UNANSWERED, through=run.turn)


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
