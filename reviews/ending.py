"""Ending a review. Called by reviews.services (the model is done or timed out, the worker died), reviews.approvals (a
person decided), reviews.forgetting and reviews.consolidation.clear (session or book were forgotten or cleared)."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone

from memories.messaging.outbox import notify
from memories.models import Notification
from memories.number_words import memories
from reviews.models import ReviewRun
from reviews.writes import ReviewWrite, WriteState, applied, counts

State = ReviewRun.State
_REQUESTERS: dict[str, str] = {
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
    notify_for: ReviewRun | None = None,
    **values: Any,
) -> int:
    """End runs, or let their writes wait for approval, in one UPDATE of the caller's transaction, which also releases
    their leases. Returns the number of runs updated.

    `runs` filters by the state that the runs must still have, which makes this a compare-and-set. `finished_at`
    defaults to now. `values` are further columns, such as writes, change set and usage. The owner of `notify_for` is
    notified of the result, if a run was updated."""
    ended = runs.update(
        state=state,
        error=error,
        lease_token=None,
        lease_expires_at=None,
        finished_at=finished_at or timezone.now(),
        **values,
    )
    if ended and notify_for is not None:
        review_notify(notify_for, state, values["writes"])
    return ended


def reviews_cancel(runs: "QuerySet[ReviewRun]", reason: str, *, code: str = "cancelled", **values: Any) -> int:
    """Cancel runs and drop their waiting writes. Returns the number of runs updated."""
    return reviews_end(runs, State.CANCELLED, error={"code": code, "message": reason}, writes=[], **values)


def state_after(writes: Iterable[ReviewWrite]) -> ReviewRun.State:
    """Return the state of a review after a decision about its writes, or their undo."""
    states = {write.state for write in writes}
    if WriteState.WAITING in states:
        return State.AWAITING_APPROVAL
    if WriteState.APPLIED in states:
        return State.SAVED
    if states & {WriteState.UNDONE, WriteState.SKIPPED}:
        return State.UNDONE
    return State.NOTHING_TO_SAVE if WriteState.KNOWN in states else State.CANCELLED


def review_notify(review: ReviewRun, state: ReviewRun.State, writes: list[ReviewWrite]) -> None:
    """Notify the owner that writes wait for approval or, if the agent's reviews are verbose, that they were saved."""
    if state == State.AWAITING_APPROVAL:
        kind, numbers = Notification.Kind.REVIEW_AWAITING_APPROVAL, []
        text = _waiting_text(writes, requester=_REQUESTERS.get(review.trigger, "A review"))
    else:
        kind, numbers = Notification.Kind.REVIEW_SAVED, sorted({write.number for write in applied(writes)})
        text = _saved_text(writes) if review.settings["memory_review_verbose"] else ""
    if text:
        book = review.book.name
        notify(owner_id=review.owner_id, kind=kind, book=book, text=text, review_id=review.pk, memory_numbers=numbers)


def _saved_text(writes: Iterable[ReviewWrite]) -> str:
    """Return what a verbose review reports; empty if it changed nothing."""
    saved, removed = counts(applied(writes))
    if saved:
        return f"Saved {memories(saved)} from your last conversation."
    return f"Removed {memories(removed)} after your last conversation." if removed else ""


def _waiting_text(writes: Iterable[ReviewWrite], *, requester: str) -> str:
    """Return the sentence that asks a person to approve writes."""
    saved, removed = counts(write for write in writes if write.waiting)
    return f"{requester} wants to {'save' if saved else 'remove'} {memories(saved or removed)}."
