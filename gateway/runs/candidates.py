"""Reads the recorded conversations that a request may continue, without a lock and outside of any transaction: those
whose tool calls it contains, those that begin or end like it, and the latest ones. The number of conversations, of
turns and of characters read is bounded, whatever the request contains."""

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import chain, islice
from uuid import UUID

from django.db.models import F, Q, QuerySet, TextField
from django.db.models.functions import Cast, Length
from django.utils import timezone

from gateway.agents.rows import agent_find
from gateway.models import Message, Run, Session
from gateway.runs.alignment import Candidate, RecordedTurn
from gateway.runs.call_ids import runs_called
from gateway.runs.comparing import (
    END_CHARS,
    comparable_message,
    comparable_messages,
)
from gateway.runs.hidden import hidden_answer
from gateway.runs.matching import Continuation, judge
from gateway.runs.requested import Rule, V1Request
from gateway.runs.session_rows import SHORTENED_TEXT, named, with_agent
from gateway.runs.summaries import first_sentence_hashes, stored_summaries, summarised_session
from gateway.tool_calls import object_in

# How long a short exchange alone identifies the session of a client that cuts off older messages
CUT_OFF_WINDOW = timedelta(days=30)
MAX_TURNS = 16  # the latest turns of each conversation
_MAX_CALLING_RUNS = 50
_MAX_KEYS = 32
_MAX_BY_KEY = 12
_MAX_RECENT = 12


def find_continuation(request: V1Request) -> Continuation:
    """Return where a request continues, by comparing its messages with recorded turns. If it names an existing session,
    only that one is compared. Ten queries at most. Raises ModelNotFound, Unauthorized."""
    owner_id, agent = request.caller.owner_id, agent_find(request.caller, request.agent)
    usable = Session.objects.filter(owner_id=owner_id, agent=agent, state=Session.State.ACTIVE)
    sessions: list[Session] = []
    if request.session_ref:
        ref = request.session_ref
        sessions = list(usable.filter(named(ref, with_agent(ref, agent.name))))
    if not sessions:
        sessions = _candidate_sessions(request, usable.filter(temporary=request.temporary))
    before, newest = comparable_messages(request.messages)
    # A first message has no turns to compare, and what it quotes of another conversation is no summary of its own.
    candidates = _load_turns(request, sessions) if before else []
    continuation = judge(before, newest, candidates)
    if request.session_ref and continuation.session_id and continuation.following:
        shown = [turn.answer for candidate in candidates for turn in candidate.turns]
        continuation = replace(continuation, hidden=hidden_answer(continuation.session_id, before[-1], shown))
    if continuation.session_id is None and not request.session_ref:
        begins_with = first_sentence_hashes(request.client_system, request.messages if before else ())
        continuation = _by_summary(owner_id, sessions, begins_with)
    seen = next((row.message_seq for row in sessions if row.pk == continuation.session_id), 0)
    return replace(continuation, message_seq=seen)


def sessions_called(request: V1Request) -> set[UUID]:
    """Return the sessions whose runs made the latest tool calls in a request, by our call ids. They tell apart sessions
    with the same words."""
    runs = list(islice(chain.from_iterable(map(runs_called, reversed(request.messages))), _MAX_CALLING_RUNS))
    if not runs:
        return set()
    return set(Run.objects.filter(owner_id=request.caller.owner_id, pk__in=runs).values_list("session_id", flat=True))


def _by_summary(owner_id: UUID, sessions: Sequence[Session], begins_with: set[str]) -> Continuation:
    """Return the continuation of the session with whose summary the request begins, given hashes of its sentences."""
    if not begins_with:
        return Continuation()
    noted = stored_summaries(owner_id, [row.pk for row in sessions])
    session_id = summarised_session(noted, begins_with)
    turns = next((row.turns for row in sessions if row.pk == session_id), 0)
    return Continuation(session_id=session_id, rule=Rule.SUMMARY, through=turns) if session_id else Continuation()


def _candidate_sessions(request: V1Request, usable: "QuerySet[Session]") -> list[Session]:
    hashes, pairs = request.conversation.latest_keys(_MAX_KEYS)
    latest = usable.order_by("-last_active_at")
    if called := sessions_called(request):
        # Other sessions that begin or end alike are not meant, except one that continues this very history.
        sessions = list(latest.filter(Q(pk__in=called) | Q(history_hash__in=hashes))[:_MAX_BY_KEY])
        if sessions:
            return sessions
    runs = Run.objects.filter(owner_id=request.caller.owner_id, superseded=False)
    alike = runs.filter(Q(history_hash_before__in=hashes) | Q(**request.conversation.first_turn_filters()))
    ids = set(alike.order_by("-id").values_list("session_id", flat=True)[: _MAX_BY_KEY * 2])
    by_key = latest.filter(Q(pk__in=ids) | Q(history_hash__in=hashes) | Q(last_pair__in=pairs))
    found = {row.pk: row for row in (*by_key[:_MAX_BY_KEY], *latest[:_MAX_RECENT])}
    return list(found.values())


def _load_turns(request: V1Request, sessions: Sequence[Session]) -> list[Candidate]:
    owner_id = request.caller.owner_id
    runs = Run.objects.filter(
        owner_id=owner_id,
        session__in=[row.pk for row in sessions],
        superseded=False,
        turn__gt=F("session__turns") - MAX_TURNS,
    )
    spoken = runs.annotate(shortened=SHORTENED_TEXT).order_by("turn", "id")
    rows = list(spoken.values_list("pk", "session_id", "turn", "state", "shortened", "trace__session__rule"))
    user_texts = _user_texts(owner_id, [row[0] for row in rows])
    called = _called_texts(owner_id, [row[0] for row in rows if not row[4]])
    turns: dict[UUID, list[RecordedTurn]] = defaultdict(list)
    for run_id, session_id, number, state, answer, rule in rows:
        turn = RecordedTurn(
            run_id=run_id,
            number=number,
            user=comparable_message("user", user_texts.get(run_id, "")),
            answer=comparable_message("assistant", answer or called.get(run_id, "")),
            complete=state == Run.State.COMPLETED,
            may_be_repeated=bool(request.session_ref) or Rule.by_content(rule),
        )
        turns[session_id].append(turn)
    oldest = timezone.now() - CUT_OFF_WINDOW
    return [
        Candidate(
            session_id=row.pk,
            turns=turns[row.pk][-MAX_TURNS:],
            fresh=row.last_active_at > oldest,
            named=row.external_id is not None,
        )
        for row in sessions
        if turns[row.pk]
    ]


def _called_texts(owner_id: UUID, run_ids: Sequence[UUID]) -> dict[UUID | None, str]:
    """Return the arguments of runs that answered with a single call. Libraries that ask for structured data demand a
    call, and resend its arguments as the text of the answer."""
    if not run_ids:
        return {}
    messages = Message.objects.filter(owner_id=owner_id, run_id__in=run_ids, role=Message.Role.ASSISTANT)
    short = messages.annotate(size=Length(Cast("tool_calls", TextField()))).filter(size__lte=2 * END_CHARS)
    called = {}
    for row in short.only("run_id", "tool_calls").order_by("seq"):
        if len(row.calls) == 1 and runs_called({"tool_calls": row.calls}):
            arguments = (row.calls[0].get("function") or {}).get("arguments") or ""
            called[row.run_id] = json.dumps(object_in(arguments), ensure_ascii=False) if arguments else ""
    return called


def _user_texts(owner_id: UUID, run_ids: Sequence[UUID]) -> dict[UUID | None, str]:
    messages = Message.objects.filter(owner_id=owner_id, run_id__in=run_ids, role=Message.Role.USER)
    texts = messages.annotate(shortened=SHORTENED_TEXT).order_by("seq")  # the last message of each run
    return dict(texts.values_list("run_id", "shortened"))
