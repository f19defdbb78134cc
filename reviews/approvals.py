"""Approving, rejecting and expiring writes that wait for a person, all writes of a review or single ones, with edits if
needed. A write is `waiting`, approved (`applied`), `rejected` or `expired`; the last two can still be approved until
they are purged. Waiting writes are never sent to a model."""

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from memories.database.access import only_row
from memories.database.batches import Slices
from memories.errors import BlockedByScan, Conflict, DomainError, InvalidRequest, TooLarge
from memories.models import ChangeSet, WriteOrigin
from reviews.applying import apply_writes
from reviews.ending import reviews_cancel, reviews_end, state_after
from reviews.errors import RunCancelled
from reviews.models import ReviewRun
from reviews.writes import PENDING, ReviewWrite, WriteState
from scanning import is_blank

State = ReviewRun.State
_WAITING = frozenset({WriteState.WAITING})
_ORIGINS: dict[str, WriteOrigin] = {
    ReviewRun.Trigger.TURN: WriteOrigin.TOOL,
    ReviewRun.Trigger.APP: WriteOrigin.TOOL,
    ReviewRun.Trigger.NOTES: WriteOrigin.CONSOLIDATION,
    ReviewRun.Trigger.IMPORT: WriteOrigin.IMPORT,
}
_NOT_APPROVED = frozenset({WriteState.REJECTED, WriteState.EXPIRED})
# What became of a write that no longer waits, after "This".
_DECIDED: dict[str, str] = {
    WriteState.REFUSED: "was refused",
    WriteState.APPLIED: "is saved already",
    WriteState.KNOWN: "is known already",
    WriteState.JOINED: "was already waiting in another review",
    WriteState.REJECTED: "was already rejected",
    WriteState.EXPIRED: "was not decided in time",
    WriteState.UNDONE: "was saved and undone",
    WriteState.SKIPPED: "was saved and has been changed since",
}
_BATCH = 100
Record = Callable[[Sequence[ReviewWrite]], None]
"""Called with the writes that were decided, in the same transaction, to record the decision."""
# Errors about the text itself. Others are about the book, which may change.
_INVALID_TEXT = (BlockedByScan, InvalidRequest, TooLarge)


def review_approve(
    review: ReviewRun,
    *,
    actor: str,
    only: frozenset[int] | None = None,
    edits: Mapping[int, str] | None = None,
    waiting: bool = False,
    record: Record | None = None,
) -> ReviewRun:
    """Apply the review's waiting writes, or those with the indexes in `only`. `edits` replaces contents by index. With
    `waiting`, rejected and expired writes are never applied.

    Raises InvalidRequest for an unknown index or an edit that does not apply, Conflict if there is nothing to approve
    or the book was cleared, and the first write's error if no write could be applied. If only some are refused, they
    stay waiting, with the reason."""
    try:
        with transaction.atomic():
            run = _locked(review.pk)
            if run.orphaned:
                raise Conflict("The session of this review was deleted, so its writes can no longer be saved.")
            # Approving all includes rejected writes only if all were rejected (the run is cancelled).
            states = _WAITING if waiting or (only is None and run.state != State.CANCELLED) else PENDING
            chosen = _select(run, only, states)
            originals = _edit(chosen, edits or {}, actor)
            origin, kind = _ORIGINS.get(run.trigger, WriteOrigin.BACKGROUND_REVIEW), ChangeSet.Kind.APPROVAL
            run.change_set, refused = apply_writes(run, run.writes, chosen, actor=actor, origin=origin, kind=kind)
            if refused and len(refused) == len(chosen):
                raise next(iter(refused.values()))
            for write in chosen:
                if error := refused.get(write.index):
                    _refuse(write, error, originals)
            _settle(run, run.error)
            if record:
                record(chosen)
            return run
    except RunCancelled:
        cleared = ReviewRun.objects.filter(pk=review.pk)
        reviews_cancel(cleared, "The book was cleared meanwhile.", rejected_at=None)
        raise Conflict("The book was cleared after this review, so its writes can no longer be saved.") from None


@transaction.atomic
def review_reject(
    review: ReviewRun, *, actor: str, only: frozenset[int] | None = None, record: Record | None = None
) -> ReviewRun:
    """Reject the review's waiting writes, or those with the indexes in `only`. Raises InvalidRequest for an unknown
    index, Conflict if nothing waits."""
    run = _locked(review.pk)
    chosen = _select(run, only, _WAITING)
    for write in chosen:
        write.state, write.reason = WriteState.REJECTED, ""
    run.rejected_at = timezone.now()
    _settle(run, {"code": "rejected", "message": "Its writes were rejected.", "actor": actor})
    if record:
        record(chosen)
    return run


def expire_approvals(now: datetime) -> int:
    """Let writes expire that have waited for APPROVAL_DAYS. Returns the number of reviews affected."""
    before = now - timedelta(days=settings.APPROVAL_DAYS)
    late = ReviewRun.objects.filter(state=State.AWAITING_APPROVAL, finished_at__lt=before).values_list("pk", flat=True)
    return sum(_expire(pk) for pk in list(late[:_BATCH]))


def imported_withdraw(owner_id: UUID, change_set: UUID) -> Slices[int]:
    """Drop the waiting writes of an import that was undone, unless another source proposed them too. Yields between
    batches of reviews; returns the number of writes dropped."""
    rows = ReviewRun.objects.filter(owner_id=owner_id, trigger=ReviewRun.Trigger.IMPORT, state=State.AWAITING_APPROVAL)
    keys = list(rows.order_by("pk").values_list("pk", flat=True))
    withdrawn = 0
    for start in range(0, len(keys), _BATCH):
        yield
        with transaction.atomic():
            withdrawn += sum(_withdraw(pk, str(change_set)) for pk in keys[start : start + _BATCH])
    return withdrawn


def purge_proposals(now: datetime) -> int:
    """Delete writes that were rejected or expired more than UNDO_DAYS ago. Returns the number of reviews affected."""
    before = now - timedelta(days=settings.UNDO_DAYS)
    old = ReviewRun.objects.filter(rejected_at__lt=before).values_list("pk", flat=True)
    return sum(_purge(pk, before) for pk in list(old[:_BATCH]))


def forget_orphans() -> int:
    """Cancel open or waiting reviews whose session was deleted. Returns how many."""
    orphans = ReviewRun.objects.filter(session=None, state__in=ReviewRun.UNDECIDED)
    orphans = orphans.exclude(trigger__in=ReviewRun.WITHOUT_SESSION)
    return reviews_cancel(orphans, "The session was deleted.", rejected_at=None)


def _locked(review_id: UUID) -> ReviewRun:
    return _locked_rows().get(pk=review_id)


def _locked_rows() -> "QuerySet[ReviewRun]":
    return ReviewRun.objects.select_for_update(of=("self",)).select_related("book")


def _select(run: ReviewRun, only: frozenset[int] | None, states: Set[WriteState]) -> list[ReviewWrite]:
    """Return the run's writes in one of the states, or those with the indexes in `only`. Raises Conflict if one of
    these has another state (details: write), or if there are none."""
    if only is None:
        chosen = [write for write in run.writes if write.state in states]
    else:
        if unknown := only - {write.index for write in run.writes}:
            raise InvalidRequest(f"This review has no write {min(unknown)}.", param="writes")
        chosen = [write for write in run.writes if write.index in only]
        if decided := [write for write in chosen if write.state not in states]:
            which = "This" if len(chosen) == 1 else "One of these writes"
            raise Conflict(f"{which} {_DECIDED.get(decided[0].state, 'does not wait')}.", write=decided[0].index)
    for write in chosen:
        write.proposed = True  # rows of earlier versions lack this
    if not chosen or run.state in ReviewRun.OPEN:
        raise Conflict("No write of this review waits for a decision.")
    return chosen


def _edit(chosen: list[ReviewWrite], edits: Mapping[int, str], actor: str) -> dict[int, ReviewWrite]:
    """Apply the edits to the writes. Returns copies of the edited writes as they were proposed, by index."""
    by_index = {write.index: write for write in chosen}
    originals = {}
    for index, content in edits.items():
        write = by_index.get(index)
        if write is None or write.action == "delete":
            raise InvalidRequest(f"There is nothing to edit in write {index}.", param="edits")
        if is_blank(content):
            raise InvalidRequest(f"The new text of write {index} is empty: reject it to drop it.", param="edits")
        originals[index] = replace(write)
        write.after, write.edited, write.edited_by = content, True, actor
    return originals


def _refuse(write: ReviewWrite, error: DomainError, originals: dict[int, ReviewWrite]) -> None:
    """Record why a waiting write was refused. If its edited text is invalid in any book, restore the proposed text."""
    if isinstance(error, _INVALID_TEXT) and (original := originals.get(write.index)):
        write.after, write.edited, write.edited_by = original.after, original.edited, original.edited_by
    write.reason = str(error)


def _settle(run: ReviewRun, problem: dict[str, Any] | None) -> None:
    """Store the decisions and the run's resulting state. `problem` becomes the run's error if none of its writes was
    applied and none waits."""
    states = {write.state for write in run.writes}
    if not states & _NOT_APPROVED:
        run.rejected_at = None
    elif run.rejected_at is None:  # undoing a clear may restore writes that were rejected long before
        run.rejected_at = timezone.now()
    state = state_after(run.writes)
    reviews_end(
        ReviewRun.objects.filter(pk=run.pk),
        state,
        error=problem if state == State.CANCELLED else None,
        finished_at=run.finished_at if state == State.AWAITING_APPROVAL else None,
        writes=run.writes,
        change_set=run.change_set,
        rejected_at=run.rejected_at,
    )
    run.refresh_from_db(fields=["state", "error", "finished_at"])


@transaction.atomic
def _expire(review_id: UUID) -> bool:
    run = only_row(_locked_rows().filter(pk=review_id, state=State.AWAITING_APPROVAL))
    if run is None:
        return False  # a person decided, or it was forgotten in the meantime
    for write in run.writes:
        if write.state == WriteState.WAITING:
            write.state = WriteState.EXPIRED
    run.rejected_at = timezone.now()
    message = f"Nobody decided about it within {settings.APPROVAL_DAYS} days."
    _settle(run, {"code": "expired", "message": message})
    return True


def _withdraw(review_id: UUID, change_set: str) -> int:
    run = _locked(review_id)
    wanted = [write for write in run.writes if write.waiting and change_set in write.imports]
    if not wanted or run.state != State.AWAITING_APPROVAL:
        return 0
    for write in wanted:
        write.imports.remove(change_set)
    dropped = [write for write in wanted if not write.imports]
    run.writes = [write for write in run.writes if write not in dropped]
    _settle(run, {"code": "cancelled", "message": "Its import was undone."})
    return len(dropped)


@transaction.atomic
def _purge(review_id: UUID, before: datetime) -> bool:
    run = only_row(_locked_rows().filter(pk=review_id, rejected_at__lt=before))
    if run is None:
        return False  # a person decided, or it was forgotten in the meantime
    run.writes = [write for write in run.writes if write.state not in _NOT_APPROVED]
    run.rejected_at = None
    run.save(update_fields=["writes", "rejected_at"])
    return True
