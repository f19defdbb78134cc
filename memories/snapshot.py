"""Snapshots: the frozen, in-process view of a book that a session injects from.

A BookView is immutable and shared by all sessions of one book and generation. `run_open` brings the book's generation
along: an equal one makes a snapshot warm and injection then touches no database; a different one makes it stale, in
whichever process the write happened. Hints between processes are never needed for correctness."""

import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import NamedTuple
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Q
from django.utils import timezone

from memories.artifact_paths import SUMMARY_PATH
from memories.artifacts import blocking_rule, live_artifacts
from memories.frozen import FrozenBlock, ViewEntry, freeze
from memories.invalidation import Forgotten, Kind, register_cache, watch
from memories.models import Book, Memory
from memories.tokens import cut_to_tokens
from memories.vectors import vectors_of_book
from memories.verdicts import is_of_words, older_rules, verdict_of
from prompts.consolidation import guidance
from search.entries import Entry
from search.index import BookIndex
from search.vectors import Vector

_ENTRY_OVERHEAD = 400
_MOST_TOOL_NAMES = 4  # for which a session keeps its guidance; its client decides which names are free
Vectors = Mapping[int, Vector]


@dataclass(frozen=True, slots=True, kw_only=True)
class BookState:
    """What the opening transaction read of a book."""

    book_id: UUID
    owner_id: UUID
    name: str
    generation: int
    epoch: int


class BookView:
    """The entries of a book that may be injected, and the index over them. Immutable; the index is made when the
    first search wants it (a book that is frozen whole needs none)."""

    def __init__(
        self,
        state: BookState,
        entries: tuple[ViewEntry, ...],
        summary: str = "",
        vectors: Vectors | None = None,
        expires_at: datetime | None = None,
    ) -> None:
        self.state = state
        self.entries = entries
        self.summary = summary
        self.expires_at = expires_at  # when the first of the entries does
        self._vectors = vectors or {}
        self.by_number = {entry.number: entry for entry in entries}
        self._lock = threading.Lock()

    @cached_property
    def _index(self) -> BookIndex:
        entries = [_search_entry(entry) for entry in self.entries]
        book = (self.state.owner_id, self.state.book_id)
        return BookIndex.build(entries, book=book, vectors=self._vectors or None)

    def serves(self, state: BookState) -> bool:
        """Return True if it is not older than `state`, and no entry has expired since it was read."""
        fresh = self.state.generation >= state.generation and self.state.epoch >= state.epoch
        return fresh and (self.expires_at is None or self.expires_at > timezone.now())

    @property
    def index(self) -> BookIndex:
        with self._lock:  # one build, however many turns ask at once
            return self._index

    @property
    def index_ready(self) -> bool:
        return "_index" in self.__dict__

    @property
    def nbytes(self) -> int:
        """What the view weighs in memory, in bytes."""
        text = sum(len(entry.content) * 2 + _ENTRY_OVERHEAD for entry in self.entries) + len(self.summary) * 2
        return text + (self._index.nbytes if self.index_ready else 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSnapshot:
    """What one session injects from."""

    view: BookView
    version: tuple[int, ...]  # of what else it depends on: the agent's settings, the session's compactions
    frozen: FrozenBlock
    summary: str = ""  # as far as the session carries it
    _guidance: dict[str, str] = field(default_factory=dict, compare=False, repr=False)

    def guidance(self, read_tool: str) -> str:
        """Return the Memory Guidance block that names this tool, "" for none. The same name gives the same bytes."""
        told = self._guidance.get(read_tool)
        if told is None:
            told = guidance(self.summary, read_tool=read_tool)
            if len(self._guidance) < _MOST_TOOL_NAMES:
                self._guidance[read_tool] = told
        return told

    def is_of(self, state: BookState, version: tuple[int, ...]) -> bool:
        """Return True if nothing that may be injected has changed since."""
        mine = self.view.state
        return (mine.book_id, mine.generation, mine.epoch, self.version) == (
            state.book_id,
            state.generation,
            state.epoch,
            version,
        )


@dataclass(slots=True)
class Snapshots:
    """The process's snapshots: per session, and the views they share, both bounded. Thread-safe."""

    _sessions: "OrderedDict[UUID, tuple[float, SessionSnapshot]]" = field(default_factory=OrderedDict)
    _views: "OrderedDict[UUID, tuple[float, BookView]]" = field(default_factory=OrderedDict)
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _forgettings: int = 0

    def warm(self, session_id: UUID, state: BookState, version: tuple[int, ...]) -> SessionSnapshot | None:
        """Return the session's snapshot if it is of this state; no database query."""
        with self._lock:
            found = self._sessions.get(session_id)
            if found is None or not found[1].is_of(state, version):
                return None
            self._sessions[session_id] = (time.monotonic(), found[1])
            self._sessions.move_to_end(session_id)
            return found[1]

    def build(
        self,
        session_id: UUID,
        state: BookState,
        version: tuple[int, ...],
        *,
        max_memories: int,
        char_limit: int,
        guidance_tokens: int = 0,
    ) -> SessionSnapshot:
        """Make the session's snapshot, from a shared view where one is fresh, else from the rows. `guidance_tokens`:
        how much of the summary it carries; 0 = no Memory Guidance."""
        forgettings = self._forgettings
        view = self.view(state)
        frozen = freeze(view.entries, max_memories=max_memories, char_limit=char_limit)
        summary = cut_to_tokens(view.summary, guidance_tokens) if guidance_tokens else ""
        snapshot = SessionSnapshot(view=view, version=version, frozen=frozen, summary=summary)
        with self._lock:
            if forgettings == self._forgettings:  # else what was read may be forgotten: it serves this turn only
                self._sessions[session_id] = (time.monotonic(), snapshot)
                self._sessions.move_to_end(session_id)
                self._trim_to_size()
        return snapshot

    def held(self, session_id: UUID) -> SessionSnapshot | None:
        """Return the session's snapshot as it lies here, fresh or not; looking at it does not keep it."""
        with self._lock:
            found = self._sessions.get(session_id)
            return found[1] if found else None

    def drop(self, session_id: UUID) -> None:
        """Forget the snapshot of a session that ended or was deleted."""
        with self._lock:
            self._forgettings += 1
            self._sessions.pop(session_id, None)

    def forget(self, forgotten: Forgotten) -> None:
        """Drop what was forgotten. A deleted session takes its owner's views along: they keep words of its messages,
        to save time."""
        if forgotten.kind == Kind.SESSION_ENDED:
            assert forgotten.session_id is not None
            self.drop(forgotten.session_id)
            return
        book_id = forgotten.book_id

        def gone(view: BookView) -> bool:
            return view.state.owner_id == forgotten.owner_id and book_id in (None, view.state.book_id)

        with self._lock:
            self._forgettings += 1
            for book in [book for book, (_, view) in self._views.items() if gone(view)]:
                del self._views[book]
            for session in [session for session, (_, kept) in self._sessions.items() if gone(kept.view)]:
                del self._sessions[session]

    def trim(self) -> None:
        """Drop what was not used for SNAPSHOT_IDLE_SECONDS."""
        stale = time.monotonic() - settings.SNAPSHOT_IDLE_SECONDS
        with self._lock:
            while self._sessions and next(iter(self._sessions.values()))[0] < stale:
                self._sessions.popitem(last=False)
            while self._views and next(iter(self._views.values()))[0] < stale:
                self._views.popitem(last=False)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._forgettings += 1
            self._sessions.clear()
            self._views.clear()

    def __len__(self) -> int:
        return len(self._sessions)

    def sizes(self) -> tuple[int, int, int]:
        """Sessions, book views, and what the views weigh in bytes."""
        with self._lock:
            sessions, views = len(self._sessions), [view for _, view in self._views.values()]
        return sessions, len(views), sum(view.nbytes for view in views)

    def fresh_view(self, state: BookState) -> BookView:
        """Return a view of the rows as this transaction sees them; not kept, since they may be rolled back."""
        return load_view(state)

    def view(self, state: BookState) -> BookView:
        """Return the shared view of a book, not older than `state`."""
        with self._lock:
            view = self._present(state.book_id)
            if view is not None and view.serves(state):
                return view
        watch()
        forgettings = self._forgettings
        view = load_view(state)
        with self._lock:
            present = self._present(state.book_id)
            newer = present is None or present.state.generation <= view.state.generation
            if newer and forgettings == self._forgettings:
                self._views[state.book_id] = (time.monotonic(), view)
                self._views.move_to_end(state.book_id)
            return view

    def _present(self, book_id: UUID) -> BookView | None:
        """Return the view that is kept of a book, which is in use now."""
        if book_id not in self._views:
            return None
        view = self._views[book_id][1]
        self._views[book_id] = (time.monotonic(), view)
        self._views.move_to_end(book_id)
        return view

    def _trim_to_size(self) -> None:
        self.trim()
        while len(self._sessions) > settings.SNAPSHOT_SESSIONS:
            self._sessions.popitem(last=False)
        total = sum(view.nbytes for _, view in self._views.values())
        while len(self._views) > 1 and total > settings.SNAPSHOT_BYTES:
            _, (_, dropped) = self._views.popitem(last=False)
            total -= dropped.nbytes


snapshots = Snapshots()
register_cache(snapshots.forget, trim=snapshots.trim, clear=snapshots.clear)


def empty_snapshot(state: BookState) -> SessionSnapshot:
    """Return what a run injects from when its snapshot cannot be made: a book without entries. It is not stored."""
    return SessionSnapshot(view=BookView(state, ()), version=(0, 0), frozen=freeze((), max_memories=0, char_limit=0))


def load_view(state: BookState) -> BookView:
    """Read a book's view from its rows: the generation first and the entries after it, in one read snapshot.

    What the scan blocks is left out. Verdicts are kept with their rows, and renewed in the background where the rules
    changed (memories.renewal). A row without one, or whose words are not those of its verdict, is scanned here; nothing
    is written."""
    with read_snapshot():
        book = Book.objects.get(pk=state.book_id)
        rows = [
            _Row._make(columns)
            for columns in Memory.objects.filter(
                owner_id=state.owner_id, book_id=state.book_id, deleted_at__isnull=True
            )
            .filter(Q(expires_at__isnull=True) | Q(expires_at__gt=timezone.now()))
            .order_by("number")
            .values_list(*_Row._fields)
        ]
        vectors = vectors_of_book(state.owner_id, state.book_id)
        summary = live_artifacts(state.owner_id, state.book_id).filter(path=SUMMARY_PATH).first()
    older = older_rules()
    rows = [_with_verdict(row, older) for row in rows]
    now_state = BookState(
        book_id=book.pk, owner_id=state.owner_id, name=book.name, generation=book.generation, epoch=book.epoch
    )
    readable = summary.content if summary and not blocking_rule(summary) else ""
    expires_at = min((row.expires_at for row in rows if row.expires_at), default=None)
    entries = tuple(_view_entry(row) for row in rows if not row.blocked)
    return BookView(now_state, entries, readable, vectors, expires_at)


@contextmanager
def read_snapshot() -> Iterator[None]:
    """Several reads of one state of the database, without waiting for a writer. Inside a transaction: that one."""
    if connection.in_atomic_block:
        yield
    elif connection.vendor == "sqlite":
        # transaction_mode is IMMEDIATE: atomic() would take the write lock only to read.
        connection.ensure_connection()
        with connection.cursor() as cursor:
            cursor.execute("BEGIN DEFERRED")
            try:
                yield
            finally:
                cursor.execute("COMMIT")
    else:
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield


class _Row(NamedTuple):
    """The columns of a memory that a view reads. Tuples: a thousand of them take a third of the time of instances."""

    number: int
    target: str
    category: str
    content: str
    keywords: list[str]
    pinned: bool
    content_changed_at: datetime
    session_id: UUID | None
    version: int
    scan_hash: str
    scan_rule: str
    allowed_hash: str
    expires_at: datetime | None

    @property
    def blocked(self) -> bool:
        """See `Memory.blocked`."""
        return bool(self.scan_rule) and self.allowed_hash != self.scan_hash


def _with_verdict(row: _Row, older: Sequence[str]) -> _Row:
    if is_of_words(row.scan_hash, row.content, row.keywords, older):
        return row
    verdict = verdict_of(row.content, row.keywords)
    return row._replace(scan_hash=verdict.scan_hash, scan_rule=verdict.rule)


def _view_entry(row: _Row) -> ViewEntry:
    return ViewEntry(
        number=row.number,
        target=row.target,
        category=row.category,
        content=row.content,
        keywords=tuple(row.keywords),
        pinned=row.pinned,
        content_changed_at=row.content_changed_at,
        session_id=str(row.session_id) if row.session_id else None,
    )


def _search_entry(entry: ViewEntry) -> Entry:
    # Curated entries stand for themselves: two facts saved in one session are not neighbours.
    return Entry(
        number=entry.number,
        content=entry.content,
        keywords=entry.keywords,
        category=entry.category,
        target=entry.target,
        said_at=entry.content_changed_at,
    )
