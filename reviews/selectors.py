"""Reviews, read side."""

from uuid import UUID

from gateway.agents.model_choice import review_target
from memories.caller import UNLIMITED, KeyLimits
from memories.errors import NotFound
from reviews.models import ConsolidationRun, ReviewRun


def review_get(owner_id: UUID, review_id: UUID | None, *, limits: KeyLimits = UNLIMITED) -> ReviewRun:
    """Return the owner's review, with its book. Raises NotFound."""
    rows = limits.filter(
        ReviewRun.objects.select_related("book").filter(owner_id=owner_id), book="book__name", agent="agent_name"
    )
    found = rows.filter(pk=review_id).first() if review_id else None
    if found is None:
        raise NotFound("There is no such review.")
    return found


def consolidation_get(owner_id: UUID, run_id: UUID | None, *, limits: KeyLimits = UNLIMITED) -> ConsolidationRun:
    """Return the owner's run, with its book. Raises NotFound."""
    rows = limits.filter(ConsolidationRun.objects.select_related("book").filter(owner_id=owner_id), book="book__name")
    found = rows.filter(pk=run_id).first() if run_id else None
    if found is None:
        raise NotFound("There is no such consolidation.")
    return found


def review_model(review: ReviewRun) -> str:
    """Return the name of the model a review asks."""
    return review_target(review.settings).model
