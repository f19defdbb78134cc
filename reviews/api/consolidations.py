"""/api/consolidations: consolidation runs, previewing, starting and stopping them, and forgetting a session."""

from dataclasses import asdict
from typing import Any

from ninja import Router, Status

from gateway.models import Agent
from gateway.services import session_forget, session_get
from memories.api.answers import as_shape, documented, list_of
from memories.api.bodies import Body, BookName
from memories.api.operations import reading, without_fields, writing
from memories.caller import ALL_BOOKS, ApiRequest, Caller
from memories.database.access import in_read_thread, in_thread
from memories.ids import parse_uuid
from memories.limits import PageSize, ShortText
from memories.models import Book
from memories.pagination import DEFAULT_LIMIT, list_json
from memories.selectors import book_named, require_book
from memories.services import book_get_or_create
from reviews.api.answers import Consolidation, ConsolidationPreview, StartedConsolidation
from reviews.consolidation import runs
from reviews.consolidation.preview import consolidation_preview
from reviews.consolidation.requests import Trigger, consolidation_request
from reviews.consolidation.standing import standing_of
from reviews.models import ConsolidationRun
from reviews.selectors import consolidation_get

router = Router(tags=["Consolidation"])


class ConsolidationIn(Body, json_schema_extra={"examples": [{"book": "main", "dry_run": True}]}):
    book: BookName | None = None
    force: bool = False
    dry_run: bool = False


@router.post("/consolidations", response={202: documented(StartedConsolidation | ConsolidationPreview)})
async def consolidation_start(request: ApiRequest, body: ConsolidationIn) -> Status[Any]:
    """Start a consolidation, ignoring cool-downs and a paused earlier run; with `force`, even if nothing has changed.
    With `dry_run` only return a preview and write nothing. `standing` tells how many sessions may be read, are resting,
    or are unchanged. A book that neither exists nor is used by an agent answers 404."""
    if not body.dry_run:
        return Status(202, await in_thread(_start, request.auth, body))
    # A preview reads all sessions, so it would keep the writes of others waiting.
    return Status(202, await in_read_thread(_preview, request.auth, body))


def _preview(caller: Caller, body: ConsolidationIn) -> dict[str, Any]:
    name = _book_name(caller, body)
    book = book_named(caller.owner_id, name) or Book(owner_id=caller.owner_id, name=name)
    return consolidation_preview(book, force=body.force)


def _book_name(caller: Caller, body: ConsolidationIn) -> str:
    """Return the book's name. Raises NotFound unless the book exists or an agent uses it: such a book is created at its
    first use, and a misspelt one never."""
    name = caller.limits.book_name(body.book)
    if not Agent.objects.filter(book=name).exists():
        require_book(caller.owner_id, name)
    return name


def _start(caller: Caller, body: ConsolidationIn) -> dict[str, Any]:
    book = book_get_or_create(caller.owner_id, _book_name(caller, body))
    run = consolidation_request(book, trigger=Trigger.REQUEST, actor=caller.actor, force=body.force)
    return run_json(run) | {"standing": asdict(standing_of(book, force=run.force))}


@router.get("/consolidations", response=list_of(Consolidation, "Runs, newest first."))
@reading
def consolidation_list(
    request: ApiRequest, book: ShortText | None = None, limit: PageSize = DEFAULT_LIMIT, after: ShortText | None = None
) -> dict[str, Any]:
    """List runs, newest first."""
    rows = ConsolidationRun.objects.filter(owner_id=request.auth.owner_id).select_related("book")
    rows = request.auth.limits.filter(rows, book="book__name")
    if book and book != ALL_BOOKS:
        rows = rows.filter(book__name=book)
    return list_json(rows, limit=limit, after=after, show=run_json)


@router.get("/consolidations/{run_id}", response=documented(Consolidation))
@reading
def consolidation_read(request: ApiRequest, run_id: str) -> dict[str, Any]:
    """Return a run with its progress."""
    return run_json(_run(request.auth, run_id))


@router.post("/consolidations/{run_id}/stop", response=documented(Consolidation))
@without_fields
@writing
def consolidation_stop(request: ApiRequest, run_id: str) -> dict[str, Any]:
    """Stop a run. What it has done so far is kept."""
    run = _run(request.auth, run_id)
    runs.cancel(run, "Stopped by a person.")
    return run_json(_run(request.auth, run_id))


@router.post("/sessions/{session_id}/forget", response={204: None})
@without_fields
@writing
def session_forgotten(request: ApiRequest, session_id: str) -> Status[Any]:
    """Forget what was derived from a session in the background. Its transcript and its memories are kept."""
    caller = request.auth
    session_forget(session_get(caller.owner_id, parse_uuid(session_id), limits=caller.limits))
    return Status(204, None)


def run_json(run: ConsolidationRun) -> dict[str, Any]:
    """Return a run as the API shows it. `book` should be selected with the row."""
    return as_shape(Consolidation, run, object="consolidation", book=run.book.name, ceiling=run.ceiling or None)


def _run(caller: Caller, run_id: str) -> ConsolidationRun:
    return consolidation_get(caller.owner_id, parse_uuid(run_id), limits=caller.limits)
