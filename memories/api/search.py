"""/api/memories/search: search memories by words and meaning, in one book or in all books that the key may use."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

from ninja import Router
from pydantic import Field

from memories.api import answers
from memories.api.answers import list_of
from memories.api.bodies import Body
from memories.api.serializers import memory_json
from memories.caller import ALL_BOOKS, ApiRequest, Caller
from memories.database.access import in_read_thread
from memories.filters import MemoryFilters
from memories.limits import QueryText, ShortText
from memories.metadata import Metadata
from memories.models import Book, Memory
from memories.pagination import page_json
from memories.recall.book_views import BookState, index_over
from memories.recall.query_vectors import query_vectors
from memories.recall.snapshot import snapshots
from memories.selectors import book_named, live_condition
from search.keywords import query_keywords

router = Router(tags=["Memories"])
MAX_HITS = 100


class SearchIn(
    Body,
    json_schema_extra={
        "examples": [{"query": "What could I cook?", "limit": 5, "book": "*", "metadata": {"source": "crm"}}]
    },
):
    query: QueryText
    category: ShortText | None = None
    book: ShortText | None = Field(None, description="`*`: all books. The default is `main`, or the key's first book.")
    metadata: Metadata = Field({}, description="Only memories with all of these key-value pairs.")
    created_after: datetime | None = None
    created_before: datetime | None = None
    limit: Annotated[int, Field(ge=1, le=MAX_HITS)] = 10
    search: Literal["ranked", "match_all"] = "ranked"


@router.post("/memories/search", response=list_of(answers.FoundMemory, "Search results, best first."))
async def memory_search(request: ApiRequest, body: SearchIn) -> dict[str, Any]:
    """Search memories. Results are ordered best first, with `match_all` in insertion order."""
    filters = MemoryFilters(
        metadata=body.metadata, created_after=body.created_after, created_before=body.created_before
    )
    vector = await _vector(request.auth, body)
    return await in_read_thread(_search, request.auth, body, filters, vector)


async def _vector(caller: Caller, body: SearchIn) -> Sequence[float] | None:
    """Return the query's vector if one book with vectors is searched; those of several books are not compared."""
    if body.book == ALL_BOOKS or body.search != "ranked":
        return None
    vectors = await query_vectors(caller.owner_id, caller.limits.book_name(body.book), [body.query])
    return vectors.get(body.query)


def _search(caller: Caller, body: SearchIn, filters: MemoryFilters, vector: Sequence[float] | None) -> dict[str, Any]:
    books = _books(caller, body.book)
    memories = Memory.objects.filter(live_condition(), owner_id=caller.owner_id, book__in=books)
    only = set(filters.of(memories).values_list("number", flat=True)) if filters else None
    if not books or only == set():
        return page_json([])
    index = index_over([snapshots.view(BookState.of(book)) for book in books])
    hits = index.search(
        body.query,
        limit=body.limit + 1,
        keywords=query_keywords(body.query),
        strategy=body.search,
        category=body.category or None,
        only=only,
        query_vector=vector,
    )
    # The view may be older than the last write: leave out memories that no longer match.
    rows = filters.of(memories.select_related("book").filter(number__in=[hit.number for hit in hits]))
    by_number = {row.number: row for row in rows}
    results = [
        memory_json(by_number[hit.number]) | {"score": round(hit.score, 4), "why": hit.why}
        for hit in hits
        if hit.number in by_number
    ]
    return page_json(results[: body.limit], has_more=len(results) > body.limit)


def _books(caller: Caller, name: str | None) -> list[Book]:
    if name == ALL_BOOKS:
        rows = Book.objects.filter(owner_id=caller.owner_id)
        return list(caller.limits.filter(rows, book="name").order_by("name"))
    book = book_named(caller.owner_id, caller.limits.book_name(name))
    return [book] if book else []
