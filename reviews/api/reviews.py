"""/api/reviews: background reviews, requesting one, undoing their writes, and deciding about held writes."""

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

from ninja import Router, Status
from pydantic import Field, StrictInt

from gateway.services import session_get
from memories.api.answers import Undone, as_shape, documented, list_of
from memories.api.bodies import EMPTY_AS_NONE, Body, Content, inline_enum
from memories.api.operations import reading, writing
from memories.audit.log import Action, audit_record_own
from memories.caller import ApiRequest, Caller
from memories.database.access import in_read_thread
from memories.database.batches import in_slices
from memories.ids import parse_uuid
from memories.limits import WRITES, PageSize, ShortText
from memories.models import WriteOrigin
from memories.pagination import DEFAULT_LIMIT, list_json
from reviews import approvals
from reviews.api.answers import Review
from reviews.models import ReviewRun
from reviews.schedule import review_session
from reviews.selectors import review_get, review_model
from reviews.undo import review_undo_slices

router = Router()


class WritesIn(Body, json_schema_extra={"examples": [{"writes": [0, 2]}]}):
    writes: Annotated[list[StrictInt], Field(max_length=WRITES)] | None = None


class ApprovalIn(WritesIn, json_schema_extra={"examples": [{"writes": [0], "edits": {"0": "Lives in York."}}]}):
    edits: Annotated[
        dict[int, Content],
        Field(max_length=WRITES, json_schema_extra={"propertyNames": {"pattern": "^[0-9]+$"}}),
    ] = {}


@router.post("/sessions/{session_id}/review", response={202: documented(Review)})
@writing
def session_review(request: ApiRequest, session_id: str) -> Status[Any]:
    """Start a review of a session."""
    caller = request.auth
    session = session_get(caller.owner_id, parse_uuid(session_id), limits=caller.limits)
    return Status(202, review_json(review_session(caller.owner_id, session.pk)))


@router.get("/reviews", response=list_of(Review, "Reviews, newest first."))
@reading
def review_list(
    request: ApiRequest,
    session_id: ShortText | None = None,
    state: Annotated[ReviewRun.State | None, EMPTY_AS_NONE, inline_enum(ReviewRun.State)] = None,
    limit: PageSize = DEFAULT_LIMIT,
    after: ShortText | None = None,
) -> dict[str, Any]:
    """List reviews, newest first."""
    caller = request.auth
    rows = ReviewRun.objects.filter(owner_id=caller.owner_id)
    rows = caller.limits.filter(rows, book="book__name", agent="agent_name")
    if session_id:
        rows = rows.filter(session=session_get(caller.owner_id, parse_uuid(session_id), limits=caller.limits))
    if state:
        rows = rows.filter(state=state)
    return list_json(rows, limit=limit, after=after, key="id", show=review_json, parse=parse_uuid)


@router.get("/reviews/{review_id}", response=documented(Review))
@reading
def review_read(request: ApiRequest, review_id: str) -> dict[str, Any]:
    """Return a review with its writes."""
    return review_json(_get(request.auth, review_id))


@router.post("/reviews/{review_id}/undo", response=documented(Undone))
async def review_undo(request: ApiRequest, review_id: str, body: WritesIn | None = None) -> dict[str, Any]:
    """Undo all writes of a review, or some of them."""
    caller, only = request.auth, _indexes(body.writes if body else None)
    review = await in_read_thread(_get, caller, review_id)
    work = review_undo_slices(review, actor=caller.actor, origin=WriteOrigin.USER, only=only)
    return (await in_slices(work)).as_json()


@router.post("/reviews/{review_id}/approve", response=documented(Review))
@writing
def review_approve(request: ApiRequest, review_id: str, body: ApprovalIn | None = None) -> dict[str, Any]:
    """Save all or some of the writes that wait for a decision; `edits` replaces their content, by index."""
    body = body or ApprovalIn()
    approve = partial(approvals.review_approve, edits=body.edits)
    return _decide(request.auth, review_id, body.writes, approve, "Approved")


@router.post("/reviews/{review_id}/reject", response=documented(Review))
@writing
def review_reject(request: ApiRequest, review_id: str, body: WritesIn | None = None) -> dict[str, Any]:
    """Reject all or some of the writes that wait for a decision."""
    writes = body.writes if body else None
    return _decide(request.auth, review_id, writes, approvals.review_reject, "Rejected")


def review_json(review: ReviewRun) -> dict[str, Any]:
    """Return a review as the API shows it."""
    return as_shape(
        Review,
        review,
        object="review",
        model=review.model or review_model(review),
        writes=[write.to_json(public=True) for write in review.writes],
    )


def _get(caller: Caller, review_id: str) -> ReviewRun:
    return review_get(caller.owner_id, parse_uuid(review_id), limits=caller.limits)


def _decide(
    caller: Caller, review_id: str, writes: list[int] | None, decide: Callable[..., ReviewRun], verb: str
) -> dict[str, Any]:
    review, only = _get(caller, review_id), _indexes(writes)
    chosen = "all writes" if only is None else "writes " + ", ".join(map(str, sorted(only)))[:100]
    note = f"{verb} {chosen}."
    decided = decide(review, actor=caller.actor, only=only, record=lambda _: decision_record(caller, review, note))
    return review_json(decided)


def decision_record(caller: Caller, review: ReviewRun, note: str) -> None:
    """Record the owner's decision about held writes in the audit log."""
    audit_record_own(Action.CHANGE, caller.owner_id, caller.actor, kind="review run", object_id=review.pk, note=note)


def _indexes(writes: list[int] | None) -> frozenset[int] | None:
    return None if writes is None else frozenset(writes)
