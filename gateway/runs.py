"""Runs, write side: the two transactions of a turn, and what happens between them.
`open_native` and `open_v1` read what a turn needs and record that it began; `close` stores what was said, counts the
turn, records it and tells the hook. Each is one synchronous function: one thread hop, one transaction.
Called by gateway.turns through memories.database.in_thread. Lock order: session (run) → book → memories → owner."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Exists
from django.utils import timezone
from django_q.tasks import async_task

from gateway import identity
from gateway.agent_rows import KEY_REVOKED, agent_settings, require_agent
from gateway.context import AgentConfig, TurnContext
from gateway.errors import RunSuperseded
from gateway.hooks import TurnCompleted, turn_completed
from gateway.keys import valid_keys
from gateway.leases import lease_end, release_expired, reopen
from gateway.memory_settings import memory_settings_of
from gateway.models import Message, Run, Session
from gateway.services import require_active
from gateway.tokens import estimate, estimate_text
from gateway.window import as_openai, window_rows
from memories.books import book_state
from memories.caller import Caller
from memories.errors import NotFound, Unauthorized
from memories.ids import uuid7
from memories.models import ThreadRecord
from memories.threads import ThreadTurn, record_run, thread_cache

CLIENT_TOOLS_WAIT = timedelta(hours=1)
TITLE_CHARS = 60
MAX_CALL_ID = 128
WAITING_AT_ONCE = 100
COMPACTION_TASK = "gateway.compaction.compact_session"
COMPACTION_SHARE = 0.8  # of context_token_limit: above it the worker compacts a native session after the turn


@dataclass(slots=True, kw_only=True)
class Said:
    """What a run has said and done so far; handed to `close`."""

    text: str = ""
    messages: list[dict[str, Any]] = field(default_factory=list)  # steps as OpenAI messages, the last answer included
    usage: dict[str, int] = field(default_factory=dict)
    model: str = ""
    recalled: list[dict[str, Any]] = field(default_factory=list)
    trace: dict[str, Any] = field(default_factory=dict)


@transaction.atomic
def open_native(
    caller: Caller, *, session_id: UUID | None, content: str, replaces: UUID | None, request_id: str
) -> TurnContext:
    """Open a run in a session the caller named. Raises NotFound, SessionEnded, SessionBusy, Unauthorized."""
    session = lock_session(caller, session_id)
    require_active(session)
    require_agent(caller, session.agent.name)
    release_expired(session)
    replaced = _replaced_run(session, replaces)
    summary, rows = window_rows(session, before=replaced)
    transcript = tuple(as_openai(row) for row in rows)
    turns_before = identity.read_conversation(
        caller.owner_id, session.agent.name, [*transcript, {"role": "user", "content": content}]
    )
    run = _insert_run(
        caller,
        session,
        turn=replaced.turn if replaced else session.turns + 1,
        counted=_is_new_turn(replaced),
        conversation=turns_before,
        temporary=session.temporary or not caller.remembers,
        request_id=request_id,
    )
    if replaced:
        _supersede(session, replaced)
    message = _insert_messages(session, run.pk, [{"role": "user", "content": content}])[-1]
    if not session.title:
        session.title = title_of(content)
    _touch(session)
    return _context(
        session,
        run,
        messages=(*transcript, {"role": "user", "content": content}),
        message_seqs=(*(row.seq for row in rows), message.seq),
        summary=summary,
        user=message,
        user_canonical=turns_before.user,
        chain_before=turns_before.chain_before,
    )


def open_in(
    caller: Caller,
    session: Session,
    *,
    messages: Sequence[dict[str, Any]],
    client_system: str,
    conversation: identity.Conversation,
    regenerates: Run | None,
    temporary: bool,
    request_id: str,
    idempotency_key: str = "",
) -> TurnContext:
    """Open a run for a request that carries its whole context, in the session that gateway.resolve found or made, and
    in its transaction."""
    spoken = [message for message in messages if message.get("role") in set(Message.Role.values)]
    last_user = max(index for index, message in enumerate(spoken) if message["role"] == Message.Role.USER)
    user = spoken[last_user]
    run = _insert_run(
        caller,
        session,
        turn=regenerates.turn if regenerates else session.turns + 1,
        counted=_is_new_turn(regenerates),
        conversation=conversation,
        temporary=session.temporary or temporary,
        request_id=request_id,
        idempotency_key=idempotency_key,
    )
    if regenerates:
        _supersede(session, regenerates)
    # A conversation that began elsewhere: what came before is kept as history, so that the transcript is whole.
    history = spoken[:last_user] if session.message_seq == 0 else []
    stored = _insert_messages(session, run.pk, [*history, user], history=len(history))
    if history:
        session.reviewed_through = stored[-1].seq - 1
    if not session.title:
        session.title = title_of(stored[-1].text)
    _touch(session)
    return _context(
        session,
        run,
        messages=tuple(messages),
        client_system=client_system,
        user=stored[-1],
        user_canonical=conversation.user,
        chain_before=conversation.chain_before,
    )


def close(context: TurnContext, said: Said, *, state: Run.State, error: dict[str, Any] | None = None) -> int:
    """Store what was said and end the run; returns the session's turns since the last review.
    Only a completed run counts, is recorded and is told to the hook.

    Raises RunSuperseded when the lease went to somebody else: then the words are kept with the run and nothing else."""
    closed = _close(context, said, state=state, error=error)
    if closed is None:
        raise RunSuperseded(
            "This turn took too long and was given up; what it said is kept with its run.", run_id=str(context.run_id)
        )
    turns_since_review, record_id = closed
    if record_id and context.agent.settings.inject_memories:
        turn = ThreadTurn(
            record_id=record_id,
            run_id=context.run_id,
            turn=context.turn,
            user=context.user_text,
            assistant=said.text,
            said_at=context.started_at,
        )
        thread_cache.append(context.session_id, turn, after=context.newest_record)
    return turns_since_review


@transaction.atomic
def _close(
    context: TurnContext, said: Said, *, state: Run.State, error: dict[str, Any] | None
) -> tuple[int, UUID | None] | None:
    """`(turns since the last review, id of the turn's record)`; None when the lease went to somebody else."""
    now = timezone.now()
    session = Session.objects.select_for_update().filter(pk=context.session_id).first()
    chain_after = _chain_after(context, said) if state in {Run.State.COMPLETED, Run.State.STOPPED} else ""
    ended = state != Run.State.AWAITING_CLIENT_TOOLS
    closed = Run.objects.filter(pk=context.run_id, state=Run.State.RUNNING, lease_token=context.lease_token).update(
        state=state,
        text=said.text,
        usage=said.usage,
        model=said.model,
        recalled=said.recalled,
        trace=said.trace,
        error=error,
        chain_after=chain_after,
        lease_token=None,
        lease_expires_at=None if ended else now + CLIENT_TOOLS_WAIT,
        finished_at=now if ended else None,
    )
    if closed != 1 or session is None:
        Run.objects.filter(pk=context.run_id).update(text=said.text, superseded=True)
        return None
    if said.messages:
        _insert_messages(session, context.run_id, said.messages)
    record_id = _complete(context, session, said, chain_after, now) if state == Run.State.COMPLETED else None
    session.last_active_at = now
    session.save()
    return session.turns_since_memory_review, record_id


def complete_waiting(now: datetime) -> int:
    """Runs that waited too long for a client's tool results end as completed: what was said so far is the answer.
    Returns how many."""
    waiting = Run.objects.filter(state=Run.State.AWAITING_CLIENT_TOOLS, lease_expires_at__lt=now)
    return sum(_complete_waited(run.pk, now) for run in waiting.order_by("pk")[:WAITING_AT_ONCE])


@transaction.atomic
def _complete_waited(run_id: UUID, now: datetime) -> bool:
    run = Run.objects.select_related("session__agent").get(pk=run_id)
    session = Session.objects.select_for_update(of=("self",)).select_related("agent").get(pk=run.session_id)
    user = Message.objects.filter(run=run, role=Message.Role.USER).order_by("seq").first()
    busy = Run.objects.filter(session=session, state=Run.State.RUNNING).exists()  # another turn: the next sweep then
    if user is None or busy or not reopen(run):
        return False
    context = _context(
        session,
        run,
        messages=(as_openai(user),),
        user=user,
        user_canonical=identity.canonical_content(user.parts or user.text),
        chain_before=run.chain_before,
    )
    said = Said(text=run.text, usage=run.usage, model=run.model, recalled=run.recalled, trace=run.trace)
    _close(context, said, state=Run.State.COMPLETED, error=None)
    return True


def continue_context(
    caller: Caller,
    session: Session,
    run: Run,
    *,
    messages: tuple[dict[str, Any], ...],
    new: Sequence[dict[str, Any]],
    user: Message,
    user_canonical: str,
    client_system: str,
) -> TurnContext:
    """The context of a run that was taken up again; the client's tool results are stored."""
    _insert_messages(session, run.pk, new)
    _touch(session)
    return _context(
        session,
        run,
        messages=messages,
        client_system=client_system,
        user=user,
        user_canonical=user_canonical,
        chain_before=run.chain_before,
    )


def title_of(content: str) -> str:
    """A first title: the beginning of the first message."""
    words = identity.fold(content)
    return words if len(words) <= TITLE_CHARS else words[: TITLE_CHARS - 1].rsplit(" ", 1)[0] + "…"


def lock_session(caller: Caller, session_id: UUID | None) -> Session:
    """The owner's session, locked, with its agent; looks at the key again. Raises NotFound, Unauthorized."""
    rows = Session.objects.select_for_update(of=("self",)).select_related("agent")
    if caller.key_id:
        rows = rows.annotate(key_valid=Exists(valid_keys().filter(pk=caller.key_id)))
    session = rows.filter(owner_id=caller.owner_id, pk=session_id).first() if session_id else None
    if session is None:
        raise NotFound("There is no such session. It may have been deleted.")
    if caller.key_id and not getattr(session, "key_valid", False):
        raise Unauthorized(KEY_REVOKED)
    return session


def _replaced_run(session: Session, replaces: UUID | None) -> Run | None:
    if replaces is None:
        return None
    run = Run.objects.filter(owner_id=session.owner_id, session=session, pk=replaces, superseded=False).first()
    if run is None:
        raise NotFound("There is no such turn in this session to replace.")
    return run


def _is_new_turn(replaced: Run | None) -> bool:
    """Whether completing a run makes one more user turn: a turn that was counted is not counted again, however often
    it is repeated and whatever became of the repetitions."""
    return replaced is None or (replaced.counted and replaced.state != Run.State.COMPLETED)


def _supersede(session: Session, replaced: Run) -> None:
    """A regenerated or edited turn, and what followed it, leave the conversation; they stay readable."""
    later = Run.objects.filter(owner_id=session.owner_id, session=session, superseded=False, turn__gte=replaced.turn)
    later.exclude(state=Run.State.RUNNING).update(superseded=True)
    session.turns = replaced.turn - 1


def _insert_run(
    caller: Caller,
    session: Session,
    *,
    turn: int,
    counted: bool,
    conversation: identity.Conversation,
    temporary: bool,
    request_id: str,
    idempotency_key: str = "",
) -> Run:
    return Run.objects.create(
        owner_id=caller.owner_id,
        session=session,
        turn=turn,
        counted=counted,
        temporary=temporary,
        lease_token=uuid7(),
        lease_expires_at=lease_end(),
        chain_before=conversation.chain_before,
        user_key=conversation.user_key,
        request_id=request_id,
        idempotency_key=idempotency_key,
    )


def _insert_messages(
    session: Session, run_id: UUID, messages: Sequence[dict[str, Any]], *, history: int = 0
) -> list[Message]:
    """Append messages; the first `history` of them came with the client and belong to no run."""
    rows = []
    for index, message in enumerate(messages):
        session.message_seq += 1
        content = message.get("content")
        rows.append(
            Message(
                owner_id=session.owner_id,
                session=session,
                run_id=None if index < history else run_id,
                seq=session.message_seq,
                role=message["role"],
                kind=Message.Kind.HISTORY if index < history else message.get("kind", Message.Kind.CHAT),
                text=identity.text_of(content),
                parts=content if isinstance(content, list) else None,
                tool_calls=message.get("tool_calls"),
                tool_call_id=str(message.get("tool_call_id", ""))[:MAX_CALL_ID],
            )
        )
    return Message.objects.bulk_create(rows)


def _touch(session: Session) -> None:
    session.last_active_at = timezone.now()
    session.save()


def _context(
    session: Session,
    run: Run,
    *,
    messages: tuple[dict[str, Any], ...],
    user: Message,
    user_canonical: str,
    chain_before: str,
    client_system: str = "",
    message_seqs: tuple[int, ...] = (),
    summary: str = "",
) -> TurnContext:
    agent = session.agent
    checked = agent_settings(agent)
    book = None if run.temporary else book_state(session.owner_id, agent.book)
    newest = None
    if book and checked.inject_memories and session.turns:
        records = ThreadRecord.objects.filter(owner_id=session.owner_id, session_id=session.pk, cleared_at=None)
        newest = records.order_by("-id").values_list("id", flat=True).first()
    assert run.lease_token is not None
    return TurnContext(
        owner_id=session.owner_id,
        session_id=session.pk,
        run_id=run.pk,
        lease_token=run.lease_token,
        turn=run.turn,
        counted=run.counted,
        temporary=run.temporary,
        agent=AgentConfig(name=agent.name, version=agent.version, settings=checked, memories=memory_settings_of(agent)),
        book=book,
        messages=messages,
        client_system=client_system,
        message_seqs=message_seqs,
        summary=summary,
        compaction_epoch=session.compaction_epoch,
        user_text=user.text,
        user_canonical=user_canonical,
        user_seq=user.seq,
        newest_record=newest,
        chain_before=chain_before,
        request_id=run.request_id,
        started_at=run.started_at,
        resumed_text=run.text,
        resumed_usage=run.usage,
    )


def _chain_after(context: TurnContext, said: Said) -> str:
    return identity.chain_next(context.chain_before, context.user_canonical, identity.squeeze(said.text))


def _complete(context: TurnContext, session: Session, said: Said, chain_after: str, now: datetime) -> UUID | None:
    session.turns = max(session.turns, context.turn)
    session.chain = chain_after
    session.last_pair = identity.pair_key(context.user_canonical, identity.squeeze(said.text))
    _compact_if_large(context, said)
    if context.temporary or context.book is None:
        return None
    record_id = None
    if context.user_text.strip() and said.text.strip():
        record_id = record_run(owner_id=context.owner_id, session_id=session.pk, run_id=context.run_id).pk
    if not context.counted:
        return record_id
    session.turns_since_memory_review += 1
    event = TurnCompleted(
        owner_id=context.owner_id,
        session_id=session.pk,
        run_id=context.run_id,
        agent_name=context.agent.name,
        settings=context.agent.settings,
        book_id=context.book.book_id,
        book_epoch=context.book.epoch,
        turns_since_review=session.turns_since_memory_review,
        last_seq=session.message_seq,
        reviewed_through=session.reviewed_through,
        completed_at=now,
    )
    if turn_completed(event):
        session.turns_since_memory_review = 0
    return record_id


def _compact_if_large(context: TurnContext, said: Said) -> None:
    tokens = said.usage.get("total_tokens") or estimate(context.messages) + estimate_text(said.text)
    if context.message_seqs and tokens > context.agent.settings.context_token_limit * COMPACTION_SHARE:
        session_id = str(context.session_id)
        transaction.on_commit(lambda: async_task(COMPACTION_TASK, session_id, q_options={"save": False}), robust=True)
