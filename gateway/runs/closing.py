"""Closes a run. One transaction stores its output, counts and records the turn, and calls the hook. Also reads the
recorded turns again for the short-term lane of recall: memories stores only references to the gateway's rows."""

from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from itertools import chain
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from gateway.agents.model_choice import agent_target
from gateway.errors import RunSuperseded
from gateway.hooks import turn_completed
from gateway.jobs import enqueue
from gateway.limits.spending import Spender, spending_store
from gateway.messages import text_of
from gateway.models import Message, Run, Session
from gateway.runs import fingerprint
from gateway.runs.context import STORED_OUTPUT, RunOutput, TurnContext
from gateway.runs.instructions import hashes_store
from gateway.runs.rows import messages_insert
from gateway.runs.wrappers import own_words
from gateway.tokens import estimate
from memories.database.shared import after_commit, shareable
from memories.database.statements import Given, Select, Update, UpdateRow, given
from memories.models import ThreadRecord
from memories.recall.failures import contained
from memories.recall.threads import ThreadTurn, record_run, thread_cache
from memories.tokens import text_tokens

CLIENT_TOOLS_WAIT = timedelta(hours=1)
COMPACTION_TASK = "gateway.compaction.compact_session"
COMPACTION_SHARE = 0.8  # share of context_token_limit above which the worker compacts a native session after a turn

_COUNTS = ("message_seq", "turns", "history_hash", "last_pair", "turns_since_memory_review", "last_active_at")
_LOCK_SESSION = Select(
    lambda: (
        Session.with_deleted.select_for_update(no_key=True)
        .filter(**given(Session, "pk"))
        .only("owner_id", "reviewed_through", *_COUNTS)
    )
)
_END_RUN = Update(
    lambda: Run.objects.filter(
        **given(Run, "pk"), state=Run.State.RUNNING, lease_token=Given("lease", Run, "lease_token")
    ),
    lambda: {
        **given(Run, *STORED_OUTPUT, "state", "injected", "error", "history_hash_after"),
        **given(Run, "lease_expires_at", "finished_at"),
        "lease_token": None,
    },
)
_STORE_SESSION = UpdateRow(Session, *_COUNTS)


def close(context: TurnContext, output: RunOutput, *, state: Run.State, error: dict[str, Any] | None = None) -> int:
    """Store the output, end the run, and return the session's turns since the last review. Only a completed run is
    counted, recorded and passed to the hook.

    Raises RunSuperseded if another process has taken over the lease. Then only the text is stored, with the run."""
    closed = run_end(context, output, state=state, error=error)
    if closed is None:
        raise RunSuperseded(
            "This turn took too long and was given up; its text is kept with the run.", run_id=str(context.run_id)
        )
    turns_since_review, record_id = closed
    if record_id and context.agent.settings.inject_memories:
        after_commit(partial(_cache_turn, context, output, record_id))
    return turns_since_review


def _cache_turn(context: TurnContext, output: RunOutput, record_id: UUID) -> None:
    with contained("thread", output.trace):  # the turn is stored, so an error must not fail it
        turn = ThreadTurn(
            record_id=record_id,
            run_id=context.run_id,
            turn=context.turn,
            user=context.user_text,
            assistant=output.text,
            answer=_last_text(context.messages, output.messages),
            said_at=context.started_at,
        )
        thread_cache.append(context.owner_id, context.session_id, turn, after=context.newest_record)


def read_turns(owner_id: UUID, session_id: UUID) -> Sequence[ThreadTurn]:
    """Return the recorded turns of a session, oldest first, as `close` caches them; superseded runs are left out."""
    records = ThreadRecord.objects.filter(owner_id=owner_id, session_id=session_id, cleared_at=None).order_by("id")
    by_run = {record.run_id: record.pk for record in records}
    runs = Run.objects.filter(owner_id=owner_id, pk__in=by_run, superseded=False).in_bulk()
    users, answers = _texts_by_run(owner_id, session_id, list(runs))
    return [
        ThreadTurn(
            record_id=record_id,
            run_id=run_id,
            turn=run.turn,
            user=users.get(run_id, ""),
            assistant=run.text,
            answer=answers.get(run_id, ""),
            said_at=run.started_at,
        )
        for run_id, record_id in by_run.items()
        if (run := runs.get(run_id))
    ]


def _texts_by_run(owner_id: UUID, session_id: UUID, runs: Sequence[UUID]) -> tuple[dict[UUID, str], dict[UUID, str]]:
    """Return, by run, the user's own words in the message that it answers, and the last assistant message with text."""
    users: dict[UUID, str] = {}
    answers: dict[UUID, str] = {}
    roles = (Message.Role.USER, Message.Role.ASSISTANT)
    rows = Message.objects.filter(owner_id=owner_id, session_id=session_id, run_id__in=runs, role__in=roles)
    for run_id, role, text in rows.order_by("seq").values_list("run_id", "role", "text"):
        if run_id is None:
            continue
        if role == Message.Role.USER:
            users[run_id] = own_words(text) or text
        elif text.strip():
            answers[run_id] = text
    return users, answers


def _last_text(*parts: Sequence[dict[str, Any]]) -> str:
    """Return the text of the last assistant message with text since the user message; "" if there is none."""
    for message in chain.from_iterable(map(reversed, reversed(parts))):
        if message["role"] == Message.Role.USER:
            break
        text = text_of(message.get("content"))
        if message["role"] == Message.Role.ASSISTANT and text.strip():
            return text
    return ""


@shareable
def run_end(
    context: TurnContext, output: RunOutput, *, state: Run.State, error: dict[str, Any] | None = None
) -> tuple[int, UUID | None] | None:
    """Execute the transaction of `close`. Return the turns since the last review and the record's id, or None if the
    lease was lost."""
    now = timezone.now()
    session = _LOCK_SESSION.instance(pk=context.session_id)
    history_hash_after = ""
    if state in {Run.State.COMPLETED, Run.State.STOPPED}:
        pair = context.user_canonical, _answer(context, output)
        history_hash_after = fingerprint.next_history_hash(context.history_hash_before, *pair)
    ended = state != Run.State.AWAITING_CLIENT_TOOLS
    closed = _END_RUN.execute(
        pk=context.run_id,
        lease=context.lease_token,
        **{name: getattr(output, name) for name in STORED_OUTPUT},
        state=state,
        injected=None if ended else output.injected,
        error=error,
        history_hash_after=history_hash_after,
        lease_expires_at=None if ended else now + CLIENT_TOOLS_WAIT,
        finished_at=now if ended else None,
    )
    if closed != 1 or session is None:
        # A run that was stopped meanwhile stays unchanged: the transcript shows its text up to then. So does one that
        # this process has stored in a commit that the database did not confirm; its usage is stored, too.
        run = Run.objects.filter(pk=context.run_id)
        run.filter(state=Run.State.RUNNING).update(text=output.text, superseded=True)
        if not run.filter(state__in=(Run.State.COMPLETED, Run.State.AWAITING_CLIENT_TOOLS)).exists():
            _store_usage(context, output, turns=0)
        return None
    output.closed_at = now
    if output.messages:
        messages_insert(session, context.run_id, output.messages, created_at=now)
    hashes_store(session, output.hashes)
    record_id = _complete_turn(context, session, output, history_hash_after) if state == Run.State.COMPLETED else None
    session.touch()
    _STORE_SESSION.execute(session)
    answered = state in {Run.State.COMPLETED, Run.State.AWAITING_CLIENT_TOOLS}
    first = answered and not context.answered_before and not context.earlier.trace.get("steps")
    _store_usage(context, output, turns=int(first))
    return session.turns_since_memory_review, record_id


def _store_usage(context: TurnContext, output: RunOutput, *, turns: int) -> None:
    """Add the run's model usage to the totals of the day."""
    spender = Spender(
        owner_id=context.owner_id,
        key_id=context.allowance.key_id,
        agent=context.agent.name,
        prices=context.agent.prices,
    )
    spending_store(spender, output.uses, turns=turns)


def _complete_turn(context: TurnContext, session: Session, output: RunOutput, history_hash_after: str) -> UUID | None:
    """Count and record a completed run and call the hook. Return the id of its record, if it has one."""
    session.turns = max(session.turns, context.turn)
    session.history_hash = history_hash_after
    session.last_pair = fingerprint.pair_key(context.user_canonical, _answer(context, output))
    _compact_if_large(context, output)
    if context.temporary or context.book is None:
        return None
    record_id = None
    if context.user_text.strip() and output.text.strip():
        owner_id, after = context.owner_id, session.last_active_at
        record_id = record_run(owner_id=owner_id, session_id=session.pk, run_id=context.run_id, after=after).pk
    if not context.counted:
        return record_id
    session.turns_since_memory_review += 1
    if turn_completed()(context, session):
        session.turns_since_memory_review = 0
    return record_id


def _answer(context: TurnContext, output: RunOutput) -> str:
    """Return the canonical text of the whole answer, as the client will resend it."""
    return context.answer_prefix + fingerprint.strip_whitespace(output.text)


def _compact_if_large(context: TurnContext, output: RunOutput) -> None:
    if not context.is_native:
        return
    tokens = output.usage.get("total_tokens")
    if not tokens:
        tokens = estimate(context.messages, agent_target(context.agent.settings)) + text_tokens(output.text)
    if tokens > context.agent.settings.context_token_limit * COMPACTION_SHARE:
        transaction.on_commit(partial(enqueue, COMPACTION_TASK, context.session_id), robust=True)
