"""Views of books: the entries that may be injected, read once from the rows, and the index over them. A view is
immutable and shared by all sessions of one book and generation (`snapshot`). After a write the next one takes
over what the rows gave that are as they were."""

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
from search.analysis import PROCESS_CACHE
from search.entries import Entry
from search.index import BookIndex

_ENTRY_OVERHEAD = 600
_MAX_BLOCKS = 8  # frozen blocks that a view keeps, one for each limit of an agent that uses the book
NO_VECTORS = BookVectors()
RawRow = tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BookState:
    """What the opening transaction read of a book."""

    book_id: UUID
    owner_id: UUID
    name: str
    generation: int
    epoch: int

    @classmethod
    def of(cls, book: Book) -> "BookState":
        """Return the state of a row that was just read."""
        return cls(
            book_id=book.pk, owner_id=book.owner_id, name=book.name, generation=book.generation, epoch=book.epoch
        )


class _ConvertedRow(NamedTuple):
    """What a row gives a view. `stored` is the hash of the row as it is stored."""

    row_hash: int
    entry: ViewEntry
    found: Entry
    blocked: bool
    expires_at: datetime | None


@dataclass(frozen=True, slots=True)
class _Rows:
    """What the rows of a view gave, by number. Verdicts also depend on which `older` rules still hold."""

    older: Sequence[str] = ()
    converted: Mapping[int, _ConvertedRow] = field(default_factory=dict)


NO_ROWS = _Rows()


class BookView:
    """The entries of a book that may be injected, and the index over them. Immutable; the index is made when the
    first search wants it (a book that is frozen whole needs none)."""

    def __init__(
        self,
        state: BookState,
        entries: tuple[ViewEntry, ...],
        summary: str = "",
        vectors: BookVectors = NO_VECTORS,
        expires_at: datetime | None = None,
        rows: _Rows = NO_ROWS,
    ) -> None:
        self.state = state
        self.entries = entries
        self.summary = summary
        self.expires_at = expires_at  # when the first of the entries does
        self.rows = rows
        self._vectors = vectors
        self.by_number = {entry.number: entry for entry in entries}
        self._lock = threading.Lock()
        self._blocks: dict[tuple[int, int], FrozenBlock] = {}

    @cached_property
    def _index(self) -> BookIndex:
        book = (self.state.owner_id, self.state.book_id)
        return BookIndex.build(self._found, book=book, vectors=self._vectors.by_number or None)

    @cached_property
    def _found(self) -> Sequence[Entry]:
        """The entries as the search reads them."""
        if self.rows.converted:
            return [row.found for row in self.rows.converted.values() if not row.blocked]
        return [_search_entry(entry) for entry in self.entries]

    def analyse(self) -> None:
        """Analyse the entries as texts of this book, so that forgetting the book forgets their analyses too."""
        PROCESS_CACHE.analyse(self._found, (self.state.owner_id, self.state.book_id))

    def is_fresh_for(self, state: BookState) -> bool:
        """Return True if it is not older than `state`, and no entry has expired since it was read."""
        fresh = self.state.generation >= state.generation and self.state.epoch >= state.epoch
        return fresh and (self.expires_at is None or self.expires_at > timezone.now())

    @property
    def index(self) -> BookIndex:
        with self._lock:  # one build, however many turns ask at once
            return self._index

    @property
    def vector_model(self) -> str:
        """The embedding model whose vectors the index has, "" for none."""
        return self._vectors.model

    @property
    def index_ready(self) -> bool:
        return "_index" in self.__dict__

    def frozen(self, *, max_memories: int, char_limit: int) -> FrozenBlock:
        """Return the frozen block within these limits, which is made once: all sessions of an agent share it."""
        block = self.known_block(max_memories=max_memories, char_limit=char_limit)
        if block is None:
            block = freeze(self.entries, max_memories=max_memories, char_limit=char_limit)
            if len(self._blocks) < _MAX_BLOCKS:
                self._blocks[max_memories, char_limit] = block
        return block

    def known_block(self, *, max_memories: int, char_limit: int) -> FrozenBlock | None:
        """Return the frozen block within these limits if it was made already."""
        return self._blocks.get((max_memories, char_limit))

    @property
    def nbytes(self) -> int:
        """What the view weighs in memory, in bytes."""
        return self._text_bytes + (self._index.nbytes if self.index_ready else 0)

    @cached_property
    def _text_bytes(self) -> int:
        return sum(len(entry.content) * 2 + _ENTRY_OVERHEAD for entry in self.entries) + len(self.summary) * 2


def load_view(state: BookState, earlier: BookView | None = None) -> BookView:
    """Read a book's view from its rows: the generation first and the entries after it, in one read snapshot. What the
    rows that did not change gave an earlier view is taken from there.

    What the scan blocks is left out. Verdicts are kept with their rows, and renewed in the background where the rules
    changed (memories.sweep). A row without one, or whose words are not those of its verdict, is scanned here; nothing
    is written."""
    with read_snapshot():
        book = Book.objects.get(pk=state.book_id)
        stored, convert = _LIVE_ROWS.as_stored(owner=state.owner_id, book=state.book_id, now=timezone.now())
        vectors = vectors_of_book(state.owner_id, state.book_id)
        summary = live_artifacts(state.owner_id, state.book_id).filter(path=SUMMARY_PATH).first()
    rows = _rows_of(stored, convert, NO_ROWS if earlier is None else earlier.rows)
    readable = summary.content if summary and not blocking_rule(summary) else ""
    expires_at = min((row.expires_at for row in rows.converted.values() if row.expires_at), default=None)
    entries = tuple([row.entry for row in rows.converted.values() if not row.blocked])
    return BookView(BookState.of(book), entries, readable, vectors, expires_at, rows)


def _rows_of(stored: Sequence[RawRow], convert: Callable[[RawRow], RawRow], earlier: _Rows) -> _Rows:
    older = older_rules()
    known = earlier.converted if earlier.older == older else NO_ROWS.converted
    converted = {}
    for row in stored:
        number, row_hash = row[_NUMBER], hash(row)  # a row with another value in any column has another hash
        same = known.get(number)
        converted[number] = same if same and same.row_hash == row_hash else _convert_row(convert(row), row_hash, older)
    return _Rows(older, converted)


def index_over(views: Sequence[BookView]) -> BookIndex:
    """Return the index of a view, or one over the entries of several, which is made for this one search: scores of
    different indexes cannot be compared. There is at least one view."""
    filled = [view for view in views if view.entries] or list(views[:1])
    if len(filled) == 1:
        return filled[0].index
    for view in filled:
        view.analyse()
    entries = sorted((entry for view in filled for entry in view.entries), key=lambda entry: entry.number)
    return BookIndex.build([_search_entry(entry) for entry in entries])


@contextmanager
def read_snapshot() -> Iterator[None]:
    """Read one state of the database with several queries, without waiting for a writer. Inside a transaction it reads
    in that one."""
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
    metadata: dict[str, str]
    pinned: bool
    content_changed_at: datetime
    scan_hash: str
    scan_rule: str
    allowed_hash: str
    expires_at: datetime | None

    @property
    def blocked(self) -> bool:
        """See `Memory.blocked`."""
        return bool(self.scan_rule) and self.allowed_hash != self.scan_hash


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
    row = _with_verdict(_Row._make(columns), older)
    entry = _view_entry(row)
    return _ConvertedRow(row_hash, entry, _search_entry(entry), row.blocked, row.expires_at)


def _with_verdict(row: _Row, older: Sequence[str]) -> _Row:
    if is_verdict_for(row.scan_hash, row.content, row.keywords, older, row.metadata):
        return row
    verdict = verdict_of(row.content, row.keywords, row.metadata)
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
