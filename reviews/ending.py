"""The end of a review, for whatever reason. Called by reviews.services (the
model is done, time is over, the worker died), reviews.approvals (a person decided), reviews.forgetting and
reviews.consolidation.withdrawal (what it is about was taken away)."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone

from memories.messaging.outbox import notify
from memories.models import Notification
from reviews.labels import applied, saved_text, waiting_text
from reviews.models import ReviewRun
from reviews.writes import ReviewWrite

State = ReviewRun.State
_WHO: dict[str, str] = {
    ReviewRun.Trigger.TURN: "Your agent",
    ReviewRun.Trigger.APP: "A connected app",
    ReviewRun.Trigger.NOTES: "Consolidation",
    ReviewRun.Trigger.IMPORT: "Your import",
}


def reviews_end(
    runs: "QuerySet[ReviewRun]",
    state: ReviewRun.State,
    *,
    error: Mapping[str, Any] | None = None,
    finished_at: datetime | None = None,
    told: ReviewRun | None = None,
    **values: Any,
) -> int:
    """End runs, or let their writes wait for a person, in one statement of the caller's transaction: the state and why,
    the time (now unless given), and no lease. Returns how many it was.

    `runs` filters by what the runs must still be, which makes this a compare-and-set. `values` are further columns: the
    writes, their change set, what it cost. `told` is the run whose owner is notified of the result, by the last
    statement."""
    ended = runs.update(
        state=state,
        error=error,
        lease_token=None,
        lease_expires_at=None,
        finished_at=finished_at or timezone.now(),
        **values,
    )
    if ended and told is not None:
        review_notify(told, state, values["writes"])
    return ended


def reviews_cancel(runs: "QuerySet[ReviewRun]", reason: str, *, code: str = "cancelled", **values: Any) -> int:
    """End runs without a result; writes that waited are dropped. Returns how many it was."""
    return reviews_end(runs, State.CANCELLED, error={"code": code, "message": reason}, writes=[], **values)


def review_notify(review: ReviewRun, state: ReviewRun.State, writes: list[ReviewWrite]) -> None:
    """Tell the owner that writes wait, or were saved if the agent's reviews say so."""
    if state == State.AWAITING_APPROVAL:
        notify(
            owner_id=review.owner_id,
            kind=Notification.Kind.REVIEW_AWAITING_APPROVAL,
            book=review.book.name,
            text=waiting_text((write for write in writes if write.waiting), who=_WHO.get(review.trigger, "A review")),
            review_id=review.pk,
        )
        return
    text = saved_text(writes)
    if text and review.settings["memory_review_verbose"]:
        notify(
            owner_id=review.owner_id,
            kind=Notification.Kind.REVIEW_SAVED,
            book=review.book.name,
            text=text,
            review_id=review.pk,
            memory_numbers=sorted({write.number for write in applied(writes)}),
        )
