"""/api/export, /api/import and /api/account/memories: export, import, and forgetting."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Annotated, Any
from uuid import UUID

from django.conf import settings
from django.db import DatabaseError
from django.http import HttpResponseBase
from ninja import Router
from pydantic import Field

from memories.api import answers
from memories.api.answers import documented
from memories.api.export import CONTENT_TYPE, download, export_lines
from memories.api.operations import without_fields
from memories.audit.log import Action, actor_of_caller, audit_record_own
from memories.caller import ApiRequest, Caller
from memories.database.access import in_read_thread, in_thread
from memories.database.batches import in_slices
from memories.errors import Overloaded, RateLimited
from memories.forgetting import forget_slices
from memories.imports.conversations import conversation_store
from memories.imports.files import Upload
from memories.imports.formats import AUTO, FORMATS, IMPORT_TYPES
from memories.imports.running import ImportRequest, import_slices
from memories.limits import IMPORTS, ShortText
from memories.open_counts import OpenCounts
from memories.selectors import require_book

router = Router(tags=["Import and export"])
# JSON Lines in the OpenAPI document.
LINES: dict[str, Any] = {CONTENT_TYPE: {"schema": {"type": "string", "maxLength": settings.DAYBOOK_MAX_BODY}}}
_BYTES = {"schema": {"type": "string", "format": "binary", "maxLength": settings.DAYBOOK_MAX_BODY}}
FILES: dict[str, Any] = LINES | dict.fromkeys(IMPORT_TYPES, _BYTES)
_SMALL_BYTES = 64_000  # of an upload that unpacks to little
_RETRY_AFTER = 5  # seconds
_running = OpenCounts[UUID]()  # imports by owner
FormatName = Annotated[str, Field(max_length=20, json_schema_extra={"enum": [AUTO, *FORMATS]})]


@router.get("/export", openapi_extra={"responses": {200: {"content": LINES}}})
async def export(request: ApiRequest, book: ShortText | None = None) -> HttpResponseBase:
    """Export all of the owner's data as JSON Lines, or only the memories of one book with their history."""
    if book is None and "book" in request.GET:
        book = ""  # the parser of queries drops it, but a name that a script has lost means no export of everything
    if book is None:
        request.auth.limits.refuse("An export of everything")
    else:
        request.auth.limits.require_books([book])
    await in_thread(_export_record, request.auth, book)
    return download(export_lines(request.auth.owner_id, book=book), "daybook-export.jsonl")


@router.post(
    "/import", response=documented(answers.Import), openapi_extra={"requestBody": {"content": FILES, "required": True}}
)
async def import_(
    request: ApiRequest,
    preview: bool = False,
    book: ShortText | None = None,
    format: FormatName = AUTO,
    name: ShortText = "",
    conversations: bool = True,
) -> dict[str, Any]:
    """Import memories and conversations: our own export or other JSON Lines, exports of ChatGPT, Claude, mem0, Open
    WebUI and Letta as JSON or zip, Markdown or text. Unless `format` is given it is detected, with the help of the
    file's `name`; `application/x-ndjson` means JSON Lines. With `preview` nothing is written, `added` shows the first
    new memories, and `rewordings` the first changed texts. `conversations=false` leaves out conversations."""
    if format == AUTO and request.content_type == CONTENT_TYPE:
        format = "jsonl"
    import_request = ImportRequest(
        upload=Upload.of(request.body, name),
        format=format,
        book=request.auth.limits.book_name(book),
        conversations=conversations,
        preview=preview,
    )
    work = import_slices(request.auth.owner_id, import_request, actor=request.auth.actor, limits=request.auth.limits)
    with _counted(request.auth.owner_id, len(request.body)):
        report = await in_slices(work)
        if report.written:
            with suppress(DatabaseError):  # everything is stored, and the worker's sweep indexes what is left
                await in_slices(conversation_store().index(request.auth.owner_id))
    return report.as_json()


@router.delete("/account/memories", response=documented(answers.Receipt))
@without_fields
async def forget(request: ApiRequest, book: ShortText | None = None) -> dict[str, Any]:
    """Permanently forget everything that is remembered, or one book of it. The receipt contains numbers only."""
    request.auth.limits.refuse("Forgetting")
    if book is not None:
        request.auth.limits.require_books([book])
        await in_read_thread(require_book, request.auth.owner_id, book)
    by = await in_read_thread(actor_of_caller, request.auth)
    return (await in_slices(forget_slices(request.auth.owner_id, book=book, by=by))).as_json()


@contextmanager
def _counted(owner_id: UUID, size: int) -> Iterator[None]:
    """Count an import, unless it is small: half a megabyte may unpack to 100 MB, which take up to 500 MB of memory.
    Raises RateLimited, Overloaded."""
    if size <= _SMALL_BYTES:
        yield
        return
    if len(_running) >= IMPORTS and owner_id not in _running:
        raise Overloaded("Too many people are importing. Try again in a moment.", retry_after=_RETRY_AFTER)
    if not _running.enter(owner_id, limit=1):
        raise RateLimited("Another import of yours is running. Try again when it has ended.", retry_after=_RETRY_AFTER)
    try:
        yield
    finally:
        _running.leave(owner_id)


def _export_record(caller: Caller, book: str | None) -> None:
    if book is not None:
        require_book(caller.owner_id, book)
    audit_record_own(Action.EXPORT, caller, kind="owner", object_id=caller.owner_id)
