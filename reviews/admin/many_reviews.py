"""The same action done to many reviews at once. Each is done by itself and has its own line in the audit log, so that
one that is refused, or is broken, loses none of the others; one message says what became of all. Between two of them,
and between two slices of a large undo, the writes of others have their turn."""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from uuid import UUID

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest

from gateway.admin.session_titles import title_of
from memories.admin.access import action_record
from memories.admin.badges import moment
from memories.admin.base import staff_actor
from memories.audit.log import Action
from memories.database.access import in_write_lane
from memories.database.batches import Slices, run_slices
from memories.errors import Conflict, DomainError, NotFound
from memories.models import WriteOrigin
from memories.number_words import counted, memories
from reviews.models import ReviewRun
from reviews.schedule import review_session
from reviews.services import review_cancel
from reviews.undo import review_undo_slices

logger = logging.getLogger("daybook.reviews")

CANCELLED = "Cancelled by an administrator."


@dataclass(slots=True)
class BulkReviewResult:
    """How many reviews it was done to, and the names of the others by reason, in words."""

    done: int = 0
    skipped: dict[str, list[str]] = field(default_factory=dict)

    def skip(self, run: ReviewRun, reason: str) -> None:
        self.skipped.setdefault(reason, []).append(review_name(run))


def undo_many(request: HttpRequest, runs: Iterable[ReviewRun]) -> tuple[str, int]:
    """Take back what the reviews wrote, what was written last first: so a memory that several of them changed goes back
    to before the first of them. Never puts anything back in. Returns the message and its level."""
    # By owner and number: memories that are as before, and the names of those left alone because of changes since.
    back: set[tuple[UUID, int]] = set()
    left: dict[tuple[UUID, int], str] = {}

    def undo(run: ReviewRun) -> Slices[None]:
        undone = yield from review_undo_slices(run, actor=staff_actor(request), origin=WriteOrigin.ADMIN)
        if not undone.undone and not undone.skipped:
            raise Conflict("It is undone already.")
        back.update((run.owner_id, number) for number in undone.undone)
        left.update({(run.owner_id, n): f"{run.owner}’s memory {n}" for n in undone.skipped})
        words = "Undone." if undone.undone else "Not undone: all of it was changed since."
        action_record(request, ReviewRun, words, [run], Action.UNDO)

    # A review that was approved later wrote later than its own id says: the group of its writes has the time.
    latest_first = sorted(runs, key=lambda run: (run.change_set or run.pk).int, reverse=True)
    outcome = _each(latest_first, lambda run: run_slices(undo(run)))
    level = messages.WARNING if left or outcome.skipped else messages.SUCCESS
    words = [_were(len(back), "changed back")]
    if names := [left[memory] for memory in sorted(left.keys() - back)]:
        words.append(f"{_were(len(names), 'left alone, because of changes since')[:-1]}: {', '.join(names)}.")
    return " ".join([*words, *_skipped(outcome)]), level


def cancel_many(request: HttpRequest, runs: Iterable[ReviewRun]) -> tuple[str, int]:
    """Cancel the reviews that are not over; writes that wait are rejected. Returns the message and its level."""

    def cancel(run: ReviewRun) -> str:
        if not review_cancel(run, CANCELLED, actor=staff_actor(request)):
            raise Conflict("It is over.")
        return "Cancelled."

    return _counted("Cancelled", _each(runs, _recorded(request, cancel)))


def again_many(request: HttpRequest, runs: Iterable[ReviewRun]) -> tuple[str, int]:
    """Review the sessions of these reviews again. Returns the message and its level."""

    def again(run: ReviewRun) -> str:
        if run.session is None:
            raise NotFound("Its session was deleted.")
        review_session(run.owner_id, run.session.pk)
        return "Reviewed again."

    return _counted("Scheduled again", _each(runs, _recorded(request, again)))


def review_name(run: ReviewRun) -> str:
    """Return a review as a message names it: `“Tea” of alice, 20 Nov 2026, 09:41`."""
    title = title_of(run) if run.session else "A deleted session"
    return f"“{title}” of {run.owner}, {moment(run.created_at)}"


def _recorded(request: HttpRequest, change: Callable[[ReviewRun], str]) -> Callable[[ReviewRun], None]:
    """Return the change and its line in the log, in one transaction. `change` returns what the log says."""

    @transaction.atomic
    def change_and_record(run: ReviewRun) -> None:
        action_record(request, ReviewRun, change(run), [run], Action.CHANGE)

    return lambda run: in_write_lane(change_and_record, run)


def _each(runs: Iterable[ReviewRun], do: Callable[[ReviewRun], None]) -> BulkReviewResult:
    """Call `do`, which may raise DomainErrors, with each run. One that fails is reported and the others go on."""
    outcome = BulkReviewResult()
    for run in runs:
        try:
            do(run)
        except DomainError as refusal:
            outcome.skip(run, str(refusal))
        except Exception:
            logger.exception("review %s: an action on many reviews broke off", run.pk)
            outcome.skip(run, "It could not be done; the server's log says why.")
        else:
            outcome.done += 1
    return outcome


def _were(number: int, what: str) -> str:
    return f"{memories(number) if number else 'No memory'} {'were' if number > 1 else 'was'} {what}."


def _counted(what: str, outcome: BulkReviewResult) -> tuple[str, int]:
    number = counted(outcome.done, "review") if outcome.done else "no review"
    level = messages.WARNING if outcome.skipped else messages.SUCCESS
    return " ".join([f"{what}: {number}.", *_skipped(outcome)]), level


def _skipped(outcome: BulkReviewResult) -> list[str]:
    return [f"Left out: {'; '.join(names)}: {reason}" for reason, names in outcome.skipped.items()]
