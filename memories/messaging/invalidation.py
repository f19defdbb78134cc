"""Cache invalidation: what was forgotten leaves the caches of every process within a second.

A forgetting adds a row to `Invalidation` in its own transaction (`publish`). The writing process drops cached data
after the commit. Every other process with a cache polls the table from one thread, with an indexed query every
`INVALIDATION_SECONDS`, so nothing depends on hints, which may be lost. The same thread trims idle caches. A module with
a cache registers it (`register_cache`) and calls `watch` before it reads data that it will cache."""

import logging
import os
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
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
"""How long rows with lower numbers may still appear after a row: PostgreSQL assigns numbers before the commit."""
_LOOK_BACK = 1000  # rows before the newest one that a starting process applies, for the same reason
_PAGE = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cache:
    forget: Callable[[Invalidation], None]
    trim: Callable[[], None] = lambda: None
    clear: Callable[[], None] = lambda: None


_caches: list[_Cache] = []


def register_cache(
    forget: Callable[[Invalidation], None],
    *,
    trim: Callable[[], None] = lambda: None,
    clear: Callable[[], None] = lambda: None,
) -> None:
    """Register a cache of this process. `forget` drops what was forgotten, `trim` drops idle entries (called at every
    poll), and `clear` drops everything (called if the table cannot be read). They may be called from any thread and
    must not block."""
    _caches.append(_Cache(forget=forget, trim=trim, clear=clear))


def publish(kind: Kind, *, owner_id: UUID, book_id: UUID | None = None, session_id: UUID | None = None) -> None:
    """Tell every process what is forgotten; call this at the end of the forgetting transaction, since other processes
    expect its number for _SETTLED_SECONDS only."""
    forgotten = Invalidation.objects.create(kind=kind, owner_id=owner_id, book_id=book_id, session_id=session_id)
    transaction.on_commit(lambda: apply(forgotten), robust=True)


def newest_and_owners() -> tuple[int, set[UUID]]:
    """Return the arguments of `publish_replaced`; call this before the data is replaced."""
    newest = Invalidation.objects.aggregate(newest=Max("pk"))["newest"] or 0
    return newest, set(Owner.objects.values_list("pk", flat=True))


def publish_replaced(newest: int, owners: set[UUID]) -> None:
    """Tell every process that a restore replaced all data. The restored generations may equal cached ones, so running
    processes would take their caches for current. The rows get numbers above those that they have seen."""
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


def apply(forgotten: Invalidation) -> None:
    """Drop what was forgotten from the caches of this process."""
    search.forget(lambda book: _concerns(forgotten, book))
    scanning.forget_words()
    for cache in _caches:
        cache.forget(forgotten)


def _concerns(forgotten: Invalidation, book: search.BookKey | None) -> bool:
    """Return True if the texts of a book are forgotten; None stands for texts of conversations, outside of books."""
    if book is None:
        return forgotten.kind != Kind.BOOK
    owner_id, book_id = book
    of_owner = forgotten.kind in {Kind.OWNER, Kind.BOOK} and owner_id == forgotten.owner_id
    return of_owner and forgotten.book_id in (None, book_id)


@dataclass(slots=True)
class Watcher:
    """Polls the table of invalidations in a thread of this process."""

    _lock: threading.Lock = field(default_factory=threading.Lock)
    _thread: threading.Thread | None = None
    _floor: int | None = None
    _seen: dict[int, float] = field(default_factory=dict)
    _is_failing: bool = False

    def start(self) -> None:
        """Start the thread, unless it is running."""
        if self._thread is not None:
            return
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="daybook-invalidation", daemon=True)
                self._thread.start()

    def begin(self) -> None:
        """Set the position in the table after which rows are applied."""
        newest = Invalidation.objects.aggregate(newest=Max("pk"))["newest"] or 0
        self._floor, self._seen = max(0, newest - _LOOK_BACK), {}

    def poll(self) -> int:
        """Apply the rows that are new to this process, trim idle entries, and return the number of applied rows. The
        first time, these are the last _LOOK_BACK rows."""
        if self._floor is None:
            self.begin()
        assert self._floor is not None
        now = time.monotonic()
        applied, after = 0, self._floor
        while True:
            rows = list(Invalidation.objects.filter(pk__gt=after).order_by("pk")[:_PAGE])
            for row in rows:
                if row.pk not in self._seen:
                    self._seen[row.pk] = now
                    apply(row)
                    applied += 1
            if len(rows) < _PAGE:
                break
            after = rows[-1].pk
        self._floor = max([self._floor, *(pk for pk, at in self._seen.items() if now - at > _SETTLED_SECONDS)])
        self._seen = {number: at for number, at in self._seen.items() if number > self._floor}
        for cache in _caches:
            cache.trim()
        return applied

    def after_fork(self) -> None:
        """Reset the state in a forked process, which has no thread and starts one with its first cache."""
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
            if self._is_failing:
                logger.info("Invalidations can be read again.")
            self._is_failing = False
        except Exception as error:  # the thread must survive, or this process would keep what was forgotten
            if not self._is_failing:
                said = "Invalidations cannot be read (%s); caches stay empty meanwhile."
                logger.warning(said, type(error).__name__, exc_info=not isinstance(error, DatabaseError))
            self._is_failing = True
            self._clear()

    def _clear(self) -> None:
        try:
            clear_all()
        except Exception:
            logger.exception("Not all caches could be emptied; this is tried again.")


def clear_all() -> None:
    """Empty every cache of this process, also if one of them raises an error. Raises the last one."""
    with ExitStack() as stack:  # which calls each
        for cache in _caches:
            stack.callback(cache.clear)
        stack.callback(scanning.forget_words)
        stack.callback(search.forget, lambda book: True)


watcher = Watcher()
os.register_at_fork(after_in_child=watcher.after_fork)


def watch() -> None:
    """Make sure that this process polls the table; call this before caching data or words. No query."""
    if settings.INVALIDATION_SECONDS:
        watcher.start()
