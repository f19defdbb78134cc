"""Bulk actions on reviews. Each review is processed separately with its own audit entry, so a failure does not affect
the others; one message summarises the results. Other writers get their turn between two reviews, and between two slices
of a large undo."""

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from uuid import UUID

from django.contrib import admin, messages
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest

from gateway.admin.visibility import title_of
from memories.admin.access import action_record
from memories.admin.badges import moment
from memories.admin.base import DaybookAdmin, staff_actor
from memories.admin.memory_writes import undo_note
from memories.audit.log import Action
from memories.database.access import in_write_lane
from memories.database.batches import Slices, run_slices
from memories.errors import Conflict, DomainError, NotFound
from memories.models import WriteOrigin
from memories.number_words import counted, memories
from reviews.admin.decisions import SAVED_STATES, approve, reject, saved_words
from reviews.models import ReviewRun
from reviews.schedule import review_session
from reviews.services import review_cancel
from reviews.undo import review_undo_slices
from reviews.writes import ReviewWrite

logger = logging.getLogger("daybook.reviews")

Skipped = Mapping[str, Sequence[str]]
"""The names of the reviews that were skipped, by reason."""


@admin.action(description="Undo the selected reviews", permissions=["decide"])
def undo_reviews(page: DaybookAdmin, request: HttpRequest, runs: QuerySet[ReviewRun]) -> None:
    """Undo the writes of reviews, newest first, so that a memory that several of them changed returns to its state
    before the first of them. Never redoes an undone review."""
    # By owner and number: memories that were restored, and the names of those left alone because of later changes.
    restored: set[tuple[UUID, int]] = set()
    left_alone: dict[tuple[UUID, int], str] = {}

    def undo(run: ReviewRun) -> Slices[None]:
        undone = yield from review_undo_slices(run, actor=staff_actor(request), origin=WriteOrigin.ADMIN)
        note = undo_note(undone)
        if not note:
            raise Conflict("It is already undone.")
        restored.update((run.owner_id, number) for number in undone.undone)
        left_alone.update({(run.owner_id, n): f"{run.owner}’s memory {n}" for n in undone.skipped})
        action_record(request, ReviewRun, note, [run], Action.UNDO)

    # A review that was approved later wrote later than its own id says; its change set has the time.
    newest_first = sorted(runs, key=lambda run: (run.change_set or run.pk).int, reverse=True)
    _, skipped = _apply_to_each(newest_first, lambda run: run_slices(undo(run)))
    level = messages.WARNING if left_alone or skipped else messages.SUCCESS
    words = [_memories_were(len(restored), "changed back")]
    if names := [left_alone[memory] for memory in sorted(left_alone.keys() - restored)]:
        words.append(f"{_memories_were(len(names), 'left alone, because of changes since')[:-1]}: {', '.join(names)}.")
    page.message_user(request, " ".join([*words, *_skipped_texts(skipped)]), level)


@admin.action(description="Save the writes that wait", permissions=["decide"])
def approve_reviews(page: DaybookAdmin, request: HttpRequest, runs: QuerySet[ReviewRun]) -> None:
    """Save the writes of reviews that wait for a decision, as they were proposed, oldest review first."""
    saved: list[list[ReviewWrite]] = []
    refused = defaultdict[str, list[str]](list)

    def approve_waiting(run: ReviewRun) -> None:
        writes = in_write_lane(approve, request, run)
        saved.append([write for write in writes if write.state in SAVED_STATES])
        for write in writes:
            if write.state not in SAVED_STATES:
                refused[write.reason].append(f"write {write.index} of {review_name(run)}")

    _, skipped = _apply_to_each(runs.order_by("pk"), approve_waiting)
    level = messages.WARNING if refused or skipped else messages.SUCCESS
    words = [saved_words(saved), *_skipped_texts(refused), *_skipped_texts(skipped)]
    page.message_user(request, " ".join(words), level)


@admin.action(description="Reject the writes that wait", permissions=["decide"])
def reject_reviews(page: DaybookAdmin, request: HttpRequest, runs: QuerySet[ReviewRun]) -> None:
    """Reject the writes of reviews that wait for a decision."""
    _change_each(page, request, runs, reject, "Rejected")


@admin.action(description="Cancel", permissions=["decide"])
def cancel_reviews(page: DaybookAdmin, request: HttpRequest, runs: QuerySet[ReviewRun]) -> None:
    """Cancel the open reviews and reject the writes that wait."""
    _change_each(page, request, runs, cancel, "Cancelled")


@admin.action(description="Review again", permissions=["decide"])
def review_again(page: DaybookAdmin, request: HttpRequest, runs: QuerySet[ReviewRun]) -> None:
    """Review the sessions of these reviews again."""
    _change_each(page, request, runs, again, "Scheduled again")


def cancel(request: HttpRequest, run: ReviewRun) -> None:
    """Cancel an open review or reject its waiting writes, with an audit entry. Raises Conflict if it has finished."""
    if not review_cancel(run, "Cancelled by an administrator.", actor=staff_actor(request)):
        raise Conflict("It has already finished.")
    action_record(request, ReviewRun, "Cancelled.", [run])


def again(request: HttpRequest, run: ReviewRun) -> None:
    """Review the session of a review again, with an audit entry. Raises NotFound if the session was deleted, and as
    review_session does."""
    if run.session_id is None:
        raise NotFound("Its session was deleted.")
    review_session(run.owner_id, run.session_id)
    action_record(request, ReviewRun, "Reviewed again.", [run])


def review_name(run: ReviewRun) -> str:
    """Return the name of a review for messages: `“Tea” of alice, 20 Nov 2026, 09:41`."""
    title = title_of(run) if run.session else "A deleted session"
    return f"“{title}” of {run.owner}, {moment(run.created_at)}"


def _change_each(
    page: DaybookAdmin,
    request: HttpRequest,
    runs: Iterable[ReviewRun],
    change: Callable[[HttpRequest, ReviewRun], None],
    done: str,
) -> None:
    """Call `change` with each run, in a transaction, and show a message that begins with `done`."""
    number, skipped = _apply_to_each(runs, lambda run: in_write_lane(transaction.atomic(change), request, run))
    changed = f"{done}: {counted(number, 'review') if number else 'no review'}."
    level = messages.WARNING if skipped else messages.SUCCESS
    page.message_user(request, " ".join([changed, *_skipped_texts(skipped)]), level)


def _apply_to_each(runs: Iterable[ReviewRun], do: Callable[[ReviewRun], None]) -> tuple[int, Skipped]:
    """Call `do` with each run. Return the number of calls that succeeded, and the skipped runs: after a failure the
    other runs are still processed."""
    done, skipped = 0, defaultdict[str, list[str]](list)
    for run in runs:
        try:
            do(run)
        except DomainError as refusal:
            skipped[str(refusal)].append(review_name(run))
        except Exception:
            logger.exception("review %s: a bulk action failed", run.pk)
            skipped["It failed; the server's log says why."].append(review_name(run))
        else:
            done += 1
    return done, skipped


def _memories_were(number: int, what: str) -> str:
    return f"{memories(number) if number else 'No memory'} {'were' if number > 1 else 'was'} {what}."


def _skipped_texts(skipped: Skipped) -> list[str]:
    return [f"Left out: {'; '.join(names)}: {reason}" for reason, names in skipped.items()]
