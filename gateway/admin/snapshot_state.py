"""The state of a session's snapshot in words, from its last run's trace, its book as it is now, and this process's
cache. Snapshots are cached per process, so those of other processes are not known."""

from collections.abc import Iterator, Mapping
from typing import Any

from django.utils import timezone

from gateway.agents.configuration import consolidation_settings_of
from gateway.agents.rows import agent_settings
from gateway.models import Run, Session
from memories.models import Book
from memories.number_words import counted, memories, times
from memories.recall.snapshot import snapshots


def snapshot_lines(session: Session) -> list[str]:
    """Sentences for the session's page. Two queries: its last run that is over, and its book."""
    if session.temporary:
        return ["None: a temporary session reads no memory."]
    if session.state == Session.State.ENDED:
        return ["None: the session has ended."]
    if not (agent_settings(session.agent).inject_memories or consolidation_settings_of(session.agent).enabled):
        return ["None: its agent is given nothing from memory."]
    book = Book.objects.filter(owner_id=session.owner_id, name=session.agent.book).first()
    over = Run.objects.filter(owner_id=session.owner_id, session=session).exclude(state=Run.State.RUNNING)
    run = over.order_by("-pk").first()
    return [*_given(session, book, run), *_counted(run), *_compacted(session), _held(session)]


def _given(session: Session, book: Book | None, run: Run | None) -> Iterator[str]:
    now = f"Book {book.name} is at generation {book.generation}." if book else "Its book does not exist yet."
    if run is None:
        yield f"No turn has run yet; the first one builds it. {now}"
        return
    given = _trace(run)
    if given is None:
        yield f"The run of turn {run.turn} was given none, or wrote down none. {now}"
        return
    yield f"The run of turn {run.turn} was given one as of generation {given['generation']}."
    reasons = [*_changes(session, book, given)]
    yield " ".join(reasons) + " The next turn builds a new one." if reasons else f"It is current. {now}"


def _changes(session: Session, book: Book | None, given: Mapping[str, int]) -> Iterator[str]:
    """Why the next turn would not take the snapshot of the last run; nothing when it would."""
    if book is None:
        yield "Its book is gone."
    elif book.epoch != given["epoch"]:
        yield f"Book {book.name} was cleared since; it is at generation {book.generation}."
    elif book.generation != given["generation"]:
        yield f"Book {book.name} is at generation {book.generation}."
    elif book.next_expiry_at and book.next_expiry_at <= timezone.now():
        yield "A memory has expired since."
    if session.agent.version != given["agent_version"]:
        yield "The settings were changed since."
    if session.compaction_epoch != given["compaction_epoch"]:
        yield "The session was compacted since."


def _counted(run: Run | None) -> Iterator[str]:
    if run is None or (given := _trace(run)) is None:
        return
    lanes = [item.get("lane") for item in run.recalled if isinstance(item, dict)]
    long, short = lanes.count("long_term"), lanes.count("short_term")
    turns = f" and {counted(short, 'earlier turn')}" if short else ""
    yield f"In that run: {memories(given['frozen'])} frozen, {long} recalled{turns}."


def _compacted(session: Session) -> Iterator[str]:
    if session.compaction_epoch:
        yield f"Compacted {times(session.compaction_epoch)}."


def _held(session: Session) -> str:
    cached = snapshots.peek(session.pk)
    if cached is None:
        return "This process holds none; another one may."
    return f"This process holds one as of generation {cached.view.state.generation}."


def _trace(run: Run) -> Mapping[str, Any] | None:
    """Return the snapshot's part of a run's trace, as gateway.turns.injection wrote it."""
    given: Mapping[str, Any] = run.trace.get("recall", {}).get("snapshot", {})
    return given if "generation" in given else None  # one that failed has none
