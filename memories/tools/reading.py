"""The tools that read a book: search, and the list of all memories."""

from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from memories.limits import LISTED_CHARACTERS, LISTED_MEMORIES
from memories.models import Book, Memory
from memories.recall.book_views import BookState, load_view
from memories.recall.snapshot import snapshots
from memories.selectors import blocked_condition, live_in
from memories.services import book_limits, characters_used
from memories.tools.tool import Arguments, BoundedQuery, Stage, Tool, ToolRun, Words
from search.keywords import query_keywords

SEARCH_LIMIT = 10
MORE = "These are the newest memories. There are more: search for them."
_STAGES = frozenset({Stage.MEMORY, Stage.MCP})


class SearchMemories(Arguments):
    query: BoundedQuery = Field(description="What to look for.")
    category: str | None = Field(None, description="Only memories of this category.")


class GetMemories(Arguments):
    pass


class FoundMemory(TypedDict):
    id: int
    category: str
    content: str


class Found(TypedDict):
    ok: Literal[True]
    memories: Annotated[list[FoundMemory], Field(description="Best first.")]


class ListedMemory(FoundMemory):
    target: str


class Room(TypedDict):
    used: Annotated[int, Field(description="Characters that memories take.")]
    limit: Annotated[int, Field(description="Characters that they may take; 0 = no limit.")]


class Listed(TypedDict):
    ok: Literal[True]
    memories: Annotated[list[ListedMemory], Field(description="Newest last.")]
    budget: Annotated[dict[str, Room], Field(description="Room by target.")]
    note: NotRequired[Annotated[str, Field(description="There when there are more memories than are listed.")]]


def _search(run: ToolRun, arguments: SearchMemories) -> dict[str, Any]:
    book = run.book
    # Uncommitted writes of this step have no generation yet, so the search then uses a view of its own, which is not
    # cached.
    state = BookState.of(book)
    wrote = run.writer is not None and run.writer.change_set is not None
    view = load_view(state) if wrote else snapshots.view(state)
    hits = view.index.search(
        arguments.query,
        limit=SEARCH_LIMIT,
        keywords=query_keywords(arguments.query),
        strategy=run.scope.search,
        category=arguments.category,
        query_vector=run.scope.vectors.get(arguments.query),
    )
    found = (view.by_number[hit.number] for hit in hits)
    return {"ok": True, "memories": [{"id": e.number, "category": e.category, "content": e.content} for e in found]}


def _list(run: ToolRun, _: GetMemories) -> dict[str, Any]:
    used = characters_used(run.book)
    newest, more = newest_memories(run.book)
    result = {
        "ok": True,
        "memories": [
            {"id": r.number, "target": r.target, "category": r.category, "content": r.content} for r in reversed(newest)
        ],
        "budget": {
            str(target): {"used": used.get(target, 0), "limit": limit}
            for target, limit in book_limits(run.book.name).items()
        },
    }
    return {**result, "note": MORE} if more else result


def newest_memories(book: Book) -> tuple[list[Memory], bool]:
    """Return the newest memories of a book that are not blocked, newest first and within the limits of a list, and
    whether there are more."""
    found: list[Memory] = []
    remaining = LISTED_CHARACTERS
    rows = live_in(book).exclude(blocked_condition()).order_by("-number")
    for row in rows.only("number", "target", "category", "content")[: LISTED_MEMORIES + 1]:
        remaining -= len(row.content)
        if remaining < 0 or len(found) == LISTED_MEMORIES:
            return found, True
        found.append(row)
    return found, False


SEARCH_MEMORIES = Tool(
    name="search_memories",
    title="Search memories",
    description="Search what is remembered, best first.",
    arguments=SearchMemories,
    handler=_search,
    result=Found,
    stages=_STAGES,
    words=Words("Looking in your memories…", "Looked in your memories."),
    detail="query",
    detailed=Words("Looking in your memories for “{}”…", "Looked in your memories for “{}”."),
)
GET_MEMORIES = Tool(
    name="get_memories",
    title="List memories",
    description="List everything that is remembered, with ids and the room that is left.",
    arguments=GetMemories,
    handler=_list,
    result=Listed,
    stages=_STAGES,
    words=Words("Reading your memories…", "Read your memories."),
)
