"""Views of books: the entries that may be injected, and the search index over them. A view is immutable and shared by
all sessions of one book and generation (`snapshot`). After a write, the next view reuses the converted rows that did
not change."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Q
from django.utils import timezone

from memories.artifacts.paths import SUMMARY_PATH
from memories.artifacts.store import blocking_rule, live_artifacts
from memories.database.statements import Given, Select, given
from memories.models import Book, Memory
from memories.recall.frozen import FrozenBlock, ViewEntry, freeze
from memories.recall.vectors import BookVectors, vectors_of_book
from memories.selectors import unexpired
from memories.verdicts import is_verdict_for, older_rules, verdict_of
from search.analysis import PROCESS_CACHE, BookKey
from search.index import BookIndex

_ENTRY_OVERHEAD = 600  # bytes
_MAX_BLOCKS = 8  # cached frozen blocks of a view, one for each combination of agent limits
NO_VECTORS = BookVectors()
RawRow = tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BookState:
    """The state of a book, as read by the opening transaction."""

    book_id: UUID
    owner_id: UUID
    name: str
    generation: int
    epoch: int

    @classmethod
    def of(cls, book: Book) -> "BookState":
        """Return the state of a book that was just read."""
        return cls(
            book_id=book.pk, owner_id=book.owner_id, name=book.name, generation=book.generation, epoch=book.epoch
        )


class _ConvertedRow(NamedTuple):
    """A row converted for a view; `row_hash` is of the stored row and of the older rules whose verdicts still apply."""

    row_hash: int
    entry: ViewEntry | None  # None if the scan blocks it
    expires_at: datetime | None


@dataclass(eq=False, repr=False)
class BookView:
    """The entries of a book that may be injected, and the index over them. Immutable. The index is built at the first
    search, since a book that fits into the frozen block needs none."""

    state: BookState
    entries: tuple[ViewEntry, ...]
    summary: str = ""
    vectors: BookVectors = NO_VECTORS
    expires_at: datetime | None = None  # when the first entry expires
    rows: Mapping[int, _ConvertedRow] = field(default_factory=dict)  # by number

    def __post_init__(self) -> None:
        self.by_number = {entry.number: entry for entry in self.entries}
        self._lock = threading.Lock()
        self._index: BookIndex | None = None
        self._blocks: dict[tuple[int, int], FrozenBlock] = {}

    @property
    def _key(self) -> BookKey:
        return self.state.owner_id, self.state.book_id

    def analyse(self) -> None:
        """Cache the text analyses of the entries under this book, with which they are forgotten."""
        PROCESS_CACHE.analyse(self.entries, self._key)

    def is_fresh_for(self, state: BookState) -> bool:
        """Return True if the view is not older than `state`, and no entry has expired since it was read."""
        fresh = self.state.generation >= state.generation and self.state.epoch >= state.epoch
        return fresh and (self.expires_at is None or self.expires_at > timezone.now())

    @property
    def index(self) -> BookIndex:
        with self._lock:  # concurrent turns build it only once
            if self._index is None:
                vectors = self.vectors.by_number or None
                self._index = BookIndex.build(self.entries, book=self._key, vectors=vectors)
            return self._index

    @property
    def index_ready(self) -> bool:
        return self._index is not None

    def frozen(self, *, max_memories: int, char_limit: int) -> FrozenBlock:
        """Return the frozen block within these limits. It is cached, since all sessions of an agent share it."""
        block = self.cached_block(max_memories=max_memories, char_limit=char_limit)
        if block is None:
            block = freeze(self.entries, max_memories=max_memories, char_limit=char_limit)
            if len(self._blocks) < _MAX_BLOCKS:
                self._blocks[max_memories, char_limit] = block
        return block

    def cached_block(self, *, max_memories: int, char_limit: int) -> FrozenBlock | None:
        """Return the frozen block within these limits if it is cached."""
        return self._blocks.get((max_memories, char_limit))

    @property
    def nbytes(self) -> int:
        """The estimated memory use of the view in bytes."""
        return self._text_bytes + (self._index.nbytes if self._index else 0)

    @cached_property
    def _text_bytes(self) -> int:
        return sum(len(entry.content) * 2 + _ENTRY_OVERHEAD for entry in self.entries) + len(self.summary) * 2


def load_view(state: BookState, earlier: BookView | None = None) -> BookView:
    """Read a book's view from the database, in one consistent snapshot. The converted rows of an `earlier` view are
    reused if they did not change.

    Entries that the scan blocks are left out. Verdicts are stored with the rows, and renewed in the background after a
    change of the rules (memories.sweep). Rows without a verdict of their current text are scanned here; nothing is
    written."""
    with read_snapshot():
        book = Book.objects.get(pk=state.book_id)
        stored, convert = _LIVE_ROWS.as_stored(owner=state.owner_id, book=state.book_id, now=timezone.now())
        vectors = vectors_of_book(state.owner_id, state.book_id)
        summary = live_artifacts(state.owner_id, state.book_id).filter(path=SUMMARY_PATH).first()
    rows = _converted(stored, convert, earlier.rows if earlier else {})
    summary_text = summary.content if summary and not blocking_rule(summary) else ""
    expires_at = min((row.expires_at for row in rows.values() if row.expires_at), default=None)
    entries = tuple([row.entry for row in rows.values() if row.entry])
    return BookView(BookState.of(book), entries, summary_text, vectors, expires_at, rows)


def _converted(
    stored: Sequence[RawRow], convert: Callable[[RawRow], RawRow], known: Mapping[int, _ConvertedRow]
) -> dict[int, _ConvertedRow]:
    """Return the converted rows by number; those in `known` are used if they did not change."""
    older, converted = older_rules(), {}
    for row in stored:
        number, row_hash = row[_NUMBER], hash((older, row))  # the hash changes with any column
        same = known.get(number)
        converted[number] = same if same and same.row_hash == row_hash else _convert_row(convert(row), row_hash, older)
    return converted


def index_over(views: Sequence[BookView]) -> BookIndex:
    """Return the index of a view or, for several views, a temporary index over all of their entries, since scores of
    different indexes are not comparable. There is at least one view."""
    nonempty = [view for view in views if view.entries] or list(views[:1])
    if len(nonempty) == 1:
        return nonempty[0].index
    for view in nonempty:
        view.analyse()
    return BookIndex.build(sorted((entry for view in nonempty for entry in view.entries), key=lambda e: e.number))


@contextmanager
def read_snapshot() -> Iterator[None]:
    """Let several queries read one consistent state of the database, without waiting for a writer. Inside a
    transaction, that transaction is used."""
    if connection.in_atomic_block:
        yield
    elif connection.vendor == "sqlite":
        # With transaction_mode IMMEDIATE, atomic() would take the write lock.
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
    """The columns of a memory that a view reads. Tuples take a third of the time of model instances."""

    number: int
    target: str
    category: str
    content: str
    keywords: list[str]
    metadata: dict[str, str]
    pinned: bool
    content_changed_at: datetime
    scan_hash: str
    scan_rule: str
    allowed_hash: str
    expires_at: datetime | None


_NUMBER = _Row._fields.index("number")
_LIVE_ROWS = Select(
    lambda: (
        Memory.objects.filter(
            unexpired(Given("now", Memory, "expires_at")), Q(deleted_at=None), **given(Memory, "owner", "book")
        )
        .order_by("number")
        .values_list(*_Row._fields)
    )
)


def _convert_row(columns: RawRow, row_hash: int, older: Sequence[str]) -> _ConvertedRow:
    row = _Row._make(columns)
    words = row.content, row.keywords, row.metadata, row.category
    if not is_verdict_for(row.scan_hash, older, *words):
        verdict = verdict_of(*words)
        row = row._replace(scan_hash=verdict.scan_hash, scan_rule=verdict.rule)
    if row.scan_rule and row.allowed_hash != row.scan_hash:  # as in Memory.blocked
        return _ConvertedRow(row_hash, None, row.expires_at)
    entry = ViewEntry(
        number=row.number,
        target=row.target,
        category=row.category,
        content=row.content,
        keywords=tuple(row.keywords),
        pinned=row.pinned,
        said_at=row.content_changed_at,
    )
    return _ConvertedRow(row_hash, entry, row.expires_at)
