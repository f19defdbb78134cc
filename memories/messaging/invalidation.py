"""Forgetting in memory: what was forgotten leaves the caches of every process within a second.

A forgetting appends one row to `Invalidation` in its own transaction (`publish`). The process that wrote it drops its
caches after the commit; every other process that holds a cache watches the table from one thread, with one indexed
query each `INVALIDATION_SECONDS`, so nothing depends on a hint that may be lost. The same thread trims idle caches.
A module with a cache registers it (`register_cache`) and calls `watch` before it reads what it is going to keep."""

import logging
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import UUID

from django.conf import settings
from django.core.management.color import no_style
from django.db import DatabaseError, close_old_connections, connection, connections, transaction
from django.db.models import Max

import scanning
import search
from memories.models import Invalidation, Owner

logger = logging.getLogger("daybook.invalidation")

Kind = Invalidation.Kind
_SETTLED_SECONDS = 10.0
"""How long after a row others with lower numbers may still become visible: PostgreSQL numbers rows before they are
committed."""
_LOOK_BACK = 1000  # rows before the newest one that a process applies when it begins to watch, for the same reason
_PAGE = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """What was forgotten: everything of an owner, a book (some of it is enough), or a session, which was deleted or
    only ended."""

    kind: str
    owner_id: UUID
    book_id: UUID | None = None
    session_id: UUID | None = None

    @property
    def words_are_gone(self) -> bool:
        """Whether the words are gone from the database too. Those of a session that only ended stay there."""
        return self.kind != Kind.SESSION_ENDED


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cache:
    forget: Callable[[Forgotten], None]
    trim: Callable[[], None] | None = None
    clear: Callable[[], None] | None = None


_caches: list[_Cache] = []


def register_cache(
    forget: Callable[[Forgotten], None],
    *,
    trim: Callable[[], None] | None = None,
    clear: Callable[[], None] | None = None,
) -> None:
    """Add a cache of this process. `forget` drops what was forgotten, `trim` what is idle (called each round), `clear`
    everything (called when the table cannot be read). They are called from any thread and must not block."""
    _caches.append(_Cache(forget=forget, trim=trim, clear=clear))


def publish(kind: Kind, *, owner_id: UUID, book_id: UUID | None = None, session_id: UUID | None = None) -> None:
    """Publish to every process what is forgotten; call it at the end of the transaction that forgets."""
    Invalidation.objects.create(kind=kind, owner_id=owner_id, book_id=book_id, session_id=session_id)
    forgotten = Forgotten(kind=kind, owner_id=owner_id, book_id=book_id, session_id=session_id)
    transaction.on_commit(lambda: apply(forgotten), robust=True)


def newest_and_owners() -> tuple[int, set[UUID]]:
    """Return what `publish_replaced` has to know of data that are going to be replaced."""
    newest = Invalidation.objects.aggregate(newest=Max("pk"))["newest"] or 0
    return newest, set(Owner.objects.values_list("pk", flat=True))


def publish_replaced(newest: int, owners: set[UUID]) -> None:
    """Publish that all data were replaced by a restore: a process that runs would take what it keeps for current, since
    generations begin again. Rows get numbers above those that such a process has seen."""
    restored, restored_owners = newest_and_owners()
    after = max(newest, restored) + 1
    rows = [
        Invalidation(pk=pk, kind=Kind.OWNER, owner_id=owner_id)
        for pk, owner_id in enumerate(owners | restored_owners, after)
    ]
    Invalidation.objects.bulk_create(rows, batch_size=_PAGE)
    with connection.cursor() as cursor:
        for statement in connection.ops.sequence_reset_sql(no_style(), [Invalidation]):
            cursor.execute(statement)


def apply(forgotten: Forgotten) -> None:
    """Drop what was forgotten from the caches of this process."""
    search.forget(lambda book: _concerns(forgotten, book))
    scanning.forget_words()
    for cache in _caches:
        cache.forget(forgotten)


def _concerns(forgotten: Forgotten, book: search.BookKey | None) -> bool:
    """Return True if texts of that book are forgotten; None stands for texts of conversations, which no book holds."""
    if book is None:
        return forgotten.kind != Kind.BOOK
    owner_id, book_id = book
    of_owner = forgotten.kind in {Kind.OWNER, Kind.BOOK} and owner_id == forgotten.owner_id
    return of_owner and forgotten.book_id in (None, book_id)


@dataclass(slots=True)
class Watcher:
    """Follows the table of invalidations from one thread of this process."""

    _lock: threading.Lock = field(default_factory=threading.Lock)
    _thread: threading.Thread | None = None
    _floor: int = 0
    _seen: dict[int, float] = field(default_factory=dict)
    _blind: bool = False

    def start(self) -> None:
        """Begin to watch, if this process does not yet. Reads once from the database the first time."""
        if self._thread is not None:
            return
        with self._lock:
            if self._thread is None:
                self.begin()
                self._thread = threading.Thread(target=self._run, name="daybook-invalidation", daemon=True)
                self._thread.start()

    def begin(self) -> None:
        """Set the place in the table from which this process watches."""
        newest = Invalidation.objects.aggregate(newest=Max("pk"))["newest"] or 0
        self._floor, self._seen = max(0, newest - _LOOK_BACK), {}

    def poll(self) -> int:
        """Apply the rows that are new to this process, trim what is idle, and return how many rows were applied."""
        now = time.monotonic()
        applied, after = 0, self._floor
        while True:
            rows = list(
                Invalidation.objects.filter(pk__gt=after)
                .order_by("pk")
                .values_list("pk", "kind", "owner_id", "book_id", "session_id")[:_PAGE]
            )
            for number, kind, owner_id, book_id, session_id in rows:
                if number not in self._seen:
                    self._seen[number] = now
                    apply(Forgotten(kind=kind, owner_id=owner_id, book_id=book_id, session_id=session_id))
                    applied += 1
            if len(rows) < _PAGE:
                break
            after = rows[-1][0]
        self._floor = max([self._floor, *(pk for pk, at in self._seen.items() if now - at > _SETTLED_SECONDS)])
        self._seen = {number: at for number, at in self._seen.items() if number > self._floor}
        for cache in _caches:
            if cache.trim is not None:
                cache.trim()
        return applied

    def after_fork(self) -> None:
        """Forget the parent's thread: a child has none, and starts its own with its first cache."""
        self._lock, self._thread = threading.Lock(), None

    def _run(self) -> None:
        pause = threading.Event()
        try:
            while not pause.wait(settings.INVALIDATION_SECONDS):
                self._round()
        finally:
            connections.close_all()

    def _round(self) -> None:
        try:
            close_old_connections()
            self.poll()
            if self._blind:
                logger.info("Invalidations can be read again.")
            self._blind = False
        except DatabaseError as error:
            if not self._blind:
                logger.warning("Invalidations cannot be read (%s); caches stay empty meanwhile.", type(error).__name__)
            self._blind = True
            clear_all()


def clear_all() -> None:
    """Empty every cache of this process."""
    search.forget(lambda book: True)
    scanning.forget_words()
    for cache in _caches:
        if cache.clear is not None:
            cache.clear()


watcher = Watcher()
os.register_at_fork(after_in_child=watcher.after_fork)


def watch() -> None:
    """Make sure that this process follows the table; call it before reading what is going to be kept."""
    if settings.INVALIDATION_SECONDS:
        watcher.start()
