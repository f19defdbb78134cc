"""The list of the memories page: filters, ranked search, and one stretch of rows."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import urlencode

from django.db.models import F, Q, QuerySet
from django.http import QueryDict
from django.utils import timezone

from memories.book_views import BookState
from memories.models import Book, Memory, Target, WriteOrigin
from memories.page.rows import EXPIRES_SOON, Row, rows_of, with_changes
from memories.snapshot import snapshots
from memories.viewers import Viewer
from search import Hit, extract_keywords

STRETCH = 50
MOST_ROWS = 1000
MOST_HITS = 50
DEFAULT_BOOK = "main"
_MAX_QUERY = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """What the list is narrowed to; "" or False: not by this."""

    book: str = DEFAULT_BOOK
    query: str = ""
    target: str = ""
    category: str = ""
    origin: str = ""
    pinned: bool = False
    expiring: bool = False
    blocked: bool = False
    shown: int = STRETCH

    @property
    def narrowed(self) -> bool:
        """Whether anything but the book is chosen."""
        return bool(
            self.query or self.target or self.category or self.origin or self.pinned or self.expiring or self.blocked
        )

    @property
    def next_stretch(self) -> str:
        """The query string of the same list with more rows."""
        given = {"book": self.book, "q": self.query, "target": self.target, "category": self.category}
        given |= {"origin": self.origin, "n": str(min(self.shown + STRETCH, MOST_ROWS))}
        chips = {"pinned": self.pinned, "expiring": self.expiring, "blocked": self.blocked}
        given |= {name: "1" for name, on in chips.items() if on}
        return urlencode({name: value for name, value in given.items() if value})


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """Rows of the list, and how many there are in all. Of a search `total` counts what was found."""

    filters: Filters
    rows: Sequence[Row]
    total: int
    in_book: int
    more: bool = False
    books: Sequence[str] = field(default_factory=tuple)
    categories: Sequence[str] = field(default_factory=tuple)
    blocked: int = 0


def filters_of(query: QueryDict) -> Filters:
    """Return the filters a page's address names; what is not known is left away."""
    target, origin = query.get("target", ""), query.get("origin", "")
    shown = query.get("n", "")
    return Filters(
        book=(query.get("book") or DEFAULT_BOOK)[:64],
        query=" ".join(query.get("q", "").split())[:_MAX_QUERY],
        target=target if target in Target.values else "",
        category=query.get("category", "")[:40],
        origin=origin if origin in WriteOrigin.values else "",
        pinned=query.get("pinned") == "1",
        expiring=query.get("expiring") == "1",
        blocked=query.get("blocked") == "1",
        shown=min(max(int(shown), STRETCH), MOST_ROWS) if shown.isdecimal() and len(shown) < 6 else STRETCH,
    )


def listed(viewer: Viewer, filters: Filters) -> Listed:
    """One stretch of the list, newest first; of a search best first."""
    books = {book.name: book for book in Book.objects.filter(owner_id=viewer.owner.pk).order_by("name")}
    book = books.get(filters.book)
    names = sorted({*books, DEFAULT_BOOK} if not book else books)
    if book is None:
        return Listed(filters=filters, rows=(), total=0, in_book=0, books=names)
    everything = Memory.objects.filter(owner_id=viewer.owner.pk, book=book, deleted_at__isnull=True)
    chosen = narrowed(everything, filters)
    kept = {
        "filters": filters,
        "in_book": everything.count(),
        "books": names,
        "categories": list(everything.order_by("category").values_list("category", flat=True).distinct()),
        "blocked": everything.filter(blocked_condition()).count(),
    }
    if filters.query:
        rows = _found(viewer, chosen, book, filters.query)
        return Listed(rows=rows, total=len(rows), **kept)  # type: ignore[arg-type]  # the values above
    memories = list(with_changes(chosen).order_by("-number")[: filters.shown + 1])
    more = len(memories) > filters.shown
    total = chosen.count() if filters.narrowed else kept["in_book"]
    rows = rows_of(memories[: filters.shown], viewer)
    return Listed(rows=rows, total=total, more=more, **kept)  # type: ignore[arg-type]


def narrowed(memories: "QuerySet[Memory]", filters: Filters) -> "QuerySet[Memory]":
    """Return the memories that pass the filters, the search left aside."""
    equal = {"target": filters.target, "category": filters.category, "write_origin": filters.origin}
    memories = memories.filter(**{name: value for name, value in equal.items() if value})
    if filters.pinned:
        memories = memories.filter(pinned=True)
    if filters.expiring:
        memories = memories.filter(expires_at__lte=timezone.now() + EXPIRES_SOON)
    return memories.filter(blocked_condition()) if filters.blocked else memories


def blocked_condition() -> Q:
    """Memory.blocked, for queries."""
    return ~Q(scan_rule="") & ~Q(allowed_hash=F("scan_hash"))


def _found(viewer: Viewer, chosen: "QuerySet[Memory]", book: Book, query: str) -> list[Row]:
    hits = search_book(book, query)
    place = {hit.number: at for at, hit in enumerate(hits)}
    memories = sorted(with_changes(chosen.filter(number__in=place)), key=lambda memory: place[memory.number])
    still = {memory.number for memory in memories}
    return rows_of(memories, viewer, [hit for hit in hits if hit.number in still])


def search_book(book: Book, query: str) -> Sequence[Hit]:
    """Return the ranked search, as answers and the API use it. Blocked and expired memories are in no index."""
    index = snapshots.view(BookState.of(book)).index
    return index.search(query, limit=MOST_HITS, keywords=extract_keywords(query))
