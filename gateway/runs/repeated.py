"""Finds the turn that a request to /v1 repeats, or that the request follows although it was not answered, by the
message that the turn answers. gateway.runs.resolve asks these rules in a transaction."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from django.db.models import Q
from django.utils import timezone

from gateway.models import Run, Session
from gateway.runs.call_ids import runs_called
from gateway.runs.comparing import comparable_message, contains_answer
from gateway.runs.requested import MatchedSession, Rule, SessionLookup, V1Request
from gateway.runs.session_rows import MAX_ALIKE, OPEN_ENDED, SHORTENED_TEXT, UNFINISHED, lock
from memories.database.statements import Select, given

# How long the same request may count as a retry: with its client's word for it, with its idempotency key.
_RETRY_WINDOW = timedelta(minutes=15)
_IDEMPOTENCY_WINDOW = timedelta(hours=24)
RECENT: Final = 2
"""Runs, or sessions, of the same hash that are looked at."""
# On the path of every new conversation: the hash covers owner and agent already, so nothing is joined.
_SAME_FIRST_MESSAGE = Select(
    lambda: (
        Run.objects.filter(**given(Run, "owner", "history_hash_before", "user_key"), superseded=False)
        .order_by("-id")
        .values_list("pk", "state", "idempotency_key", "started_at")[:RECENT]
    )
)


def after_unanswered(lookup: SessionLookup) -> MatchedSession | None:
    """Find the unanswered run of a request with two user messages in a row, or the run that followed it and that the
    request repeats. Not used if it contains tool calls with our ids, which identify more reliably."""
    conversation = lookup.conversation
    if not conversation.unanswered_user_key or any(map(runs_called, lookup.request.messages)):
        return None
    runs = lookup.active_runs(
        history_hash_before=conversation.history_hash_before, user_key=conversation.unanswered_user_key
    ).filter(Q(state__in=OPEN_ENDED) | Q(state=Run.State.COMPLETED, text__regex=r"^\s*$"))
    run = _only_last_turn(filter(_was_found_by_content, runs[:RECENT]))
    if run is None:
        return None
    if again := lookup.runs(session=run.session_id, follows=run.pk, **conversation.same_turn()).first():
        return MatchedSession(session=lock(run.session), rule=Rule.SAME_TURN, regenerates=again)
    if run.state != Run.State.COMPLETED and run.session.turns == run.turn:
        return None  # another message followed it, and was answered
    return MatchedSession(session=lock(run.session), rule=Rule.UNANSWERED, through=run.turn)


def resent_with_answer(lookup: SessionLookup) -> MatchedSession | None:
    """Find the turn of a first message whose answer the request also contains and asks to continue. Some clients send
    tool results in system messages after it, others have a partial answer continued, or run the code in an answer and
    insert its output."""
    hash_after = lookup.conversation.history_hash_after()
    if not hash_after:
        return None
    same = lookup.active_runs(**lookup.conversation.same_turn())
    newest = same.values_list("pk", "history_hash_after")[:MAX_ALIKE]  # the hash after the answer has no index
    pks = [pk for pk, after in newest if after == hash_after][:RECENT]
    if not pks:
        given = comparable_message("assistant", lookup.conversation.answer)
        texts = same.annotate(shortened=SHORTENED_TEXT).values_list("pk", "shortened")[:RECENT]
        pks = [pk for pk, text in texts if contains_answer(comparable_message("assistant", text), given)]
    run = _only_last_turn(lookup.active_runs(pk__in=pks))
    return MatchedSession(session=lock(run.session), rule=Rule.SAME_TURN, regenerates=run) if run else None


def retried(lookup: SessionLookup) -> MatchedSession | None:
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


def is_same_turn(request: V1Request, run: Run) -> bool:
    """Return True if a run with the same messages is the same turn, not another conversation that begins alike."""
    certain = contains_our_answers(run) or run.state in UNFINISHED
    return certain or _is_declared_retry(request, run.idempotency_key, run.started_at)


def contains_our_answers(run: Run) -> bool:
    """Return True if the conversation before a run contains answers of ours, not only the client's initial messages."""
    rule = run.trace.get("session", {}).get("rule")
    return run.turn > 1 or rule in {Rule.EDITED, Rule.SEVERAL, Rule.BUSY, Rule.PREVIOUS_RESPONSE}


def _only_last_turn(runs: Iterable[Run]) -> Run | None:
    """Return the first of the runs that are last turns, if all of these belong to one session."""
    found = [run for run in runs if run.session.turns <= run.turn]
    return found[0] if len({run.session_id for run in found}) == 1 else None


def _is_declared_retry(request: V1Request, key: str, started: datetime) -> bool:
    """Return True if a client declares that a request repeats the one with this key, from this time."""
    age = timezone.now() - started
    same_key = bool(request.idempotency_key) and key == request.idempotency_key
    return (same_key and age < _IDEMPOTENCY_WINDOW) or (request.is_retry and age < _RETRY_WINDOW)


def _was_found_by_content(run: Run) -> bool:
    return Rule.by_content(run.trace.get("session", {}).get("rule"))
