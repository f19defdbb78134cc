"""/api/memories (the search is in memories.api.search), /api/changes and /api/notifications."""

from datetime import datetime
from typing import Annotated, Any

from django.http import HttpResponse
from ninja import Router, Status
from pydantic import Field

from memories.api import answers
from memories.api.answers import documented, list_of
from memories.api.bodies import METADATA_QUERY, Body, BookName, Category, Content, inline_enum
from memories.api.operations import reading, without_fields, writing
from memories.api.serializers import memory_json, revision_json
from memories.bulk_edits import BulkAction, BulkEditResult, bulk_edit_slices, edit_of
from memories.caller import ALL_BOOKS, ApiRequest, Caller
from memories.database.access import in_read_thread, in_thread
from memories.database.batches import in_slices
from memories.entry_rules import clean_category, clean_content, clean_keywords, scanned_words
from memories.errors import InvalidRequest, NotFound
from memories.filters import MemoryFilters, contains_text, metadata_from_query
from memories.health import health_of_books
from memories.history.undo import change_set_get, memory_restore, undo_slices
from memories.ids import parse_uuid
from memories.limits import BULK_MEMORIES, AfterNumber, GivenKeywords, PageSize, QueryMoment, QueryText, ShortText
from memories.messaging.outbox import PAGE, notifications_after
from memories.metadata import Metadata
from memories.models import ChangeSet, Memory, Revision, Target, WriteOrigin
from memories.pagination import DEFAULT_LIMIT, list_json, page_json, parse_number
from memories.selectors import book_named, live_condition, memory_get, row_by_id
from memories.services import MemoryFields, Source, book_get_or_create, book_writing, fields_given, memory_changes
from memories.verdicts import INLINE_SCAN_CHARS, scan_ahead, verdict_of

router = Router(tags=["Memories"])


class MemoryIn(
    Body,
    json_schema_extra={
        "examples": [
            {"content": "Is vegetarian.", "category": "food", "keywords": ["diet"], "metadata": {"source": "crm"}}
        ]
    },
):
    content: Content
    target: ShortText = "user"
    category: Category = "general"
    keywords: GivenKeywords = []
    metadata: Metadata = {}
    book: BookName | None = None
    pinned: bool = False
    expires_at: datetime | None = None


class MemoryPatch(Body, json_schema_extra={"examples": [{"content": "Is vegan.", "pinned": True}]}):
    content: Content | None = None
    target: ShortText | None = None
    category: Category | None = None
    keywords: GivenKeywords | None = None
    metadata: Metadata | None = Field(None, description="Replaces all metadata: omitted keys are removed.")
    pinned: bool | None = None
    expires_at: datetime | None = None


class BulkIn(
    Body,
    json_schema_extra={"examples": [{"ids": ["12", "7"], "action": "categorise", "category": "food", "book": "main"}]},
):
    ids: Annotated[list[ShortText], Field(min_length=1, max_length=BULK_MEMORIES)]
    action: BulkAction = Field(description="`restore` is for deleted memories, the others are for live ones.")
    category: Category | None = Field(None, description="The new category, for `categorise`.")
    book: ShortText | None = Field(
        None, description="The book of these memories. The default is `main`, or the key's first book."
    )


class RestoreIn(Body, json_schema_extra={"examples": [{"revision": "01a20650-d0a0-7484-b03a-04197972ff6f"}]}):
    revision: ShortText


@router.post("/memories", response={201: documented(answers.Memory), 200: documented(answers.Memory)})
async def memory_add(request: ApiRequest, body: MemoryIn, response: HttpResponse) -> Status[Any]:
    """Add a memory. If the book has a memory with this content, update the other given fields in it and answer 200."""
    fields = MemoryFields(**body.dict(exclude={"book"}))
    fields_given(fields)  # refuse invalid fields before taking a thread and a lock
    await scan_ahead(clean_content(body.content), clean_keywords(body.keywords), body.metadata)
    given = _given_fields(body.dict(exclude={"book"}, exclude_unset=True))
    status, memory = await in_thread(_add, request.auth, body.book, fields, given)
    return Status(status, with_etag(response, memory))


@router.get("/memories", response=list_of(answers.Memory, "Memories."), openapi_extra={"parameters": [METADATA_QUERY]})
@reading
def memory_list(
    request: ApiRequest,
    book: ShortText | None = None,
    target: Annotated[Target | None, inline_enum(Target)] = None,
    category: ShortText | None = None,
    write_origin: Annotated[WriteOrigin | None, inline_enum(WriteOrigin)] = None,
    review: ShortText | None = None,
    q: QueryText | None = None,
    created_after: QueryMoment | None = None,
    created_before: QueryMoment | None = None,
    limit: PageSize = DEFAULT_LIMIT,
    after: ShortText | None = None,
) -> dict[str, Any]:
    """List live memories, newest first, of all books unless one is named. `metadata.<key>=` filters by metadata."""
    filters = MemoryFilters(
        metadata=metadata_from_query(request.GET), created_after=created_after, created_before=created_before
    )
    equal = {"target": target, "category": category, "write_origin": write_origin}
    equal["book__name"] = None if book == ALL_BOOKS else book
    rows = Memory.objects.select_related("book").filter(live_condition(), owner_id=request.auth.owner_id)
    rows = request.auth.limits.filter(rows, book="book__name")
    rows = filters.of(rows.filter(**{name: value for name, value in equal.items() if value}))
    if review:
        review_id = parse_uuid(review)
        rows = rows.filter(review_id=review_id) if review_id else rows.none()
    if q:
        rows = rows.filter(contains_text(q, "content", "category"))
    return list_json(rows, limit=limit, after=after, key="number", show=memory_json, parse=parse_number)


@router.get("/memories/health", response=list_of(answers.BookHealth, "The health of each book."))
@reading
def memory_health(request: ApiRequest) -> dict[str, Any]:
    """Return each book's health: budgets, covered sessions and the last review, in figures and as text."""
    return page_json(health_of_books(request.auth.owner_id, limits=request.auth.limits))


@router.post("/memories/bulk", response=documented(answers.BulkEdited))
async def memory_bulk(request: ApiRequest, body: BulkIn) -> dict[str, Any]:
    """Delete, restore, pin, unpin or categorise many memories of one book; those of other books are left alone. The
    whole edit is one change set, which can be undone."""
    caller = request.auth
    edit = edit_of(body.action, clean_category(body.category or "") if body.action == "categorise" else "")
    numbers = {id: parse_number(id) for id in body.ids}
    valid = [parsed for parsed in numbers.values() if parsed is not None]
    book = await in_read_thread(book_named, caller.owner_id, caller.limits.book_name(body.book))
    result = BulkEditResult(change_set=None, changed=(), left_alone=tuple(valid))
    if book is not None:
        result = await in_slices(bulk_edit_slices(book, valid, edit, edit_source(caller)))
    answer = result.as_json()
    answer["left_alone"] += [id for id, parsed in numbers.items() if parsed is None]
    return answer


@router.get("/memories/{memory_id}", response=documented(answers.Memory))
@reading
def memory_read(request: ApiRequest, memory_id: str, response: HttpResponse) -> dict[str, Any]:
    """Return a memory, with its ETag."""
    return with_etag(response, memory_json(_get(request.auth, memory_id)))


@router.patch("/memories/{memory_id}", response=documented(answers.Memory))
async def memory_patch(
    request: ApiRequest, memory_id: str, body: MemoryPatch, response: HttpResponse
) -> dict[str, Any]:
    """Update a memory. If-Match guards against lost updates."""
    fields = _given_fields(body.dict(exclude_unset=True))
    fields_given(fields)  # refuse invalid fields before taking a thread and a lock
    if len(fields.content or "") > INLINE_SCAN_CHARS or fields.metadata is not None:
        await in_read_thread(_scan_patch, request.auth, memory_id, fields)
    return with_etag(response, await in_thread(_patch, request.auth, memory_id, fields, if_match(request)))


@router.delete("/memories/{memory_id}", response={204: None})
@without_fields
@writing
def memory_delete(request: ApiRequest, memory_id: str) -> Status[Any]:
    """Delete a memory. It can be restored for some days."""
    memory = _get(request.auth, memory_id)
    version = expected_version(if_match(request), memory.version)
    with book_writing(memory.book, edit_source(request.auth)) as writer:
        writer.delete(memory.number, version=version)
    return Status(204, None)


@router.get(
    "/memories/{memory_id}/revisions", response=list_of(answers.Revision, "The history of a memory, newest first.")
)
@reading
def revision_list(
    request: ApiRequest, memory_id: str, limit: PageSize = DEFAULT_LIMIT, after: ShortText | None = None
) -> dict[str, Any]:
    """List the revisions of a memory, newest first. The memory may be deleted."""
    memory = _get(request.auth, memory_id, deleted=True)
    rows = Revision.objects.filter(owner_id=memory.owner_id, memory=memory).select_related("change_set")
    return list_json(rows, limit=limit, after=after, show=revision_json)


@router.post("/memories/{memory_id}/restore", response=documented(answers.Memory))
@writing
def memory_put_back(request: ApiRequest, memory_id: str, body: RestoreIn, response: HttpResponse) -> dict[str, Any]:
    """Restore the state after one of the memory's revisions."""
    memory = _get(request.auth, memory_id, deleted=True)
    revision = row_by_id(Revision.objects.filter(owner_id=memory.owner_id, memory=memory), body.revision)
    if revision is None:
        raise NotFound("This memory has no such revision.")
    restored = memory_restore(memory, revision, edit_source(request.auth)).memory
    return with_etag(response, memory_json(restored))


@router.post("/changes/{change_set}/undo", response=documented(answers.Undone))
@without_fields
async def change_undo(request: ApiRequest, change_set: str) -> dict[str, Any]:
    """Undo a change set. Undoing an undo restores the changes."""
    caller = request.auth
    row = await in_read_thread(change_set_get, caller.owner_id, parse_uuid(change_set), limits=caller.limits)
    source = edit_source(caller, ChangeSet.Kind.UNDO)
    return (await in_slices(undo_slices(row, source, limits=caller.limits))).as_json()


@router.get("/notifications", response=list_of(answers.Notification, "Notifications, oldest first."))
@reading
def notification_list(request: ApiRequest, after: AfterNumber = 0, limit: PageSize = PAGE) -> dict[str, Any]:
    """List the notifications after number `after`, oldest first."""
    rows = notifications_after(request.auth.owner_id, after, limits=request.auth.limits, max_count=limit + 1)
    return page_json(rows[:limit], has_more=len(rows) > limit)


def with_etag(response: HttpResponse, row: dict[str, Any]) -> dict[str, Any]:
    """Set the ETag of the response to the version of the row, and return the row."""
    response["ETag"] = f'"{row["version"]}"'
    return row


def if_match(request: ApiRequest) -> frozenset[int] | None:
    """Return the versions in the If-Match header, or None for any. Raises InvalidRequest."""
    tags = [tag for given in request.headers.get("if-match", "").split(",") if (tag := given.strip())]
    if not tags or "*" in tags:
        return None
    versions = [parse_number(tag.removeprefix("W/").strip('"')) for tag in tags]
    known = frozenset(version for version in versions if version is not None)
    if len(known) < len(set(versions)):
        raise InvalidRequest("If-Match must be the ETag of the memory as you read it.")
    return known


def expected_version(versions: frozenset[int] | None, present: int) -> int | None:
    """Return the one of these versions that a write may replace, which decides whether there was another one since."""
    if versions is None:
        return None
    return max((version for version in versions if version <= present), default=max(versions))


def edit_source(caller: Caller, kind: ChangeSet.Kind = ChangeSet.Kind.EDIT) -> Source:
    """Return the source for writes of the owner, by page or API."""
    return Source(actor=caller.actor, origin=WriteOrigin.USER, kind=kind)


def _given_fields(given: dict[str, Any]) -> MemoryFields:
    """Return the fields that a request sets. An explicit null for `expires_at` removes the expiry."""
    return MemoryFields(**given, clear_expiry="expires_at" in given and given["expires_at"] is None)


def _add(
    caller: Caller, book_name: str | None, fields: MemoryFields, given: MemoryFields
) -> tuple[int, dict[str, Any]]:
    book = book_get_or_create(caller.owner_id, caller.limits.book_name(book_name))
    with book_writing(book, edit_source(caller)) as writer:
        written = writer.add(fields, if_known=given)
    is_new = written.revision is not None and written.revision.action == Revision.Action.ADD
    return (201 if is_new else 200), memory_json(written.memory)


def _get(caller: Caller, memory_id: str, *, deleted: bool = False) -> Memory:
    return memory_get(caller.owner_id, memory_id, deleted=deleted, limits=caller.limits)


def _scan_patch(caller: Caller, memory_id: str, fields: MemoryFields) -> None:
    """Scan the memory as it would be after the patch, before the lock is taken."""
    memory = _get(caller, memory_id)
    verdict_of(*scanned_words(memory, memory_changes(memory, fields)))


def _patch(caller: Caller, memory_id: str, fields: MemoryFields, versions: frozenset[int] | None) -> dict[str, Any]:
    memory = _get(caller, memory_id)
    version = expected_version(versions, memory.version)
    with book_writing(memory.book, edit_source(caller)) as writer:
        written = writer.update(memory.number, fields, version=version)
    return memory_json(written.memory)
