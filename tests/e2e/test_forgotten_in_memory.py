"""What is forgotten in one process is gone from the memory of another. It looks twice a second; the walk over all its
objects, which shows that, takes longer than that on a busy machine."""

import json
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from gateway.models import Agent, Session
from gateway.services import session_delete, session_end
from memories.models import ChangeSet, Invalidation, Memory, Owner, WriteOrigin
from memories.services import Source, book_get_or_create, book_writing
from tests import warm_process
from tests.e2e.running import AS_SHIPPED, environment
from tests.factories import memory_make, owner_make, session_make
from tests.reviews.talk import reviewing_agent, say
from tests.unsliced import book_clear, forget_memories, forget_owner
from tests.waiting import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]

OF_CHARLIE = "Tamberlayne"


class Words(NamedTuple):
    """What is known of one person, told from all others' by its beginning."""

    remembered: str
    said: str
    asked: str


def words_of(letter: str) -> Words:
    return Words(f"Qu{letter}llonthorpe", f"V{letter}ntongeren", f"Br{letter}xenholm")


class Holder:
    """The second process."""

    def __init__(self, process: warm_process.Program) -> None:
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

    def forgets(self, what: str, words: Sequence[str], keeps: Sequence[str]) -> None:
        """Wait until it holds none of the words, and check that it still holds the others. It looks at its objects when
        it has been told: that takes a second."""
        newest = Invalidation.objects.latest("pk").pk
        eventually(lambda: self.call("told") >= newest, within=20.0, description=f"The news of {what}")

        def without() -> dict[str, int]:
            held = self.holds(*words, *keeps)
            return {} if any(held[word] for word in words) else held

        held = eventually(without, within=20.0, description=f"{words} gone from memory ({what})")
        assert all(held[word] for word in keeps), f"{held} ({what})"


@pytest.fixture
def holder(home: Path, shared: dict[str, str]) -> Iterator[Holder]:
    process = warm_process.start(
        ["-m", "tests.e2e.holding_process"],
        env=environment(home, shared) | AS_SHIPPED,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    yield Holder(process)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    process.wait(10)
    process.stdout.close()


def charlie_make() -> Owner:
    """Another person, of whom nothing is forgotten."""
    owner = owner_make("charlie")
    memory_make(owner, f"Lives in {OF_CHARLIE} with a cat.")
    return owner


def session_of(agent: Agent, name: str, words: Words) -> Session:
    """A conversation of a new person with one recorded turn."""
    session = session_make(owner_make(name), agent)
    say(session, f"My dentist is Dr. {words.said}.")
    for number in range(30):
        memory_make(session.owner, f"Plain fact number {number}.")
    memory_make(session.owner, f"Keeps a heron called {words.remembered}.")
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
    memory = Memory.objects.get(book__owner=session.owner, content__contains="heron")
    source = Source(actor=f"user:{session.owner.user_id}", origin=WriteOrigin.USER, kind=ChangeSet.Kind.EDIT)
    with book_writing(memory.book, source) as writer:
        writer.delete(memory.number)


GOES: dict[Callable[[Session], None], Callable[[Words], tuple[str, ...]]] = {
    forget_everything: lambda words: words,
    forget_the_owner: lambda words: words,
    clear_the_book: lambda words: (words.remembered, words.said),
    forget_the_book: lambda words: (words.remembered, words.asked),
    delete_the_memory: lambda words: (words.remembered,),
    session_delete: lambda words: (words.said, words.asked),
    session_end: lambda words: (words.said,),
}


def test_words_leave_the_memory_of_another_process(holder: Holder) -> None:
    agent = reviewing_agent(memory_review_interval=0)
    charlie = charlie_make()
    holder.call("warm", str(charlie.pk), str(session_make(charlie, agent).pk))
    people = []
    for forget, letter in zip(GOES, "aeiouyz", strict=True):
        words = words_of(letter)
        session = session_of(agent, forget.__name__, words)
        assert holder.call("warm", str(session.owner_id), str(session.pk)) > 1
        holder.call("ask", str(session.owner_id), words.asked[::-1])
        people.append((forget, session, words))
    # Nothing of the next goes with what is forgotten of one, nor what another person said.
    kept = [(*words, OF_CHARLIE) for _, _, words in people] + [(OF_CHARLIE,)]
    assert all(holder.holds(*kept[0]).values())
    for (forget, session, words), keeps in zip(people, kept[1:], strict=True):
        forget(session)
        holder.forgets(forget.__name__, GOES[forget](words), keeps)
