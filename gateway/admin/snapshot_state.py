"""Describes the state of a session's snapshot from its last run's trace, the current book, and this process's cache.
Snapshots are cached per process, so those of other processes are unknown."""

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
    """Return sentences for the session's page. Two queries: the last finished run, and the book."""
    if session.temporary:
        return ["None: a temporary session reads no memory."]
    if session.state == Session.State.ENDED:
        return ["None: the session has ended."]
    if not (agent_settings(session.agent).inject_memories or consolidation_settings_of(session.agent).enabled):
        return ["None: its agent is given no memory."]
    book = Book.objects.filter(owner_id=session.owner_id, name=session.agent.book).first()
    finished = Run.objects.filter(owner_id=session.owner_id, session=session).exclude(state=Run.State.RUNNING)
    run = finished.order_by("-pk").first()
    lines = [*_given(session, book, run), *_counts(run)]
    if session.compaction_epoch:
        lines.append(f"Compacted {times(session.compaction_epoch)}.")
    if cached := snapshots.peek(session.pk):
        return [*lines, f"This process has one of generation {cached.view.state.generation} cached."]
    return [*lines, "This process has none cached; another one may."]


def _given(session: Session, book: Book | None, run: Run | None) -> Iterator[str]:
    now = f"Book {book.name} is at generation {book.generation}." if book else "Its book does not exist yet."
    if run is None:
        yield f"No turn has run yet; the first one builds it. {now}"
        return
    snapshot = _snapshot_trace(run)
    if snapshot is None:
        yield f"Turn {run.turn} was given no snapshot, or recorded none. {now}"
        return
    yield f"Turn {run.turn} was given a snapshot of generation {snapshot['generation']}."
    reasons = [*_rebuild_reasons(session, book, snapshot)]
    yield " ".join(reasons) + " The next turn builds a new one." if reasons else f"It is current. {now}"


def _rebuild_reasons(session: Session, book: Book | None, snapshot: Mapping[str, int]) -> Iterator[str]:
    """Yield the reasons why the next turn cannot reuse the last run's snapshot."""
    if book is None:
        yield "Its book is gone."
    elif book.epoch != snapshot["epoch"]:
        yield f"Book {book.name} was cleared since; it is at generation {book.generation}."
    elif book.generation != snapshot["generation"]:
        yield f"Book {book.name} is at generation {book.generation}."
    elif book.next_expiry_at and book.next_expiry_at <= timezone.now():
        yield "A memory has expired since."
    if session.agent.version != snapshot["agent_version"]:
        yield "The settings were changed since."
    if session.compaction_epoch != snapshot["compaction_epoch"]:
        yield "The session was compacted since."


def _counts(run: Run | None) -> Iterator[str]:
    if run is None or (snapshot := _snapshot_trace(run)) is None:
        return
    lanes = [item.get("lane") for item in run.recalled if isinstance(item, dict)]
    long, short = lanes.count("long_term"), lanes.count("short_term")
    turns = f" and {counted(short, 'earlier turn')}" if short else ""
    yield f"In that run: {memories(snapshot['frozen'])} frozen, {long} recalled{turns}."


def _snapshot_trace(run: Run) -> Mapping[str, Any] | None:
    """Return the snapshot entry of a run's trace as written by gateway.turns.injection, or None if it failed."""
    entry: Mapping[str, Any] = run.trace.get("recall", {}).get("snapshot", {})
    return entry if "generation" in entry else None
