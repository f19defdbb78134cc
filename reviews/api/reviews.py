"""/api/reviews and /api/proposals: background reviews, requesting one, and undoing their writes; and writes of reviews,
turns, apps and imports that wait for a decision, and deciding about all of a review or about a single one."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any

from ninja import Router, Status
from pydantic import Field, StrictInt

from gateway.services import session_get
from memories.api.answers import Undone, as_shape, documented, list_of
from memories.api.bodies import Body, Content, inline_enum
from memories.api.operations import reading, without_fields, writing
from memories.audit.log import Action, audit_record_own
from memories.caller import ApiRequest, Caller
from memories.database.access import in_read_thread
from memories.database.batches import in_slices
from memories.errors import InvalidRequest
from memories.ids import parse_uuid
from memories.limits import WRITES, PageSize, ShortText
from memories.models import WriteOrigin
from memories.pagination import DEFAULT_LIMIT, list_json, page_json
from reviews import approvals
from reviews.api.answers import Proposal, Review
from reviews.models import ReviewRun
from reviews.proposals import ProposalState, ProposedWrite, proposal_get, proposals_list
from reviews.schedule import review_session
from reviews.selectors import review_get, review_model
from reviews.undo import review_undo_slices

router = Router(tags=["Reviews"])


class WritesIn(Body, json_schema_extra={"examples": [{"writes": [0, 2]}]}):
    writes: Annotated[list[StrictInt], Field(max_length=WRITES)] | None = None


class ApprovalIn(WritesIn, json_schema_extra={"examples": [{"writes": [0], "edits": {"0": "Lives in York."}}]}):
    edits: Annotated[
        dict[int, Content],
        Field(max_length=WRITES, json_schema_extra={"propertyNames": {"pattern": "^[0-9]+$"}}),
    ] = {}


class ProposalApproval(Body, json_schema_extra={"examples": [{"content": "Lives in York."}]}):
    content: Annotated[Content | None, Field(description="Content to save instead of the proposed one.")] = None


@router.post("/sessions/{session_id}/review", response={202: documented(Review)})
@without_fields
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
    state: Annotated[ReviewRun.State | None, inline_enum(ReviewRun.State)] = None,
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
    return list_json(rows, limit=limit, after=after, show=review_json)


@router.get("/reviews/{review_id}", response=documented(Review))
@reading
def review_read(request: ApiRequest, review_id: str) -> dict[str, Any]:
    """Return a review with its writes."""
    return review_json(_review(request.auth, review_id))


@router.post("/reviews/{review_id}/undo", response=documented(Undone))
async def review_undo(request: ApiRequest, review_id: str, body: WritesIn | None = None) -> dict[str, Any]:
    """Undo all writes of a review, or some of them."""
    caller, writes = request.auth, body.writes if body else None
    review = await in_read_thread(_review, caller, review_id)
    only = None if writes is None else frozenset(writes)
    work = review_undo_slices(review, actor=caller.actor, origin=WriteOrigin.USER, only=only)
    return (await in_slices(work)).as_json()


@router.post("/reviews/{review_id}/approve", response=documented(Review))
@writing
def review_approve(request: ApiRequest, review_id: str, body: ApprovalIn | None = None) -> dict[str, Any]:
    """Save all or some of the writes that wait for a decision; `edits` replaces their content, by index."""
    body = body or ApprovalIn()
    approve = partial(approvals.review_approve, edits=body.edits)
    review = _review(request.auth, review_id)
    return review_json(_decide(request.auth, review, body.writes, approve, f"Approved {_words(body.writes)}."))


@router.post("/reviews/{review_id}/reject", response=documented(Review))
@writing
def review_reject(request: ApiRequest, review_id: str, body: WritesIn | None = None) -> dict[str, Any]:
    """Reject all or some of the writes that wait for a decision."""
    writes, review = body.writes if body else None, _review(request.auth, review_id)
    return review_json(_decide(request.auth, review, writes, approvals.review_reject, f"Rejected {_words(writes)}."))


@router.get("/proposals", response=list_of(Proposal, "Writes that wait, or waited, newest first."))
@reading
def proposal_list(
    request: ApiRequest,
    state: Annotated[ProposalState | None, inline_enum(ProposalState)] = None,
    limit: PageSize = DEFAULT_LIMIT,
    after: ShortText = "",
) -> dict[str, Any]:
    """List the writes that wait, or waited, for a decision, newest first."""
    caller = request.auth
    proposals, more = proposals_list(caller.owner_id, limits=caller.limits, state=state, after=after, page_size=limit)
    return page_json([proposal_json(proposal) for proposal in proposals], has_more=more)


@router.get("/proposals/{proposal_id}", response=documented(Proposal))
@reading
def proposal_read(request: ApiRequest, proposal_id: str) -> dict[str, Any]:
    """Return a write that waits, or waited, for a decision."""
    return proposal_json(_proposal(request.auth, proposal_id))


@router.post("/proposals/{proposal_id}/approve", response=documented(Proposal))
@writing
def proposal_approve(request: ApiRequest, proposal_id: str, body: ProposalApproval | None = None) -> dict[str, Any]:
    """Save the write, optionally with other `content`."""
    held = _proposal(request.auth, proposal_id)
    index, content = held.write.index, body.content if body else None
    approve = partial(approvals.review_approve, edits={} if content is None else {index: content})
    try:
        _decide(request.auth, held.review, [index], approve, f"Approved write {index}.")
    except InvalidRequest as error:
        error.param = "content"  # all that a client can get wrong here, not the `edits` of a whole review
        raise
    return proposal_json(_proposal(request.auth, proposal_id))


@router.post("/proposals/{proposal_id}/reject", response=documented(Proposal))
@without_fields
@writing
def proposal_reject(request: ApiRequest, proposal_id: str) -> dict[str, Any]:
    """Reject the write."""
    held = _proposal(request.auth, proposal_id)
    _decide(
        request.auth, held.review, [held.write.index], approvals.review_reject, f"Rejected write {held.write.index}."
    )
    return proposal_json(_proposal(request.auth, proposal_id))


def review_json(review: ReviewRun) -> dict[str, Any]:
    """Return a review as the API shows it."""
    return as_shape(
        Review,
        review,
        object="review",
        model=review.model or review_model(review),
        writes=[write.to_json(public=True) for write in review.writes],
    )


def proposal_json(held: ProposedWrite) -> dict[str, Any]:
    """Return a held write as the API shows it."""
    review, write = held.review, held.write
    return as_shape(
        Proposal,
        write,
        id=held.id,
        object="proposal",
        source=held.source,
        evidence=write.evidence.public(),
        session_id=review.session_id,
        review_id=review.pk,
        state=held.state,
        times=write.times + 1,
        created_at=review.created_at,
        expires_at=held.expires_at,
    )


def _review(caller: Caller, review_id: str) -> ReviewRun:
    return review_get(caller.owner_id, parse_uuid(review_id), limits=caller.limits)


def _proposal(caller: Caller, proposal_id: str) -> ProposedWrite:
    return proposal_get(caller.owner_id, proposal_id, limits=caller.limits)


def _decide(
    caller: Caller, review: ReviewRun, writes: Sequence[int] | None, decide: Callable[..., ReviewRun], note: str
) -> ReviewRun:
    """Decide about the held writes of a review with these indexes, or about all. The audit log gets the `note`."""

    def record(_: object) -> None:
        audit_record_own(Action.CHANGE, caller, kind="review run", object_id=review.pk, note=note)

    return decide(review, actor=caller.actor, only=None if writes is None else frozenset(writes), record=record)


def _words(writes: Sequence[int] | None) -> str:
    return "all writes" if writes is None else "writes " + ", ".join(map(str, sorted(set(writes))))[:100]
