"""The operations of transactions.py and their data. Import it only after django.setup()."""

import asyncio
import secrets
from collections.abc import Callable
from itertools import count

from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone

from gateway.models import Agent, Message, Run, Session
from gateway.runs.branches import branch_choose
from gateway.runs.matching import Continuation
from gateway.runs.native import open_native
from gateway.runs.opening import open_run
from gateway.runs.requested import V1Request
from gateway.runs.v1 import open_v1
from gateway.services import session_create, session_forget
from gateway.sessions.keeping import session_delete_slices
from gateway.sessions.message_index import history_index
from memories.caller import Caller
from memories.database.batches import finish
from memories.forgetting import erasure_begin, erasure_slices, forget_slices
from memories.models import Erasure, Owner, ThreadRecord, WriteOrigin
from memories.services import MemoryFields, Source, book_get_or_create, book_writing, owner_for_user
from reviews.consolidation.clear import clear_code_create, clear_confirmed
from reviews.ingest import ingest_prepare, review_ingest

Prepare = Callable[[], Callable[[], object]]
MESSAGES = 500
MEMORIES = 3_000
SESSIONS = 300
_BATCH = 2_000
_numbers = count(1)


def operations(turns: int) -> dict[str, Prepare]:
    """Return functions by name that prepare an operation, which is measured when it is called."""
    return {
        f"branch: choose the other first of {turns:,} turns": lambda: _branch(turns),
        f"turn: replace the first of {turns:,} turns": lambda: _replace(turns),
        "ingest: 500 messages": lambda: _ingest(10),
        "ingest: 500 messages of 4,000 characters": lambda: _ingest(4_000),
        "chat_completions: 10,000 messages": lambda: _resent(10_000),
        f"session: delete {turns:,} turns": lambda: _delete(turns),
        f"session: forget the memory of {turns:,} turns": lambda: _forget_session(turns),
        f"forget: {MEMORIES:,} memories": _forget,
        f"clear: {MEMORIES:,} memories, {SESSIONS:,} sessions": _clear,
        f"account: delete {MEMORIES:,} memories, {turns:,} turns": lambda: _delete_account(turns),
    }


def _person() -> tuple[Owner, Caller]:
    user = User.objects.create_user(f"bench{next(_numbers)}")
    owner = owner_for_user(user)
    return owner, Caller(owner_id=owner.pk, actor=f"user:{user.pk}")


def _words(characters: int) -> str:
    """Return a text of different words."""
    return " ".join(secrets.token_hex(3) for _ in range(characters // 7 + 1))[: max(characters, 4)]


def _long_session(owner: Owner, turns: int) -> tuple[Session, list[Run]]:
    """Return a session of so many turns and its runs, with another version of the first turn, which is last."""
    session = session_create(owner, Agent.objects.get(name="bench"))
    wide = {
        "trace": {"steps": [{"model": "bench", "ms": 800, "text": "x" * 60} for _ in range(12)]},
        "recalled": [{"id": number, "why": "matches the words", "score": 0.5} for number in range(10)],
        "usage": {"prompt_tokens": 1_200, "completion_tokens": 300, "total_tokens": 1_500},
        "reasoning": "It is asked for a place. " * 60,
        "text": "An answer of some length. " * 40,
    }
    runs: list[Run] = []
    for turn in [*range(1, turns + 1), 1]:
        last = len(runs) == turns
        follows = runs[-1].pk if runs and not last else None
        run = Run(owner=owner, session=session, turn=turn, follows=follows, state=Run.State.COMPLETED, **wide)
        run.superseded, run.usage_counted, run.request_id, run.lease_token = last, True, secrets.token_hex(16), None
        run.history_hash_before = run.history_hash_after = run.user_key = secrets.token_hex(32)
        runs.append(run)
    Run.objects.bulk_create(runs, batch_size=500)
    rows = [
        Message(owner=owner, session=session, run=run, seq=2 * place + part, role=role, text=_words(300))
        for place, run in enumerate(runs)
        for part, role in enumerate(("user", "assistant"), start=1)
    ]
    Message.objects.bulk_create(rows, batch_size=_BATCH)
    records = [ThreadRecord(owner=owner, session_id=session.pk, run_id=run.pk) for run in runs]
    ThreadRecord.objects.bulk_create(records, batch_size=_BATCH)
    session.turns, session.message_seq, session.last_active_at = turns, len(rows), timezone.now()
    session.save()
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")
    return session, runs


def _branch(turns: int) -> Callable[[], object]:
    owner, caller = _person()
    session, runs = _long_session(owner, turns)
    return lambda: finish(branch_choose(caller, session.pk, runs[-1].pk))


def _replace(turns: int) -> Callable[[], object]:
    owner, caller = _person()
    session, runs = _long_session(owner, turns)
    return lambda: asyncio.run(
        open_run(
            open_native,
            caller,
            session_id=session.pk,
            content="Once more.",
            replaces=runs[0].pk,
            request_id="bench",
        )
    )


def _ingest(characters: int) -> Callable[[], object]:
    _, caller = _person()
    messages = [{"role": ("user", "assistant")[place % 2], "content": _words(characters)} for place in range(MESSAGES)]
    prepared = ingest_prepare(caller, messages)

    def store() -> None:
        review_ingest(caller, prepared)
        finish(history_index(caller.owner_id))

    return store


def _resent(count: int) -> Callable[[], object]:
    _, caller = _person()
    messages = [
        {"role": ("user", "assistant")[place % 2], "content": f"{_words(10)} {place}"} for place in range(count - 1)
    ]
    ref = secrets.token_hex(8)
    request = V1Request(caller=caller, agent="bench", messages=tuple(messages), client_system="", session_ref=ref)
    _ = request.conversation  # read before it is measured
    return lambda: open_v1(request, continuation=Continuation())


def _delete(turns: int) -> Callable[[], object]:
    owner, _ = _person()
    session, _ = _long_session(owner, turns)
    return lambda: finish(session_delete_slices(session))


def _forget_session(turns: int) -> Callable[[], object]:
    owner, _ = _person()
    session, _ = _long_session(owner, turns)
    return lambda: session_forget(session)


def _add_memories(owner: Owner) -> None:
    source = Source(actor="user:1", origin=WriteOrigin.USER)
    with book_writing(book_get_or_create(owner.pk, "main"), source) as writer:
        for _ in range(MEMORIES):
            writer.add(MemoryFields(content=_words(80), target="user"))


def _forget() -> Callable[[], object]:
    owner, _ = _person()
    _add_memories(owner)
    return lambda: finish(forget_slices(owner.pk))


def _clear() -> Callable[[], object]:
    owner, _ = _person()
    _add_memories(owner)
    agent = Agent.objects.get(name="bench")
    Session.objects.bulk_create(Session(owner=owner, agent=agent, message_seq=4, turns=2) for _ in range(SESSIONS))
    book = book_get_or_create(owner.pk, "main")
    return lambda: finish(clear_confirmed(book, clear_code_create(book), actor="user:1"))


def _delete_account(turns: int) -> Callable[[], object]:
    owner, _ = _person()
    _add_memories(owner)
    _long_session(owner, turns)
    return lambda: finish(erasure_slices(erasure_begin(owner.pk, Erasure.Scope.ACCOUNT)))
