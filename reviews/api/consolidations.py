"""/api/consolidations: what consolidation does; asking for a run, looking first, stopping; forgetting a session."""

from dataclasses import asdict
from typing import Any

from ninja import Router, Status

from gateway.services import session_forget, session_get
from memories.api.answers import as_shape
from memories.api.bodies import Body
from memories.api.operations import reading, writing
from memories.caller import ALL_BOOKS, ApiRequest, Caller
from memories.ids import parse_uuid
from memories.limits import PageSize, ShortText
from memories.pagination import DEFAULT_LIMIT, list_json
from memories.services import book_get_or_create
from reviews.api.answers import Consolidation
from reviews.consolidation import runs
from reviews.consolidation.preview import consolidation_preview
from reviews.consolidation.requests import Trigger, consolidation_request
from reviews.consolidation.standing import standing_of
from reviews.models import ConsolidationRun
from reviews.selectors import consolidation_get

router = Router()


class ConsolidationIn(Body):
    book: ShortText | None = None
    force: bool = False
    dry_run: bool = False


@router.post("/consolidations", response={202: Any})
@writing
def consolidation_start(request: ApiRequest, body: ConsolidationIn) -> Status[Any]:
    """Rebuild now, also before any cool-down and while an earlier run rests; with `force` also when nothing changed;
    with `dry_run` only look. `standing` says which sessions may be read, which rest until when, which are unchanged."""
    caller = request.auth
    book = book_get_or_create(caller.owner_id, caller.limits.book_name(body.book))
    if body.dry_run:
        return Status(202, consolidation_preview(book, force=body.force).as_json())
    run = consolidation_request(book, trigger=Trigger.REQUEST, actor=caller.actor, force=body.force)
    return Status(202, run_json(run) | {"standing": asdict(standing_of(book, force=run.force))})


@router.get("/consolidations")
@reading
def consolidation_list(
    request: ApiRequest, book: ShortText | None = None, limit: PageSize = DEFAULT_LIMIT, after: ShortText | None = None
) -> dict[str, Any]:
    """Runs, newest first."""
    rows = ConsolidationRun.objects.filter(owner_id=request.auth.owner_id).select_related("book")
    rows = request.auth.limits.filter(rows, book="book__name")
    if book and book != ALL_BOOKS:
        rows = rows.filter(book__name=book)
    return list_json(rows, limit=limit, after=after, key="id", show=run_json, parse=parse_uuid)


@router.get("/consolidations/{run_id}")
@reading
def consolidation_read(request: ApiRequest, run_id: str) -> dict[str, Any]:
    """One run with its progress."""
    return run_json(_run(request.auth, run_id))


@router.post("/consolidations/{run_id}/stop")
@writing
def consolidation_stop(request: ApiRequest, run_id: str) -> dict[str, Any]:
    """Stop a run; what is done stays done."""
    run = _run(request.auth, run_id)
    runs.cancel(run, "Stopped by a person.")
    return run_json(_run(request.auth, run_id))


@router.post("/sessions/{session_id}/forget", response={204: None})
@writing
def session_forgotten(request: ApiRequest, session_id: str) -> Status[Any]:
    """Forget what was made of a session in the background; its transcript and the memories it gave stay."""
    caller = request.auth
    session_forget(session_get(caller.owner_id, parse_uuid(session_id), limits=caller.limits))
    return Status(204, None)


def run_json(run: ConsolidationRun) -> dict[str, Any]:
    """Return a run as the API shows it. The row comes with its book."""
    return as_shape(Consolidation, run, object="consolidation", book=run.book.name, ceiling=run.ceiling or None)


def _run(caller: Caller, run_id: str) -> ConsolidationRun:
    return consolidation_get(caller.owner_id, parse_uuid(run_id), limits=caller.limits)
