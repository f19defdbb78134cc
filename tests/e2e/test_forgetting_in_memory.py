"""Data forgotten in one process disappears from the memory of another.

The other process checks for invalidations twice a second. Walking all its objects takes longer on a busy machine."""

import json
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from gateway.models import Agent, Session
from gateway.services import session_end
from memories.models import ChangeSet, Invalidation, Memory, Owner, WriteOrigin
from memories.services import Source, book_get_or_create, book_writing
from tests import warm_process
from tests.e2e.running import AS_SHIPPED, environment
from tests.factories import memory_make, owner_make, session_make
from tests.reviews.talk import reviewing_agent, say
from tests.unsliced import book_clear, forget_memories, forget_owner, session_delete
from tests.waiting import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]

CHARLIES_WORD = "Tamberlayne"


class Words(NamedTuple):
    """A person's data: words with unique prefixes."""

    remembered: str
    mentioned: str
    queried: str


def words_of(letter: str) -> Words:
    return Words(f"Qu{letter}llonthorpe", f"V{letter}ntongeren", f"Br{letter}xenholm")


class CachingProcess:
    """The second process (tests/e2e/caching_process.py)."""

    def __init__(self, process: warm_process.Program) -> None:
        self._process = process

    def call(self, *command: str) -> Any:
        """Run a command in it and return the answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def counts(self, *words: str) -> dict[str, int]:
        """Return how many of its objects contain each word."""
        return dict(zip(words, self.call("count", *(word[::-1] for word in words)), strict=True))

    def check_forgotten(self, words: Sequence[str], kept: Sequence[str]) -> None:
        """Wait until it contains none of the words, and check that it still contains `kept`. Count only after it has
        seen the newest invalidation, since counting takes a second."""
        newest = Invalidation.objects.latest("pk").pk
        eventually(lambda: self.call("invalidated") >= newest, within=20.0, description=f"the invalidation of {words}")

        def counts_without_words() -> dict[str, int]:
            counts = self.counts(*words, *kept)
            return {} if any(counts[word] for word in words) else counts

        counts = eventually(counts_without_words, within=20.0, description=f"{words} to disappear from memory")
        assert all(counts[word] for word in kept), counts


@pytest.fixture
def other_process(home: Path, shared: dict[str, str]) -> Iterator[CachingProcess]:
    process = warm_process.start(
        ["-m", "tests.e2e.caching_process"],
        env=environment(home, shared) | AS_SHIPPED,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    yield CachingProcess(process)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    process.wait(10)
    process.stdout.close()


def charlie_make() -> Owner:
    """Create another person, whose data is never forgotten."""
    owner = owner_make("charlie")
    memory_make(owner, f"Lives in {CHARLIES_WORD} with a cat.")
    return owner


def session_of(agent: Agent, name: str, words: Words) -> Session:
    """Create a person with memories and a session with one recorded turn."""
    session = session_make(owner_make(name), agent)
    say(session, f"My dentist is Dr. {words.mentioned}.")
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


FORGOTTEN_WORDS: dict[Callable[[Session], None], Callable[[Words], tuple[str, ...]]] = {
    forget_everything: lambda words: words,
    forget_the_owner: lambda words: words,
    clear_the_book: lambda words: (words.remembered, words.mentioned),
    forget_the_book: lambda words: (words.remembered, words.queried),
    delete_the_memory: lambda words: (words.remembered,),
    session_delete: lambda words: (words.mentioned, words.queried),
    session_end: lambda words: (words.mentioned,),
}


def test_forgotten_words_leave_the_memory_of_another_process(other_process: CachingProcess) -> None:
    agent = reviewing_agent(memory_review_interval=0)
    charlie = charlie_make()
    other_process.call("warm", str(charlie.pk), str(session_make(charlie, agent).pk))
    people = []
    for forget, letter in zip(FORGOTTEN_WORDS, "aeiouyz", strict=True):
        words = words_of(letter)
        session = session_of(agent, forget.__name__, words)
        assert other_process.call("warm", str(session.owner_id), str(session.pk)) > 1
        other_process.call("ask", str(session.owner_id), words.queried[::-1])
        people.append((forget, session, words))
    # Forgetting some people's data removes neither the last person's nor Charlie's.
    *some, last = people
    assert all(other_process.counts(*(word for *_, words in people for word in words), CHARLIES_WORD).values())
    for forgotten, kept in ((some, [*last[2], CHARLIES_WORD]), ([last], [CHARLIES_WORD])):
        for forget, session, _ in forgotten:
            forget(session)
        gone = [word for forget, _, words in forgotten for word in FORGOTTEN_WORDS[forget](words)]
        other_process.check_forgotten(gone, kept)


def test_forgotten_words_leave_a_process_that_only_scanned_them(other_process: CachingProcess) -> None:
    word, owner = words_of("a").remembered, owner_make("alice")
    assert other_process.call("scan", f"Keeps a heron called {word}."[::-1]) == ""
    assert all(other_process.counts(word).values())
    forget_memories(owner.pk)
    other_process.check_forgotten([word], [])
