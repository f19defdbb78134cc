"""The data of growth.py: other owners, inserted in bulk, and the measured owner, who uses the shipped code. Import it
only after django.setup()."""

import asyncio
import random
from collections.abc import Callable
from itertools import count

from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection, transaction
from django.test import Client

import scanning
from gateway.models import Agent, Message, Run, Session
from gateway.runs.closing import close
from gateway.runs.context import RunOutput, TurnContext
from gateway.runs.native import open_native
from gateway.services import agent_save, session_create
from gateway.turns.injection import build_messages, prepare
from memories.api.search import SearchIn, _search
from memories.caller import Caller
from memories.entry_rules import content_key
from memories.filters import MemoryFilters
from memories.models import Book, ChangeSet, Memory, Owner, Revision, WriteOrigin
from memories.services import MemoryFields, Source, book_get_or_create, book_writing, memory_state, owner_for_user

# fmt: off
THINGS = ["garden", "bread", "harbour", "invoice", "kettle", "violin", "ticket", "budget", "lesson", "printer",
          "marathon", "recipe", "passport", "router"]
VERBS = ["likes", "avoids", "plans", "paints", "repairs", "studies", "collects", "prefers", "schedules", "compares"]
TIMES = ["in spring", "every Friday", "before work", "with the children", "at the office", "on holiday"]
# fmt: on
TURNS_PER_SESSION = 5  # of two messages each
LONG_SESSION_TURNS = 200
_BATCH = 2000
_rng = random.Random(7)
_numbers = count(1)


def migrate() -> None:
    """Create the tables and the measured agent."""
    call_command("migrate", verbosity=0)
    agent_save("bench", {"inject_memories": True, "user_char_limit": 0, "memory_char_limit": 0})


def sentence() -> str:
    """Return a short statement that no other memory makes."""
    return f"{_rng.choice(VERBS).capitalize()} the {_rng.choice(THINGS)} {_rng.choice(TIMES)}, note {next(_numbers)}."


@transaction.atomic
def add_owners(owners: int, each: int) -> None:
    """Add owners with `each` memories and a session of some turns, in bulk."""
    agent = Agent.objects.get(name="bench")
    people = Owner.objects.bulk_create(Owner(memory_seq=each, external_id="bench") for _ in range(owners))
    books = Book.objects.bulk_create(Book(owner=owner, name="main") for owner in people)
    groups = ChangeSet.objects.bulk_create(
        ChangeSet(owner=book.owner, book=book, kind="edit", actor="system", write_origin=WriteOrigin.USER)
        for book in books
    )
    for group in groups:
        memories = Memory.objects.bulk_create(_memory(group, number) for number in range(1, each + 1))
        Revision.objects.bulk_create(_revision(group, memory) for memory in memories)
    _add_sessions(people, agent)
    _analyse()


def _memory(group: ChangeSet, number: int) -> Memory:
    content = sentence()
    return Memory(
        owner_id=group.owner_id,
        book_id=group.book_id,
        number=number,
        target="user",
        content=content,
        content_key=content_key(content),
        write_origin=WriteOrigin.USER,
        scan_hash=scanning.scan_hash(content, []),
    )


def _revision(group: ChangeSet, memory: Memory) -> Revision:
    return Revision(
        owner_id=memory.owner_id,
        memory=memory,
        change_set=group,
        version=1,
        action=Revision.Action.ADD,
        after=memory_state(memory),
        actor="system",
        write_origin=WriteOrigin.USER,
    )


def _add_sessions(people: list[Owner], agent: Agent) -> None:
    _add_turns(
        Session.objects.bulk_create(
            Session(
                owner=owner, agent=agent, turns=TURNS_PER_SESSION, message_seq=2 * TURNS_PER_SESSION, title="A talk"
            )
            for owner in people
        )
    )


def _long_session(owner: Owner, agent: Agent, turns: int) -> Session:
    session = Session.objects.create(owner=owner, agent=agent, turns=turns, message_seq=2 * turns, title="A long talk")
    _add_turns([session])
    return session


def _add_turns(sessions: list[Session]) -> None:
    runs = Run.objects.bulk_create(
        (
            Run(
                owner_id=session.owner_id,
                session=session,
                turn=turn,
                state=Run.State.COMPLETED,
                request_id="bench",
                lease_token=None,
                usage_counted=True,
            )
            for session in sessions
            for turn in range(1, session.turns + 1)
        ),
        batch_size=_BATCH,
    )
    Message.objects.bulk_create(
        (
            Message(
                owner_id=run.owner_id,
                session_id=run.session_id,
                run=run,
                seq=2 * run.turn - 1 + part,
                role=role,
                text=sentence(),
            )
            for run in runs
            for part, role in enumerate(("user", "assistant"))
        ),
        batch_size=_BATCH,
    )


def _analyse() -> None:
    """Update PostgreSQL's statistics, as autovacuum would have done in the meantime."""
    if connection.vendor == "postgresql":
        transaction.on_commit(lambda: connection.cursor().execute("ANALYZE"))


class Subject:
    """The measured owner: an administrator with a book, a session and a browser."""

    def __init__(self) -> None:
        user = User.objects.create_superuser("bench", password="only for this run")
        self.owner = owner_for_user(user)
        self.caller = Caller(owner_id=self.owner.pk, actor=f"user:{user.pk}")
        self.session = session_create(self.owner, Agent.objects.get(name="bench"))
        self.book = book_get_or_create(self.owner.pk, "main")
        self.browser = Client()
        self.browser.force_login(user)
        self.open: TurnContext | None = None
        self.long_session = _long_session(self.owner, self.session.agent, LONG_SESSION_TURNS)

    def grow(self, size: int) -> None:
        """Add memories until the book has `size`; it never shrinks."""
        missing = size - Memory.objects.filter(book=self.book).count()
        with book_writing(self.book, self._source()) as writer:
            for _ in range(missing):
                writer.add(MemoryFields(content=sentence(), target="user"))

    def memories_in_database(self) -> int:
        return Memory.objects.count()

    def turn_start(self, loop: asyncio.AbstractEventLoop) -> Callable[[], object]:
        """Return a callable that goes from a request to the messages for the model."""

        def act() -> object:
            text = f"What did I say about the {_rng.choice(THINGS)} {_rng.choice(TIMES)}?"
            self.open = open_native(
                self.caller, session_id=self.session.pk, content=text, replaces=None, request_id="bench"
            )
            return build_messages(self.open, loop.run_until_complete(prepare(self.open)))

        return act

    def turn_end(self) -> None:
        """Close the turn of turn_start() as failed, so that nothing of it stays in the conversation."""
        assert self.open is not None
        close(self.open, RunOutput(), state=Run.State.FAILED, error={"code": "bench", "message": "not asked"})

    def add(self) -> None:
        """Add one memory."""
        with book_writing(self.book, self._source()) as writer:
            assert writer.add(MemoryFields(content=sentence(), target="user")).changed

    def search(self) -> None:
        """Search as POST /api/memories/search does."""
        request = SearchIn(query=f"{_rng.choice(THINGS)} {_rng.choice(TIMES)}")
        found = _search(self.caller, request, MemoryFilters(), None)
        assert found["data"], "the search found nothing"

    def admin_list(self) -> None:
        """Load the admin's first page of memories."""
        self._page("/admin/memories/memory/")

    def dashboard(self) -> None:
        """Load the admin's first page, warm."""
        self._page("/admin/")

    def session_page(self) -> None:
        """Load the chat page of the long session."""
        self._page(f"/c/{self.long_session.pk}/")

    def earlier_turns(self) -> None:
        """Load the turns of the long session just before those that the chat page shows first."""
        self._page(f"/fragments/turns/{self.long_session.pk}/?before={2 * LONG_SESSION_TURNS - 39}")

    def _page(self, path: str) -> None:
        answer = self.browser.get(path)
        assert answer.status_code == 200, f"{path} answered {answer.status_code}"

    def _source(self) -> Source:
        return Source(actor=self.caller.actor, origin=WriteOrigin.USER)
