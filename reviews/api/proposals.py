"""/api/proposals: writes of reviews, turns, apps and imports that wait for a decision, and deciding about each."""

from typing import Annotated, Any

from ninja import Router
from pydantic import Field

from memories.api.answers import as_shape, documented, list_of
from memories.api.bodies import EMPTY_AS_NONE, Body, Content, inline_enum
from memories.api.operations import reading, writing
from memories.caller import ApiRequest, Caller
from memories.limits import PageSize, ShortText
from memories.pagination import DEFAULT_LIMIT, page_json
from reviews import approvals
from reviews.api.answers import Proposal
from reviews.api.reviews import decision_record
from reviews.proposals import ProposalState, ProposedWrite, proposal_get, proposals_list

router = Router()


class ProposalApproval(Body, json_schema_extra={"examples": [{"content": "Lives in York."}]}):
    content: Annotated[Content | None, Field(description="Content to save instead of the proposed one.")] = None


@router.get("/proposals", response=list_of(Proposal, "Writes that wait, or waited, newest first."))
@reading
def proposal_list(
    request: ApiRequest,
    state: Annotated[ProposalState | None, EMPTY_AS_NONE, inline_enum(ProposalState)] = None,
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
    return _read(request.auth, proposal_id)


@router.post("/proposals/{proposal_id}/approve", response=documented(Proposal))
@writing
def proposal_approve(request: ApiRequest, proposal_id: str, body: ProposalApproval | None = None) -> dict[str, Any]:
    """Save the write, optionally with other `content`."""
    return _decide(request.auth, proposal_id, True, body.content if body else None)


@router.post("/proposals/{proposal_id}/reject", response=documented(Proposal))
@writing
def proposal_reject(request: ApiRequest, proposal_id: str) -> dict[str, Any]:
    """Reject the write."""
    return _decide(request.auth, proposal_id, False, None)


def proposal_json(waiting: ProposedWrite) -> dict[str, Any]:
    """Return a held write as the API shows it."""
    review, write = waiting.review, waiting.write
    return as_shape(
        Proposal,
        write,
        id=waiting.id,
        object="proposal",
        source=waiting.source,
        evidence=write.evidence.public(),
        session_id=review.session_id,
        review_id=review.pk,
        state=waiting.state,
        times=write.times + 1,
        created_at=review.created_at,
        expires_at=waiting.expires_at,
    )


def _read(caller: Caller, given: str) -> dict[str, Any]:
    return proposal_json(proposal_get(caller.owner_id, given, limits=caller.limits))


def _decide(caller: Caller, given: str, approve: bool, content: str | None) -> dict[str, Any]:
    waiting = proposal_get(caller.owner_id, given, limits=caller.limits)
    index, actor = waiting.write.index, caller.actor
    only = frozenset({index})
    note = f"{'Approved' if approve else 'Rejected'} write {index}."

    def record(_: object) -> None:
        decision_record(caller, waiting.review, note)

    if approve:
        edits = {} if content is None else {index: content}
        approvals.review_approve(waiting.review, actor=actor, only=only, edits=edits, record=record)
    else:
        approvals.review_reject(waiting.review, actor=actor, only=only, record=record)
    return _read(caller, given)
