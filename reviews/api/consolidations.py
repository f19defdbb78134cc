"""/api/consolidations: what consolidation does; asking for a run, looking first, stopping; forgetting a session."""

from dataclasses import asdict
from typing import Any

from ninja import Router, Status

from gateway.services import session_forget, session_get
from memories.api.bodies import Body
from memories.caller import ApiRequest, Caller
from memories.database import in_read_thread, in_thread
from memories.ids import parse_uuid
from memories.limits import PageSize, ShortText
from memories.pagination import DEFAULT_LIMIT, list_json
from memories.services import book_get_or_create
from reviews.api.answers import Consolidation, as_shape
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
async def consolidation_start(request: ApiRequest, body: ConsolidationIn) -> Status[Any]:
    """Rebuild now, also before any cool-down and while an earlier run rests; with `force` also when nothing changed;
    with `dry_run` only look. `standing` says which sessions may be read, which rest until when, which are unchanged."""
    return Status(202, await in_thread(_start, request.auth, body))


@router.get("/consolidations")
async def consolidation_list(
    request: ApiRequest, book: ShortText | None = None, limit: PageSize = DEFAULT_LIMIT, after: ShortText | None = None
) -> dict[str, Any]:
    """Runs, newest first."""
    return await in_read_thread(_list, request.auth, book, limit, after)


@router.get("/consolidations/{run_id}")
async def consolidation_read(request: ApiRequest, run_id: str) -> dict[str, Any]:
    """One run with its progress."""
    return run_json(await in_read_thread(_run, request.auth, run_id))


@router.post("/consolidations/{run_id}/stop")
async def consolidation_stop(request: ApiRequest, run_id: str) -> dict[str, Any]:
    """Stop a run; what is done stays done."""
    return await in_thread(_stop, request.auth, run_id)


@router.post("/sessions/{session_id}/forget", response={204: None})
async def session_forgotten(request: ApiRequest, session_id: str) -> Status[Any]:
    """Forget what was made of a session in the background; its transcript and the memories it gave stay."""
    await in_thread(_forget, request.auth, session_id)
    return Status(204, None)


def run_json(run: ConsolidationRun) -> dict[str, Any]:
    """Return a run as the API shows it. The row comes with its book."""
    change_set = str(run.change_set) if run.change_set else None
    values = {"id": str(run.pk), "object": "consolidation", "book": run.book.name}
    return as_shape(Consolidation, run, **values, ceiling=run.ceiling or None, change_set=change_set)


def _start(caller: Caller, body: ConsolidationIn) -> dict[str, Any]:
    book = book_get_or_create(caller.owner_id, caller.limits.book_name(body.book))
    if body.dry_run:
        return consolidation_preview(book, force=body.force).as_json()
    run = consolidation_request(book, trigger=Trigger.REQUEST, actor=caller.actor, force=body.force)
    return run_json(run) | {"standing": asdict(standing_of(book, force=run.force))}


def _run(caller: Caller, run_id: str) -> ConsolidationRun:
    return consolidation_get(caller.owner_id, parse_uuid(run_id), limits=caller.limits)


def _list(caller: Caller, book: str | None, limit: int, after: str | None) -> dict[str, Any]:
    rows = ConsolidationRun.objects.filter(owner_id=caller.owner_id).select_related("book")
    rows = caller.limits.filter(rows, book="book__name")
    if book:
        rows = rows.filter(book__name=book)
    return list_json(rows, limit=limit, after=after, key="id", show=run_json, parse=parse_uuid)


def _stop(caller: Caller, run_id: str) -> dict[str, Any]:
    run = _run(caller, run_id)
    runs.cancel(run, "Stopped by a person.")
    return run_json(consolidation_get(caller.owner_id, run.pk))


def _forget(caller: Caller, session_id: str) -> None:
    session_forget(session_get(caller.owner_id, parse_uuid(session_id), limits=caller.limits))
