"""State transitions of a ReviewRun that a worker has claimed (reviews.claiming). A transition is a compare-and-set on
the state and, while a worker holds the run, its lease token, so it happens at most once, even if the sweep has given
the run to another worker. Called by reviews.runner, reviews.sweep, reviews.page and reviews.admin; decisions of people
are in reviews.approvals and reviews.undo."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.db.models import F, Q, QuerySet, Value
from django.db.models.functions import Least
from django.utils import timezone

from gateway.errors import UpstreamSilent
from gateway.jobs import LeaseLost, paused_too_long, retry_pause
from gateway.models import Session
from gateway.runs.leases import has_ended
from gateway.upstream.usage import add_usage
from memories.clocks import CLOCK_SKEW, since_set_forward
from memories.errors import DomainError, Overloaded, RateLimited, UpstreamError, UpstreamTimeout
from memories.models import Book, ChangeSet, WriteOrigin
from prompts.files import prompt_file
from reviews.applying import apply_writes
from reviews.approvals import review_reject
from reviews.claiming import ReviewClaim
from reviews.ending import reviews_cancel, reviews_end
from reviews.errors import RunCancelled
from reviews.models import ReviewRun
from reviews.repeated import repeats_join
from reviews.selectors import review_model
from reviews.writes import ReviewWrite, WriteState

State = ReviewRun.State
# Seconds before the second, third and further attempts, unless the server asks for a longer pause.
RETRY_SECONDS = (5.0, 30.0, 120.0)


@dataclass(slots=True, kw_only=True)
class ReviewOutcome:
    """The result of an attempt so far: its staged writes and its usage."""

    writes: list[ReviewWrite] = field(default_factory=list)
    usage: dict[str, int] = field(default_factory=dict)
    steps: int = 0
    model: str = ""
    dropped: dict[str, int] = field(default_factory=dict)
    frozen_hash: str = ""


def review_finish(claim: ReviewClaim, outcome: ReviewOutcome) -> None:
    """End a review whose model is done: apply its writes in one transaction or let them wait for approval."""
    with suppress(LeaseLost):
        try:
            with transaction.atomic():
                _finish_locked(_lock_claimed(claim), claim, outcome)
        except RunCancelled as reason:
            # The writes are not kept, since they quote a conversation or a book that was deleted.
            problem = {"code": "cancelled", "message": str(reason)}
            _end(claim, outcome, State.CANCELLED, error=problem)


def review_time_out(claim: ReviewClaim, outcome: ReviewOutcome) -> None:
    """End a review that timed out, without writing anything and without another attempt."""
    seconds = claim.review.settings["memory_review_timeout"]
    problem = {"code": "timed_out", "message": f"No result within {seconds} seconds."}
    with suppress(LeaseLost):
        _end(claim, outcome, State.TIMED_OUT, error=problem)


def review_fail(claim: ReviewClaim, outcome: ReviewOutcome, error: DomainError) -> None:
    """End an attempt that failed. After a transient error of the upstream or the database the run is scheduled
    again."""
    if isinstance(error, UpstreamTimeout) and not isinstance(error, UpstreamSilent):
        review_time_out(claim, outcome)
        return
    problem = {"code": error.code, "message": str(error)}
    delay = retry_delay(error, claim.review.attempts)
    if delay is None:
        with suppress(LeaseLost):
            _end(claim, outcome, State.FAILED, error=problem)
        return
    usage = add_usage(claim.review.usage, outcome.usage)
    _schedule_again(claim.held, timezone.now() + timedelta(seconds=delay), usage=usage, error=problem)


def retry_delay(error: DomainError, attempts: int) -> float | None:
    """Return the seconds until the next attempt, or None if the error is permanent or the attempts are used up."""
    status = error.details.get("status")
    transient = isinstance(error, RateLimited | UpstreamSilent | Overloaded) or (
        isinstance(error, UpstreamError) and (status is None or int(status) >= 500)
    )
    if not transient or attempts >= settings.REVIEW_ATTEMPTS:
        return None
    return retry_pause(error, least=RETRY_SECONDS[min(attempts, len(RETRY_SECONDS)) - 1])


def review_cancel(review: ReviewRun, reason: str, *, actor: str = "system") -> bool:
    """Cancel an open review, or reject its waiting writes. Returns True if this call did so."""
    if review.state == State.AWAITING_APPROVAL:
        review_reject(review, actor=actor)
        return True
    still_open = ReviewRun.objects.filter(pk=review.pk, state__in=ReviewRun.OPEN)
    return reviews_cancel(still_open, reason) == 1


def expire_leases(now: datetime) -> int:
    """Reschedule runs whose worker stopped or died, or fail them if their attempts are used up. Returns how many."""
    _count_from(now)
    running = ReviewRun.objects.filter(state=State.RUNNING)
    # After the clock was set forward, every lease counts as held until it has lasted its time.
    over = Q(lease_expires_at__lt=now) & Q(lease_expires_at__lt=F("started_at") + since_set_forward())
    if connection.vendor == "sqlite":  # where a process that has ended is noticed at once
        over |= Q(holder__in=[holder for holder in set(running.values_list("holder", flat=True)) if has_ended(holder)])
    stale = running.filter(over)
    rescheduled = _schedule_again(stale.filter(attempts__lt=settings.REVIEW_ATTEMPTS), now)
    problem = {"code": "worker_lost", "message": "The worker stopped or died during each attempt."}
    return rescheduled + reviews_end(stale, State.FAILED, error=problem, finished_at=now)


def _schedule_again(runs: "QuerySet[ReviewRun]", not_before: datetime, **values: Any) -> int:
    """Release running reviews for another attempt. Returns how many."""
    unheld = {"lease_token": None, "lease_expires_at": None, "enqueued_at": None}
    return runs.update(state=State.SCHEDULED, not_before=not_before, **unheld, **values)


def _count_from(now: datetime) -> None:
    """Count leases and pauses that began while the clock was ahead from now: the workers of running reviews may live,
    and a review must not wait longer than it was meant to."""
    behind, unfinished = now + CLOCK_SKEW, ReviewRun.objects.filter(state__in=ReviewRun.OPEN)
    times = {name: Value(now) + (F(name) - F("started_at")) for name in ("lease_expires_at", "not_before")}
    unfinished.filter(started_at__gt=behind).update(started_at=now, **times)
    new = Q(started_at=None, not_before__gt=now, created_at__gt=behind)
    held_up = unfinished.filter(new | paused_too_long("not_before", now))
    held_up.update(created_at=Least("created_at", Value(now)), not_before=now)


def _finish_locked(review: ReviewRun, claim: ReviewClaim, outcome: ReviewOutcome) -> None:
    """Finish a review in a transaction that has locked its session and run."""
    # A concurrent clear waits for this lock, since it locks the book too.
    if Book.objects.select_for_update(no_key=True).get(pk=review.book_id).epoch != review.book_epoch:
        raise RunCancelled("The book was cleared meanwhile.")
    staged = [write for write in outcome.writes if write.state == WriteState.STAGED]
    if review.settings["memory_review_approval"]:
        for write in staged:
            write.wait()
        staged = []
    repeats_join(review.book, review.session_id, outcome.writes)
    change_set = None
    if staged:
        origin, kind = WriteOrigin.BACKGROUND_REVIEW, ChangeSet.Kind.REVIEW
        change_set, refused = apply_writes(review, outcome.writes, staged, actor="model", origin=origin, kind=kind)
        for index, error in refused.items():
            outcome.writes[index].refuse(str(error))
    state = State.SAVED if change_set else State.NOTHING_TO_SAVE
    if any(write.waiting for write in outcome.writes):
        state = State.AWAITING_APPROVAL
    _end(claim, outcome, state, writes=outcome.writes, change_set=change_set, reviewed=True)


def _lock_claimed(claim: ReviewClaim) -> ReviewRun:
    """Lock the claim's session and run. Raises LeaseLost, or RunCancelled if the session was deleted."""
    session = Session.objects.select_for_update(no_key=True).filter(pk=claim.session_id).first()
    review = claim.held.select_for_update(of=("self",)).select_related("book").first()
    if review is None:
        raise LeaseLost
    if session is None:
        raise RunCancelled("The session was deleted meanwhile.")
    return review


def _end(
    claim: ReviewClaim,
    outcome: ReviewOutcome,
    state: ReviewRun.State,
    *,
    writes: Sequence[ReviewWrite] = (),
    change_set: UUID | None = None,
    error: dict[str, Any] | None = None,
    reviewed: bool = False,
) -> None:
    """End a claimed run. Raises LeaseLost, which rolls everything back, if another worker has it by now."""
    with transaction.atomic():
        if reviewed:
            last = claim.review.last_seq
            Session.objects.filter(pk=claim.session_id, reviewed_through__lt=last).update(reviewed_through=last)
        ended = reviews_end(
            claim.held,
            state,
            error=error,
            notify_for=claim.review,
            writes=list(writes),
            proposals=sum(write.proposed for write in writes),
            change_set=change_set,
            usage=add_usage(claim.review.usage, outcome.usage),
            steps=outcome.steps,
            model=outcome.model or review_model(claim.review),
            dropped_calls=outcome.dropped,
            frozen_hash=outcome.frozen_hash,
            prompt_sha256=prompt_file("review").sha256,
        )
        if ended != 1:
            raise LeaseLost
