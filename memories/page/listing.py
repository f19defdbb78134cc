"""The list of the memories page: filtering, ranked search, and a batch of rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from asgiref.sync import async_to_sync
from django.conf import settings
from django.db.models import Q, QuerySet

from memories.caller import DEFAULT_BOOK
from memories.filters import contains_text
from memories.models import Book, Memory
from memories.number_words import memories as memory_words
from memories.page.filters import MAX_ROWS, ORDERS, Filters
from memories.page.rows import rows_of, with_changes
from memories.recall.book_views import BookState
from memories.recall.query_vectors import query_vectors
from memories.recall.snapshot import snapshots
from memories.selectors import blocked_condition, categories_of, live_condition, live_in
from memories.viewers import Viewer
from search import Hit, query_keywords

_MAX_WORDS = 10
_DELETED = Q(deleted_at__isnull=False)
_NOT_FOUND = "There is no memory #{number}. It may have been deleted for good."


@dataclass(frozen=True, slots=True, kw_only=True)
class BookCounts:
    """The number of live, blocked and deleted memories in a book, and their categories, for the filters."""

    live: int = 0
    blocked: int = 0
    deleted: int = 0
    categories: Sequence[str] = ()

    @classmethod
    def of(cls, book: Book) -> "BookCounts":
        """Return the counts of a book. Four queries."""
        live = live_in(book)
        return cls(
            live=live.count(),
            blocked=live.filter(blocked_condition()).count(),
            deleted=Memory.objects.filter(owner_id=book.owner_id, book=book, deleted_at__isnull=False).count(),
            categories=categories_of(book),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryList:
    """The shown rows of the list. `total` counts all matches; it is a lower bound if `at_least` is set."""

    filters: Filters
    rows: Sequence[dict[str, Any]] = ()
    total: int = 0
    at_least: bool = False
    more: bool = False
    counts: BookCounts = BookCounts()
    books: Sequence[str] = ()

    @property
    def nothing_to_filter(self) -> bool:
        """Whether the book is empty and there is no other to choose."""
        return not (self.counts.live or self.counts.deleted or len(self.books) > 1)

    @property
    def page_full(self) -> bool:
        """Whether the page shows the maximum number of rows, so that further rows need another page."""
        return len(self.rows) >= MAX_ROWS

    @property
    def headline(self) -> str:
        """What is listed, how many, and in which order; "" for a book without memories."""
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
            if not self.total and self.counts.deleted:
                return "No deleted memories match these filters."
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


def list_memories(viewer: Viewer, filters: Filters) -> MemoryList:
    """Return a batch of the list in the chosen order; search results best first."""
    books = {book.name: book for book in Book.objects.filter(owner_id=viewer.owner.pk).order_by("name")}
    if filters.number:
        return _list_by_number(viewer, filters, books)
    book = books.get(filters.book)
    if book is None:
        return MemoryList(filters=filters, books=sorted({*books, DEFAULT_BOOK}))
    counts = BookCounts.of(book)
    memories = filters.of(Memory.objects.filter(owner_id=viewer.owner.pk, book=book))
    memories = memories.filter(_DELETED if filters.deleted else live_condition())
    if filters.query and not (filters.deleted or filters.blocked):
        found = _ranked(memories, book, filters, viewer)
    else:
        found = _sorted(_containing(memories, filters.query), counts, filters, viewer)
    return replace(found, counts=counts, books=sorted(books))


def _list_by_number(viewer: Viewer, filters: Filters, books: dict[str, Book]) -> MemoryList:
    """Return the list with only the memory of that number, which may be deleted."""
    matching = Memory.objects.filter(_DELETED | live_condition(), owner_id=viewer.owner.pk, number=filters.number)
    memories = list(with_changes(matching))
    book = memories[0].book if memories else books.get(filters.book)
    return MemoryList(
        filters=filters,
        rows=rows_of(memories, viewer),
        total=len(memories),
        counts=BookCounts.of(book) if book else BookCounts(),
        books=sorted({*books, DEFAULT_BOOK} if not book else books),
    )


def _rows(keys: Sequence[UUID], viewer: Viewer, hits: Sequence[Hit] = ()) -> list[dict[str, Any]]:
    by_key = with_changes(Memory.objects.filter(owner_id=viewer.owner.pk)).in_bulk(keys)
    # Memories erased in the meantime are left out.
    return rows_of([by_key[key] for key in keys if key in by_key], viewer, hits)


def _sorted(memories: "QuerySet[Memory]", counts: BookCounts, filters: Filters, viewer: Viewer) -> MemoryList:
    end = filters.skip + filters.shown
    keys = list(filters.in_order(memories).values_list("pk", flat=True)[filters.skip : end])
    total = memories.count() if filters.narrowed else counts.live
    return MemoryList(filters=filters, rows=_rows(keys, viewer), total=total, more=total > end)


def _containing(memories: "QuerySet[Memory]", query: str) -> "QuerySet[Memory]":
    """Return the memories that contain each word. The search index has no deleted and blocked memories."""
    for word in query.split()[:_MAX_WORDS]:
        memories = memories.filter(contains_text(word, "content"))
    return memories


def _ranked(memories: "QuerySet[Memory]", book: Book, filters: Filters, viewer: Viewer) -> MemoryList:
    """Search as turns and the API do, without memories that no longer match: the view may be older than a write."""
    only = set(memories.values_list("number", flat=True)) if filters.narrowed_besides_words else None
    vectors: Mapping[str, Sequence[float]] = {}
    if settings.EMBEDDING_MODEL:  # requested on the server's event loop; only this page waits
        vectors = async_to_sync(query_vectors)(book.owner_id, book.name, [filters.query])
    hits = snapshots.view(BookState.of(book)).index.search(
        filters.query,
        limit=MAX_ROWS + 1,
        keywords=query_keywords(filters.query),
        only=only,
        query_vector=vectors.get(filters.query),
    )
    keys = dict(memories.filter(number__in=[hit.number for hit in hits]).values_list("number", "pk"))
    present = [hit for hit in hits if hit.number in keys]
    shown, total = present[: filters.shown], min(len(present), MAX_ROWS)
    return MemoryList(
        filters=filters,
        rows=_rows([keys[hit.number] for hit in shown], viewer, shown),
        total=total,
        more=total > len(shown),
        at_least=len(present) > MAX_ROWS,
    )
