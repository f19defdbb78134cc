"""Writes of a review that wait for a person: approving them, all or single ones and edited if need be, rejecting them,
and letting them expire. A write waits (`waiting`), is approved (`applied`), or was `rejected` or has `expired`; those
two can still be approved until they are purged. Nothing that waits is given to a model."""

from collections.abc import Mapping, Set
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from memories.database.batches import Slices
from memories.errors import BlockedByScan, Conflict, DomainError, InvalidRequest, TooLarge
from memories.models import ChangeSet, WriteOrigin
from memories.services import Source
from reviews.applying import BookCleared, apply_writes
from reviews.ending import reviews_cancel, reviews_end
from reviews.models import ReviewRun
from reviews.turns_read import last_turn_read
from reviews.writes import PENDING, ReviewWrite, WriteState

State = ReviewRun.State
_WAITING = frozenset({WriteState.WAITING})
_ORIGINS: dict[str, WriteOrigin] = {
    ReviewRun.Trigger.TURN: WriteOrigin.TOOL,
    ReviewRun.Trigger.APP: WriteOrigin.TOOL,
    ReviewRun.Trigger.NOTES: WriteOrigin.CONSOLIDATION,
    ReviewRun.Trigger.IMPORT: WriteOrigin.IMPORT,
}
_TURNED_DOWN = frozenset({WriteState.REJECTED, WriteState.EXPIRED})
_BATCH = 100
# Refusals of the words themselves; others are about the book, which may change.
_UNFIT = (BlockedByScan, InvalidRequest, TooLarge)


def review_approve(
    review: ReviewRun, *, actor: str, only: frozenset[int] | None = None, edits: Mapping[int, str] | None = None
) -> ReviewRun:
    """Apply writes that wait: all, or those of the given indexes; `edits` replaces the content of some by index.

    Raises InvalidRequest for an index or edit that does not fit, Conflict when there is nothing (left) to approve or
    the book was cleared since, and what refused the writes when none of them could be applied. A write that is
    refused beside others that were applied stays open, with its reason."""
    try:
        return _approve(review.pk, actor, only, dict(edits or {}))
    except BookCleared:
        cleared = ReviewRun.objects.filter(pk=review.pk)
        reviews_cancel(cleared, "The book was cleared meanwhile.", rejected_at=None)
        raise Conflict("The book was cleared after this review; nothing of it can be saved now.") from None


@transaction.atomic
def review_reject(review: ReviewRun, *, actor: str, only: frozenset[int] | None = None) -> ReviewRun:
    """Turn down writes that wait, all or some by index. Raises InvalidRequest, Conflict when none of them waits."""
    run = _locked(review.pk)
    for write in _chosen(run, only, _WAITING):
        write.state, write.reason = WriteState.REJECTED, ""
    run.rejected_at = timezone.now()
    _settle(run, {"code": "rejected", "message": "Its writes were rejected.", "actor": actor})
    return run


def expire_approvals(now: datetime) -> int:
    """Let writes expire that nobody decided about in time. Returns how many reviews were affected."""
    before = now - timedelta(days=settings.APPROVAL_DAYS)
    late = ReviewRun.objects.filter(state=State.AWAITING_APPROVAL, finished_at__lt=before).values_list("pk", flat=True)
    return sum(_expire(pk) for pk in list(late[:_BATCH]))


def imported_withdraw(owner_id: UUID, change_set: UUID) -> Slices[int]:
    """Drop what still waits of an import that was undone, unless something else wants it too, some reviews in each
    slice. Returns how many writes it was."""
    rows = ReviewRun.objects.filter(owner_id=owner_id, trigger=ReviewRun.Trigger.IMPORT, state=State.AWAITING_APPROVAL)
    keys = list(rows.order_by("pk").values_list("pk", flat=True))
    withdrawn = 0
    for start in range(0, len(keys), _BATCH):
        yield
        with transaction.atomic():
            withdrawn += sum(_withdraw(pk, str(change_set)) for pk in keys[start : start + _BATCH])
    return withdrawn


def purge_proposals(now: datetime) -> int:
    """Forget writes that were turned down or expired long ago. Returns how many reviews it was."""
    before = now - timedelta(days=settings.UNDO_DAYS)
    old = ReviewRun.objects.filter(rejected_at__lt=before).values_list("pk", flat=True)
    return sum(_purge(pk, before) for pk in list(old[:_BATCH]))


def forget_orphans() -> int:
    """Cancel reviews whose session was deleted, also those that wait for a person. Returns how many."""
    orphans = ReviewRun.objects.filter(session=None, state__in=ReviewRun.UNDECIDED)
    orphans = orphans.exclude(trigger__in=ReviewRun.WITHOUT_SESSION)
    return reviews_cancel(orphans, "The session was deleted.", rejected_at=None)


@transaction.atomic
def _approve(review_id: UUID, actor: str, only: frozenset[int] | None, edits: dict[int, str]) -> ReviewRun:
    run = _locked(review_id)
    if run.orphaned:
        raise Conflict("The session of this review was deleted; nothing of it can be saved now.")
    # Without indexes, what was turned down beside others that were kept stays so.
    usual = PENDING if run.state == State.CANCELLED else _WAITING
    chosen = _chosen(run, only, usual if only is None else PENDING)
    proposed = _edit(chosen, edits, actor)
    source = Source(
        actor=actor,
        origin=_ORIGINS.get(run.trigger, WriteOrigin.BACKGROUND_REVIEW),
        kind=ChangeSet.Kind.APPROVAL,
        session_id=run.session_id,
        run_id=last_turn_read(run),
        review_id=run.pk,
    )
    run.change_set, refused = apply_writes(run, run.writes, chosen, source)
    if refused and len(refused) == len(chosen):
        raise next(iter(refused.values()))
    for write in chosen:
        if error := refused.get(write.index):
            _refuse(write, error, proposed)
    _settle(run, run.error)
    return run


def _locked(review_id: UUID) -> ReviewRun:
    return ReviewRun.objects.select_for_update(of=("self",)).select_related("book").get(pk=review_id)


def _chosen(run: ReviewRun, only: frozenset[int] | None, states: Set[WriteState]) -> list[ReviewWrite]:
    """Return the writes that are meant; each must be in one of the states."""
    if only is None:
        chosen = [write for write in run.writes if write.state in states]
    else:
        if unknown := only - {write.index for write in run.writes}:
            raise InvalidRequest(f"This review has no write {min(unknown)}.", param="writes")
        chosen = [write for write in run.writes if write.index in only]
        if decided := [write for write in chosen if write.state not in states]:
            raise Conflict(f"Write {decided[0].index} is {decided[0].state} already.")
    for write in chosen:
        write.proposed = True  # rows of earlier versions do not say so
    if not chosen or run.state in ReviewRun.OPEN:
        raise Conflict("No write of this review waits for a decision.")
    return chosen


def _edit(chosen: list[ReviewWrite], edits: dict[int, str], actor: str) -> dict[int, ReviewWrite]:
    """Put the edited words in; returns by index the writes as they were proposed."""
    by_index = {write.index: write for write in chosen}
    proposed = {}
    for index, content in edits.items():
        write = by_index.get(index)
        if write is None or write.action == "delete":
            raise InvalidRequest(f"There is nothing to edit in write {index}.", param="edits")
        proposed[index] = replace(write)
        write.after, write.edited, write.edited_by = content, True, actor
    return proposed


def _refuse(write: ReviewWrite, error: DomainError, proposed: dict[int, ReviewWrite]) -> None:
    """Note why a write that stays open was refused. Edited words that no memory may hold are replaced by those
    proposed."""
    if isinstance(error, _UNFIT) and (was := proposed.get(write.index)):
        write.after, write.edited, write.edited_by = was.after, was.edited, was.edited_by
    write.reason = str(error)


def _settle(run: ReviewRun, problem: dict[str, Any] | None) -> None:
    """Store the decisions. While some write waits the run does; else it is saved if any was applied. `problem`: what
    the run says when none of its writes came to anything."""
    states = {write.state for write in run.writes}
    if not states & _TURNED_DOWN:
        run.rejected_at = None
    elif run.rejected_at is None:  # an undone clear may bring back what was turned down long before
        run.rejected_at = timezone.now()
    state = _state_after(states)
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


def _state_after(states: Set[WriteState]) -> ReviewRun.State:
    """Return the state of a review whose writes are in these states."""
    if WriteState.WAITING in states:
        return State.AWAITING_APPROVAL
    if WriteState.APPLIED in states:
        return State.SAVED
    if states & {WriteState.UNDONE, WriteState.SKIPPED}:
        return State.UNDONE
    return State.NOTHING_TO_SAVE if WriteState.KNOWN in states else State.CANCELLED


@transaction.atomic
def _expire(review_id: UUID) -> bool:
    run = _locked(review_id)
    if run.state != State.AWAITING_APPROVAL:
        return False
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
    gone = [write for write in wanted if not write.imports]
    run.writes = [write for write in run.writes if write not in gone]
    _settle(run, {"code": "cancelled", "message": "Its import was undone."})
    return len(gone)


@transaction.atomic
def _purge(review_id: UUID, before: datetime) -> bool:
    run = _locked(review_id)
    if run.rejected_at is None or run.rejected_at >= before:
        return False  # somebody decided about it this moment
    run.writes = [write for write in run.writes if write.state not in _TURNED_DOWN]
    run.rejected_at = None
    run.save(update_fields=["writes", "rejected_at"])
    return True
