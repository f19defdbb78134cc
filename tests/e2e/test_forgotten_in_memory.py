"""What is forgotten in one process is gone from the memory of another. It looks twice a second; the walk over all its
objects, which shows that, takes longer than that on a busy machine."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.models import Session
from gateway.services import session_delete, session_end
from memories.models import ChangeSet, Memory, Owner, WriteOrigin
from memories.services import Source, book_get_or_create, book_writing
from tests.e2e.running import MANAGE, environment
from tests.factories import memory_make, owner_make, session_make
from tests.in_one_go import book_clear, forget_memories, forget_owner
from tests.reviews.talk import reviewing_agent, say
from tests.waiting import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]

REMEMBERED = "Quillonthorpe"
SAID = "Vantongeren"
ASKED = "Brixenholm"
OF_CHARLIE = "Tamberlayne"


class Holder:
    """The second process."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def call(self, *command: str) -> Any:
        """Run a command there; its answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def holds(self, *words: str) -> dict[str, int]:
        """How many of its objects hold each word."""
        return dict(zip(words, self.call("count", *(word[::-1] for word in words)), strict=True))

    def forgets(self, *words: str) -> None:
        """Wait until it holds none of the words."""
        eventually(lambda: not any(self.holds(*words).values()), within=20.0, saying=f"{words} gone from memory")


@pytest.fixture
def holder(home: Path, shared: dict[str, str]) -> Iterator[Holder]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.e2e.holding_process"],
        env=environment(home, shared) | {"DJANGO_SETTINGS_MODULE": "config.settings"},
        cwd=MANAGE.parent,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    yield Holder(process)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    process.wait(10)
    process.stdout.close()


@pytest.fixture
def charlie(db: None) -> Owner:
    """Another person, of whom nothing is forgotten."""
    owner = owner_make("charlie")
    memory_make(owner, f"Lives in {OF_CHARLIE} with a cat.")
    return owner


@pytest.fixture
def session(alice: Owner) -> Session:
    """A conversation of Alice's with one recorded turn."""
    session = session_make(alice, reviewing_agent(memory_review_interval=0))
    say(session, f"My dentist is Dr. {SAID}.")
    for number in range(30):
        memory_make(alice, f"Plain fact number {number}.")
    memory_make(alice, f"Keeps a heron called {REMEMBERED}.")
    return session


def forget_everything(session: Session) -> None:
    forget_memories(session.owner_id)


def forget_the_owner(session: Session) -> None:
    forget_owner(session.owner)


def clear_the_book(session: Session) -> None:
    book_clear(book_get_or_create(session.owner_id, "main"), actor=f"user:{session.owner.user_id}")


def forget_the_book(session: Session) -> None:
    forget_memories(session.owner_id, book="main")


def delete_the_memory(session: Session) -> None:
    memory = Memory.objects.get(content__contains=REMEMBERED)
    source = Source(actor=f"user:{session.owner.user_id}", origin=WriteOrigin.USER, kind=ChangeSet.Kind.EDIT)
    with book_writing(memory.book, source) as writer:
        writer.delete(memory.number)


@pytest.mark.parametrize(
    ("forget", "words"),
    [
        (forget_everything, (REMEMBERED, SAID, ASKED)),
        (forget_the_owner, (REMEMBERED, SAID, ASKED)),
        (clear_the_book, (REMEMBERED, SAID)),
        (forget_the_book, (REMEMBERED, ASKED)),
        (delete_the_memory, (REMEMBERED,)),
        (session_delete, (SAID, ASKED)),
        (session_end, (SAID,)),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_words_leave_the_memory_of_another_process(
    holder: Holder, session: Session, charlie: Owner, forget: Callable[[Session], None], words: tuple[str, ...]
) -> None:
    alice = str(session.owner_id)
    assert holder.call("warm", alice, str(session.pk)) > 1
    holder.call("ask", alice, ASKED[::-1])
    holder.call("warm", str(charlie.pk), str(session_make(charlie, session.agent).pk))
    assert all(holder.holds(*words, OF_CHARLIE).values()), "nothing was warm"
    forget(session)
    holder.forgets(*words)
    assert holder.holds(OF_CHARLIE)[OF_CHARLIE], "what another person said is not dropped"
