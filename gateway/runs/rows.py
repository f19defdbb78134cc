"""Stores the rows of a turn's transactions, and reads the context of the turn."""

from collections.abc import Sequence, Set
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Subquery
from django.utils import timezone

from gateway.attachments.in_message import text_without_files
from gateway.attachments.uses import uses_add
from gateway.messages import text_of
from gateway.models import Agent, Message, Run, Session
from gateway.runs import fingerprint
from gateway.runs.context import AgentConfig, RunOutput, TurnContext, agent_config
from gateway.runs.instructions import hashes_copy
from gateway.runs.leases import lease_end, this_process
from gateway.runs.participants import is_from_other, name_of
from gateway.runs.session_rows import canonical_question, from_run, shown_runs
from gateway.runs.wrappers import own_words
from gateway.upstream.kept import kept_of
from memories.books import book_state
from memories.database.statements import Insert, RowFactory, Select, UpdateRow, given
from memories.errors import Conflict
from memories.ids import uuid7, uuid7_after
from memories.models import ThreadRecord

TITLE_CHARS = 60
MAX_CALL_ID = 128
TURNS_AT_ONCE = 200
"""About how many turns one transaction hides or shows: their rows are wide."""

_NEW_RUN, NEW_MESSAGE = RowFactory(Run), RowFactory(Message)
_INSERT_RUN: Insert[Run] = Insert(Run)
# The database looks up the run that a new one follows in the insert statement.
_INSERT_NEXT_RUN: Insert[Run] = Insert(
    Run,
    lambda: {
        "follows": Subquery(
            Run.objects.filter(**given(Run, "owner", "session"), superseded=False).order_by("-id").values("pk")[:1]
        )
    },
)
INSERT_MESSAGES: Insert[Message] = Insert(Message)
INSERT_SESSIONS: Insert[Session] = Insert(Session)
_TOUCH = UpdateRow(
    Session, "title", "turns", "turns_since_memory_review", "message_seq", "reviewed_through", "last_active_at"
)
_NEWEST_RECORD = Select(
    lambda: (
        ThreadRecord.objects.filter(**given(ThreadRecord, "owner_id", "session_id"), cleared_at=None)
        .order_by("-id")
        .values_list("id")[:1]
    )
)


class LaterTurnsShown(Conflict):
    """More turns follow a replaced one than one transaction hides: the caller has to hide them first, and try again
    (`gateway.runs.branches`). Raised before anything is stored."""

    def __init__(self, replaced: Run) -> None:
        super().__init__("Many turns follow this one. Send the request again.")
        self.replaced = replaced


def turn_open(
    session: Session,
    messages: Sequence[dict[str, Any]],
    *,
    history: int = 0,
    others: Set[str] = frozenset(),
    canonical: str,
    replaces: Run | None,
    **fields: Any,
) -> tuple[TurnContext, list[Message]]:
    """Open a run with these fields and its own lease that answers the last of these messages, and store them. Return
    its context, without the transcript, and the rows. `canonical` is the canonical text of all messages but the first
    `history`, which belong to no run; `others` are the names of other participants than the person.

    The run follows the last one of the branch that is shown, which the database looks up, or the predecessor of the run
    that it replaces. A replaced run and those after it leave that branch but stay readable; their turns no longer
    count. Raises LaterTurnsShown if these are too many for a transaction and were not hidden before."""
    run = _run_open(session, replaces=replaces, content=messages[-1].get("content"), **fields)
    rows = messages_insert(session, run.pk, messages, history=history, others=others)
    if not session.title:
        session.title = title_of(text_without_files(rows[-1].parts or ()) or rows[-1].text)
    session_touch(session)
    return turn_context(session, run, rows[history:], canonical=canonical, replaced=replaces), rows


def _run_open(
    session: Session, *, replaces: Run | None, content: Any, user_key: str, temporary: bool, **fields: Any
) -> Run:
    hidden = session.branch_end is not None  # under the lease of this request, or the session would be busy
    if replaces and not hidden and session.turns - replaces.turn > TURNS_AT_ONCE:
        raise LaterTurnsShown(replaces)
    run = _NEW_RUN.row(
        id=uuid7_after(session.last_active_at),  # the newest run of a session must have the greatest id
        owner_id=session.owner_id,
        session_id=session.pk,
        follows=replaces.follows if replaces else None,
        turn=replaces.turn if replaces else session.turns + 1,
        counted=replaces is None or _replacement_counts(replaces, session, user_key, content),
        temporary=session.temporary or temporary,
        lease_token=uuid7(),
        lease_expires_at=lease_end(),
        holder=this_process(),
        user_key=user_key,
        **fields,
    )
    _run_insert(session, run, replaces)
    if hidden:
        session.branch_end = session.branch_until = None
        session.save(update_fields=["branch_end", "branch_until"])
    return run


def _run_insert(session: Session, run: Run, replaces: Run | None) -> None:
    """Insert a run; hide the one that it replaces and those after, and take their turns from the session's counters."""
    if replaces is None:
        _INSERT_NEXT_RUN.execute([run], owner=run.owner_id, session=session.pk)
        return
    _INSERT_RUN.execute([run])
    abandoned = shown_runs(session).filter(from_run(replaces)).exclude(state=Run.State.RUNNING)
    abandoned.update(superseded=True)
    session.turns_since_memory_review = max(0, session.turns_since_memory_review - _turns_removed(replaces, session))
    session.turns = replaces.turn - 1
    # If this run fails, its session is as if the first one had: who goes on with the replaced answer means its branch.
    session.history_hash = replaces.history_hash_before if replaces.turn > 1 else ""
    session.save(update_fields=["history_hash"])


def _turns_removed(replaced: Run, session: Session) -> int:
    """Return how many completed turns leave the branch that is shown when a run is replaced."""
    return max(0, session.turns - replaced.turn + 1)


def _replacement_counts(replaced: Run, session: Session, user_key: str, content: Any) -> bool:
    """Return True if a run that replaces another one counts as a turn since the last review once it completes: its
    message has other words, or the other run was such a turn, and is subtracted, or never completed. A message that a
    review has read is not counted again, however often it is answered and whatever becomes of the answers."""
    if user_key != replaced.user_key and _has_other_words(replaced, content):
        return True
    if replaced.state != Run.State.COMPLETED:
        return replaced.counted
    return session.turns_since_memory_review >= _turns_removed(replaced, session)


def _has_other_words(replaced: Run, content: Any) -> bool:
    """Return True if a message says something that the message of a replaced run does not. What clients wrap around a
    person's words does not matter, and neither does white space: resent messages differ in both."""
    texts = Message.objects.filter(owner_id=replaced.owner_id, run=replaced, role=Message.Role.USER)
    before = texts.order_by("seq").values_list("text", flat=True).last() or ""
    words = fingerprint.strip_whitespace(own_words(text_of(content)))
    return bool(words) and words != fingerprint.strip_whitespace(own_words(before))


def _answered_before(replaced: Run) -> bool:
    """Return True if the turn of a replaced run has had an answer, from that run or an earlier one."""
    same = Run.objects.filter(session=replaced.session_id, turn=replaced.turn, follows=replaced.follows)
    return same.filter(state=Run.State.COMPLETED).exists()


def messages_insert(
    session: Session, run_id: UUID | None, messages: Sequence[dict[str, Any]], **more: Any
) -> list[Message]:
    """Append messages to a session. `more` are arguments of `message_rows`."""
    rows = message_rows(session.owner_id, run_id, messages, **more)
    messages_append(session, rows)
    return rows


def message_rows(
    owner_id: UUID,
    run_id: UUID | None,
    messages: Sequence[dict[str, Any]],
    *,
    history: int = 0,
    others: Set[str] = frozenset(),
    kind: Message.Kind = Message.Kind.CHAT,
    created_at: datetime | None = None,
) -> list[Message]:
    """Return rows for `messages_append`. The first `history` messages are the client's history and belong to no run;
    `others` are the names of other participants than the person. Needs no transaction."""
    created_at = created_at or timezone.now()
    called = any(message.get("tool_calls") for message in messages)
    return [
        NEW_MESSAGE.row(
            owner_id=owner_id,
            run_id=None if index < history else run_id,
            role=message["role"],
            kind=Message.Kind.HISTORY if index < history else kind,
            text=text_of(content := message.get("content")),
            parts=content if isinstance(content, list) else None,
            tool_calls=message.get("tool_calls") if message["role"] == Message.Role.ASSISTANT else None,
            tool_call_id=str(message.get("tool_call_id", ""))[:MAX_CALL_ID],
            participant=name_of(message) if is_from_other(message, others) else None,
            # No server requires the reasoning of a turn without tools.
            kept=kept.as_json() if called and (kept := kept_of(message)) else None,
            created_at=created_at,
        )
        for index, message in enumerate(messages)
    ]


def messages_append(session: Session, rows: Sequence[Message]) -> None:
    """Store new messages at the end of a locked session, whose row is saved by `session_touch`."""
    for row in rows:
        session.message_seq += 1
        row.session_id, row.seq = session.pk, session.message_seq
    INSERT_MESSAGES.execute(rows)
    uses_add(session, rows)


def session_touch(session: Session) -> None:
    """Save a session as active now: insert a new one; of another, update the fields that a turn changes."""
    session.touch()
    if session._state.adding:
        INSERT_SESSIONS.execute([session])
        if session.parent_id:
            hashes_copy(session.parent_id, session)
    else:
        _TOUCH.execute(session)


def title_of(content: str) -> str:
    """Return an initial title: the beginning of the first message, of the user's own words if it has any."""
    words = " ".join((own_words(content) or content).split())
    return words if len(words) <= TITLE_CHARS else words[: TITLE_CHARS - 1].rsplit(" ", 1)[0] + "…"


def turn_context(
    session: Session,
    run: Run,
    asked: Sequence[Message],
    *,
    canonical: str | None = None,
    agent: Agent | None = None,
    replaced: Run | None = None,
) -> TurnContext:
    """Return the context of a turn, without its transcript, in the transaction that opens or resumes its run. `asked`
    are its user messages, and `canonical` their canonical text if the client sent more. `agent` is given if it is not
    the session's, `replaced` is the run that the turn replaces."""
    agent = agent or session.agent
    book = None if run.temporary else book_state(session.owner_id, agent.book)
    # A resumed run keeps what it was given, unless its book was cleared or forgotten meanwhile.
    is_valid = run.injected is not None and run.injected["epoch"] == (book.epoch if book else None)
    injected = run.injected if is_valid else None
    config = _config_of(agent, injected if agent == session.agent else None)
    remembers = book is not None and config.settings.inject_memories and session.turns
    newest = _NEWEST_RECORD.row(owner_id=session.owner_id, session_id=session.pk) if remembers else None
    assert run.lease_token is not None
    return TurnContext(
        owner_id=session.owner_id,
        session_id=session.pk,
        run_id=run.pk,
        lease_token=run.lease_token,
        turn=run.turn,
        counted=run.counted,
        answered_before=replaced is not None and _answered_before(replaced),
        temporary=run.temporary,
        agent=config,
        book=book,
        compaction_epoch=session.compaction_epoch,
        user_text=own_words(asked[-1].text) or asked[-1].text,
        user_canonical=canonical_question(asked) if canonical is None else canonical,
        newest_record=newest[0] if newest else None,
        history_hash_before=run.history_hash_before,
        request_id=run.request_id,
        started_at=run.started_at,
        earlier=RunOutput.of(run),
        injected=injected,
    )


def _config_of(agent: Agent, injected: dict[str, Any] | None) -> AgentConfig:
    """Return the configuration of an agent. A resumed run keeps the settings that shaped its stored injection."""
    config = agent_config(agent)
    if injected is None:
        return config
    stored = {name: injected[name] for name in ("instructions", "recall_role")}
    return replace(config, settings=config.settings.model_copy(update=stored))
