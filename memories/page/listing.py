"""The list of the memories page: filters, ranked search, and one stretch of rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from asgiref.sync import async_to_sync
from django.conf import settings
from django.db.models import Q, QuerySet

from memories.caller import DEFAULT_BOOK
from memories.filters import contains_text
from memories.models import Book, Memory
from memories.number_words import memories as memory_words
from memories.page.filters import MOST_ROWS, ORDERS, Filters
from memories.page.rows import Row, rows_of, with_changes
from memories.recall.book_views import BookState
from memories.recall.query_vectors import query_vectors
from memories.recall.snapshot import snapshots
from memories.selectors import blocked_condition, categories_of, live_condition, live_in
from memories.viewers import Viewer
from search import Hit, extract_keywords

_MOST_WORDS = 10
_DELETED = Q(deleted_at__isnull=False)
_NOT_FOUND = "There is no memory #{number}. It may have been deleted for good."


@dataclass(frozen=True, slots=True, kw_only=True)
class BookCounts:
    """What a book holds, for the filters: how many memories are live, blocked and deleted, and their categories."""

    live: int = 0
    blocked: int = 0
    deleted: int = 0
    categories: Sequence[str] = ()

    @classmethod
    def of(cls, book: Book) -> "BookCounts":
        """Return what a book holds; four queries."""
        live = live_in(book)
        return cls(
            live=live.count(),
            blocked=live.filter(blocked_condition()).count(),
            deleted=Memory.objects.filter(owner_id=book.owner_id, book=book, deleted_at__isnull=False).count(),
            categories=categories_of(book),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """Rows of the list, and how many there are in all: `total` counts everything that was found, not only what is
    shown; with `at_least` there are more than were counted."""

    filters: Filters
    rows: Sequence[Row] = ()
    total: int = 0
    at_least: bool = False
    more: bool = False
    counts: BookCounts = BookCounts()
    books: Sequence[str] = ()

    @property
    def nothing_to_filter(self) -> bool:
        """Whether the book holds nothing, and no other can be chosen."""
        return not (self.counts.live or self.counts.deleted or len(self.books) > 1)

    @property
    def page_full(self) -> bool:
        """Whether the page shows as many rows as it may, so that the next ones are another page."""
        return len(self.rows) >= MOST_ROWS

    @property
    def headline(self) -> str:
        """What is listed, how much of it there is, and in which order; "" for a book without memories."""
        filters, order = self.filters, self._order
        if filters.number:
            return f"Memory #{filters.number}." if self.rows else _NOT_FOUND.format(number=filters.number)
        if filters.query:
            if not self.total:
                return f"Nothing matches “{filters.query}”."
            count = ("More than " if self.at_least else "") + memory_words(self.total)
            return f"{count} match{'es' if self.total == 1 else ''} “{filters.query}”, {order}."
        if filters.deleted:
            kept = f"Each can be restored for {settings.UNDO_DAYS} days."
            return f"{self.total:,} deleted, {order}. {kept}" if self.total else f"Nothing deleted. {kept}"
        if filters.narrowed:
            of = f"{self.total:,} of {memory_words(self.counts.live)}, {order}."
            return of if self.total else "No memories match these filters."
        return f"{memory_words(self.total)}, {order}" if self.total else ""

    @property
    def _order(self) -> str:
        filters = self.filters
        if filters.query and not (filters.deleted or filters.blocked):
            return "best first"
        return "last deleted first" if filters.deleted and not filters.sort else ORDERS[filters.sort].words


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """Memories in the order in which they are shown. `hits`: of a ranked search, in the same order."""

    keys: Sequence[UUID]
    total: int
    more: bool
    at_least: bool = False
    hits: Sequence[Hit] = ()


def listed(viewer: Viewer, filters: Filters) -> Listed:
    """Return one stretch of the list in the order that is chosen; of a search best first."""
    books = {book.name: book for book in Book.objects.filter(owner_id=viewer.owner.pk).order_by("name")}
    if filters.number:
        return _numbered(viewer, filters, books)
    book = books.get(filters.book)
    if book is None:
        return Listed(filters=filters, books=sorted({*books, DEFAULT_BOOK}))
    counts = BookCounts.of(book)
    chosen = filters.of(Memory.objects.filter(owner_id=viewer.owner.pk, book=book))
    chosen = chosen.filter(_DELETED if filters.deleted else live_condition())
    if filters.query and not (filters.deleted or filters.blocked):
        found = _ranked(chosen, book, filters)
    else:
        found = _sorted(_with_words(chosen, filters.query), filters, counts)
    return Listed(
        filters=filters,
        rows=_rows(found, viewer),
        total=found.total,
        at_least=found.at_least,
        more=found.more,
        counts=counts,
        books=sorted(books),
    )


def _numbered(viewer: Viewer, filters: Filters, books: dict[str, Book]) -> Listed:
    """Return the one memory of that number, also a deleted one, with what its book holds."""
    mine = Memory.objects.filter(_DELETED | live_condition(), owner_id=viewer.owner.pk, number=filters.number)
    memories = list(with_changes(mine))
    book = memories[0].book if memories else books.get(filters.book)
    return Listed(
        filters=filters,
        rows=rows_of(memories, viewer),
        total=len(memories),
        counts=BookCounts.of(book) if book else BookCounts(),
        books=sorted({*books, DEFAULT_BOOK} if not book else books),
    )


def _rows(found: _Found, viewer: Viewer) -> list[Row]:
    by_key = with_changes(Memory.objects.filter(owner_id=viewer.owner.pk)).in_bulk(list(found.keys))
    # What was erased since it was found is left out.
    return rows_of([by_key[key] for key in found.keys if key in by_key], viewer, found.hits)


def _sorted(chosen: "QuerySet[Memory]", filters: Filters, counts: BookCounts) -> _Found:
    end = filters.skip + filters.shown
    keys = list(filters.in_order(chosen).values_list("pk", flat=True)[filters.skip : end])
    total = chosen.count() if filters.narrowed else counts.live
    return _Found(keys=keys, total=total, more=total > end)


def _with_words(chosen: "QuerySet[Memory]", query: str) -> "QuerySet[Memory]":
    """Return those that hold each word. Deleted and blocked memories are in no index."""
    for word in query.split()[:_MOST_WORDS]:
        chosen = chosen.filter(contains_text(word, "content"))
    return chosen


def _ranked(chosen: "QuerySet[Memory]", book: Book, filters: Filters) -> _Found:
    """Search as turns and the API do. A view may be older than the last write: memories that no longer match are left
    out."""
    only = set(chosen.values_list("number", flat=True)) if filters.narrowed_besides_words else None
    vectors: Mapping[str, Sequence[float]] = {}
    if settings.EMBEDDING_MODEL:  # asked on the event loop of the server: only this page waits
        vectors = async_to_sync(query_vectors)(book.owner_id, book.name, [filters.query])
    hits = snapshots.view(BookState.of(book)).index.search(
        filters.query,
        limit=MOST_ROWS + 1,
        keywords=extract_keywords(filters.query),
        only=only,
        query_vector=vectors.get(filters.query),
    )
    keys = dict(chosen.filter(number__in=[hit.number for hit in hits]).values_list("number", "pk"))
    present = [hit for hit in hits if hit.number in keys]
    shown, total = present[: filters.shown], min(len(present), MOST_ROWS)
    return _Found(
        keys=[keys[hit.number] for hit in shown],
        total=total,
        more=total > len(shown),
        at_least=len(present) > MOST_ROWS,
        hits=shown,
    )
