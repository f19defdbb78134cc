"""Queries for reviews."""

from uuid import UUID

from gateway.agents.model_choice import review_target
from memories.caller import UNLIMITED, KeyLimits
from memories.errors import NotFound
from reviews.models import ReviewRun
from reviews.undo import review_undo as review_undo  # exported for the edges


def review_get(owner_id: UUID, review_id: UUID | None, *, limits: KeyLimits = UNLIMITED) -> ReviewRun:
    """Return the owner's review, with its book. Raises NotFound."""
    rows = limits.filter(
        ReviewRun.objects.select_related("book").filter(owner_id=owner_id), book="book__name", agent="agent_name"
    )
    found = rows.filter(pk=review_id).first() if review_id else None
    if found is None:
        raise NotFound("There is no such review.")
    return found


def review_model(review: ReviewRun) -> str:
    """Return the name of the model a review asks."""
    return review_target(review.settings).model
