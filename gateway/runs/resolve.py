"""Finds the session that a request to /v1 belongs to, in this order: an id that the client sends; ids that we gave to
its calls; the whole conversation before it, which one query finds by its hash; and else what its turns have in common
with recorded ones, which gateway.runs.candidates looks at before the transaction. Called by gateway.runs.v1 and
gateway.commands, in a transaction; what is returned is locked."""

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from django.db.models import Exists, OuterRef
from django.utils import timezone

from gateway.models import Run, Session
from gateway.runs import fingerprint
from gateway.runs.by_id import after_run_match, named_match
from gateway.runs.call_ids import runs_called
from gateway.runs.candidates import sessions_called
from gateway.runs.comparing import is_held, said
from gateway.runs.matching import Verdict
from gateway.runs.requested import Asked, Rule, SessionMatch, SessionUnknown, V1Request
from gateway.runs.session_rows import OPEN_ENDED, UNFINISHED, latest_run, lock
from memories.database.statements import Select, given

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
# On the path of every further turn of a client that resends the conversation.
_SAME_HISTORY = Select(
    lambda: (
        Session.objects.select_for_update()
        .filter(**given(Session, "owner", "agent", "temporary", "history_hash"), state=Session.State.ACTIVE)
        .order_by("-last_active_at")[:_RECENT]
    )
)


def session_of(asked: Asked, finding: Verdict) -> Session:
    """Return the session that a `/memory` command belongs to; a new one is not stored yet. In a transaction.

    Before anything else was said that is the latest session that holds commands only, so that asking for help now and
    then does not fill the list of sessions."""
    session = session_match(asked, None, finding).session
    if session._state.adding and not asked.request.session_ref and asked.conversation.is_alone:
        return _with_commands_only(asked, history_hash__startswith=fingerprint.COMMANDS_ONLY) or session
    return session


def session_match(asked: Asked, run_id: UUID | None, finding: Verdict | None) -> SessionMatch:
    """Return the session of a request, and why it is that one. `run_id`: the run whose calls the request ends with the
    results of. Raises SessionUnknown where none is known by its hash: then `find_session` takes a closer look, and this
    is called again with what it found."""
    if asked.request.after:
        return _by_call_ids(asked, run_id) or after_run_match(asked, asked.request.after)
    if asked.request.session_ref:
        return named_match(asked, finding)
    found = _by_call_ids(asked, run_id)
    if found is None and asked.conversation.turns_before:
        found = _same_history(asked) or _same_turn(asked) or _after_unanswered(asked)
    elif found is None:
        found = _after_unanswered(asked) or _answered(asked) or _retried(asked) or _after_command(asked)
    if found is None and not asked.conversation.is_alone:
        if finding is None:
            raise SessionUnknown
        found = _as_found(asked, finding)
    return found or asked.new_session()


def goes_on_from(run: Run, match: SessionMatch, conversation: fingerprint.Conversation) -> bool:
    """Return True if a run that waits for tool results stands in the conversation that a request brings, which goes on
    without them; else its turn is replaced. Where a request holds one message and names its session, the run stands."""
    if match.regenerates is not None and run.turn >= match.regenerates.turn:
        return False
    if run.turn <= match.through:
        return True
    before = {conversation.unanswered_user_key, conversation.previous_user_key}
    return conversation.is_alone or run.user_key in before


def _by_call_ids(asked: Asked, run_id: UUID | None) -> SessionMatch | None:
    """Find the session of tool results whose run no longer waits: the request came twice, or the run was given up."""
    if run_id is None:
        return None
    owner_id, active = asked.caller.owner_id, Session.State.ACTIVE
    session = Session.objects.filter(owner_id=owner_id, agent=asked.agent, state=active, runs=run_id).first()
    if session is None:
        return None
    again = asked.runs(session=session, **asked.same_turn()).first()
    return SessionMatch(session=lock(session), rule=Rule.CALL_IDS, regenerates=again)


def _answered(asked: Asked) -> SessionMatch | None:
    """Find the turn of a first message whose answer the request holds as well, and is to be gone on with: some clients
    say the results of their tools in system messages behind it, others have a part of an answer continued, or run the
    code in it and put the output into it."""
    hash_after = asked.conversation.history_hash_after()
    if not hash_after:
        return None
    same = asked.active_runs(**asked.same_turn())
    given = said("assistant", asked.conversation.answer)
    runs = list(same.filter(history_hash_after=hash_after)[:_RECENT])
    runs = runs or [run for run in same[:_RECENT] if is_held(said("assistant", run.text), given)]
    found = [run for run in runs if run.session.turns <= run.turn]
    if len({run.session_id for run in found}) != 1:
        return None
    return SessionMatch(session=lock(found[0].session), rule=Rule.SAME_TURN, regenerates=found[0])


def _retried(asked: Asked) -> SessionMatch | None:
    """Find the session of a first message that is the same request again; None for a new session."""
    request, now = asked.request, timezone.now()
    earlier = _SAME_FIRST_MESSAGE.rows(owner=asked.caller.owner_id, **asked.same_turn())
    for pk, state, key, started in earlier:
        same_key = request.idempotency_key and key == request.idempotency_key and started > now - IDEMPOTENCY_WINDOW
        retry = request.is_retry and started > now - RETRY_WINDOW
        if same_key or retry or state in UNFINISHED:
            run = asked.runs(pk=pk).first()
            if run is None:  # its session was deleted
                continue
            session = lock(run.session)
            alive = session.state == Session.State.ACTIVE and session.temporary == request.temporary
            if alive and session.turns <= run.turn:
                return SessionMatch(session=session, rule=Rule.RETRY, regenerates=run)
    return None


def _after_command(asked: Asked) -> SessionMatch | None:
    """Find the session in which the command at the beginning of the conversation was answered."""
    if asked.request.after_command is None:
        return None
    key = fingerprint.commands_key(asked.caller.owner_id, asked.agent.name, *asked.request.after_command)
    session = _with_commands_only(asked, history_hash=key)
    return SessionMatch(session=session, rule=Rule.AFTER_COMMAND) if session else None


def _with_commands_only(asked: Asked, **filters: str) -> Session | None:
    untouched = asked.sessions(**filters).filter(~Exists(Run.objects.filter(session=OuterRef("pk"))))
    return untouched.order_by("-last_active_at").first()


def _same_history(asked: Asked) -> SessionMatch | None:
    """Find the session whose transcript is all that was said before. Of two with the same words it is the one that made
    the calls in it, or neither."""
    conversation = asked.conversation
    found: Sequence[Session] = _unnamed(
        _SAME_HISTORY.instances(
            owner=asked.caller.owner_id,
            agent=asked.agent.pk,
            temporary=asked.request.temporary,
            history_hash=conversation.history_hash_before,
        )
    )
    if len(found) > 1 and (called := sessions_called(asked.caller, asked.request.messages)):
        found = [session for session in found if session.pk in called]
    for session in found:
        session.agent = asked.agent
    common = {"turns": conversation.turns_before}
    if len(found) > 1:
        return asked.new_session(Rule.SEVERAL, parent=found[0].pk, common=common)
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


def _same_turn(asked: Asked) -> SessionMatch | None:
    """Find the turn that went on from the same words: it is repeated, or its message was edited, which begins a new
    session. What a client says before its first message (examples, greetings) is no reason to call two requests one."""
    went_on = asked.active_runs(history_hash_before=asked.conversation.history_hash_before)
    runs = list(went_on[:_RECENT])
    if runs and (called := sessions_called(asked.caller, asked.request.messages)):
        went_on = went_on.filter(session__in=called)
        runs = list(went_on[:_RECENT])
    if at_end := next(filter(None, (_at_the_end(asked, run) for run in runs)), None):
        return at_end
    same = list(went_on.filter(user_key=asked.conversation.user_key)[:_RECENT]) if runs else []
    certain = [run for run in same if _is_certain(asked.request, run)]
    common = {"turns": asked.conversation.turns_before}
    if len({run.session_id for run in certain}) == 1:
        run = certain[0]
        return SessionMatch(session=lock(run.session), rule=Rule.SAME_TURN, regenerates=run, common=common)
    if not runs:
        return None
    rule = Rule.NEW
    if any(map(_holds_our_answers, runs)):
        rule = Rule.SEVERAL if same else Rule.EDITED
    return asked.new_session(rule, parent=runs[0].session_id, common=common)


def _at_the_end(asked: Asked, run: Run) -> SessionMatch | None:
    """Return the end of a run's session, if a request that goes on from the same words as that earlier run goes on
    there as well: its client sends only the newest messages, and what was said and answered ("off", "Done.") came
    again."""
    session, conversation = run.session, asked.conversation
    if session.turns <= run.turn or session.last_pair != conversation.latest(1)[1][-1]:
        return None
    latest = latest_run(session)
    before = asked.runs(pk=latest.follows).first() if latest and latest.follows else None
    if latest is None or before is None or before.history_hash_after == latest.history_hash_before:
        return None  # its client sends all of the conversation
    common = {"turns": conversation.turns_before}
    return SessionMatch(session=lock(session), rule=Rule.ALIKE, through=session.turns, common=common)


def _holds_our_answers(run: Run) -> bool:
    """Return True if the conversation before a run holds answers of ours, and not only what its client began with."""
    rule = run.trace.get("session", {}).get("rule")
    return run.turn > 1 or rule in {Rule.EDITED, Rule.SEVERAL, Rule.BUSY, Rule.PREVIOUS_RESPONSE}


def _is_certain(request: V1Request, run: Run) -> bool:
    """Return True if a run of the same words is the same turn, and not another conversation that begins like it."""
    if _holds_our_answers(run) or run.state in UNFINISHED:
        return True
    same_key = bool(request.idempotency_key) and run.idempotency_key == request.idempotency_key
    return same_key or (request.is_retry and run.started_at > timezone.now() - RETRY_WINDOW)


def _after_unanswered(asked: Asked) -> SessionMatch | None:
    """Find a run that was never answered: two user messages stand in a row. Calls of ours would say more."""
    conversation = asked.conversation
    if not conversation.unanswered_user_key or any(map(runs_called, asked.request.messages)):
        return None
    runs = asked.active_runs(
        state__in=OPEN_ENDED,
        history_hash_before=conversation.history_hash_before,
        user_key=conversation.unanswered_user_key,
    )
    found = [run for run in runs[:_RECENT] if run.session.turns <= run.turn]
    if len({run.session_id for run in found}) != 1:
        return None
    return SessionMatch(session=lock(found[0].session), rule=Rule.UNANSWERED, through=found[0].turn)


def _as_found(asked: Asked, finding: Verdict) -> SessionMatch | None:
    """Return what was found before the transaction, if it still stands. Raises SessionUnknown if it does not."""
    if finding.session_id is None:
        if finding.parent is None:
            return None
        rule = Rule.SEVERAL if finding.rivals else Rule.EDITED
        return asked.new_session(rule, parent=finding.parent, common=finding.common)
    session = asked.sessions(pk=finding.session_id).first()
    if session is None or session.message_seq != finding.message_seq:
        raise SessionUnknown
    again = asked.runs(session=session, pk=finding.again).first() if finding.again else None
    rule = Rule.SUMMARY if finding.by_summary else Rule.ALIKE
    return SessionMatch(session=session, rule=rule, regenerates=again, through=finding.through, common=finding.common)
