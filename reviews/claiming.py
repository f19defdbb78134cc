"""Claiming a review for one of several workers. The reviews of a session run one at a time and in order, and within
their owner's daily quota. Called by reviews.runner."""

import time
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from gateway.jobs import NotClaimed
from gateway.runs.leases import this_process
from memories.ids import uuid7
from memories.selectors import of_active_accounts
from reviews.ending import reviews_cancel
from reviews.models import ReviewRun
from reviews.quotas import usage_today
from reviews.selectors import Row

State = ReviewRun.State
LEASE_MARGIN = timedelta(seconds=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewClaim:
    """A review that this worker holds until its lease expires. `deadline` is a time of time.monotonic()."""

    review: ReviewRun
    session_id: UUID
    deadline: float

    @property
    def held(self) -> "QuerySet[ReviewRun]":
        """The run's row, unless another worker has claimed it since, or it has ended."""
        held = ReviewRun.objects.filter(pk=self.review.pk, lease_token=self.review.lease_token)
        return held.filter(state=State.RUNNING)


def review_claim(run_id: UUID) -> ReviewClaim | None:
    """Claim a scheduled run, or the oldest due run of its session. Returns None, and logs why, if that fails."""
    try:
        return _claim(run_id)
    except NotClaimed as reason:
        reason.log("review", run_id)
        return None


def due_run(run: Row | None, states: Collection[str], cause: str) -> Row:
    """Return a run of a review or a consolidation that may be claimed now. Raises NotClaimed, with `cause` if the run's
    state is not one of `states`."""
    if run is None:
        raise NotClaimed("unknown")
    if run.state not in states:
        raise NotClaimed(cause, state=run.state)
    if run.not_before > timezone.now():
        raise NotClaimed("not_due", not_before=run.not_before.isoformat())
    if not type(run)._default_manager.filter(of_active_accounts(), pk=run.pk).exists():
        raise NotClaimed("account_inactive")
    return run


def _claim(run_id: UUID) -> ReviewClaim | None:
    now, began = timezone.now(), time.monotonic()
    run = ReviewRun.objects.select_related("owner", "session").filter(pk=run_id).first()
    run = due_run(run, (State.SCHEDULED,), "not_scheduled")
    if run.session_id is None:
        reviews_cancel(ReviewRun.objects.filter(pk=run.pk, state=State.SCHEDULED), "Its session was deleted.")
        raise NotClaimed("session_deleted")
    if run.session is not None and run.session.deleted_at:
        raise NotClaimed("session_deleted")  # the run stays scheduled, since the session may be restored
    due = ReviewRun.objects.filter(session_id=run.session_id, state=State.SCHEDULED, not_before__lte=now)
    first = due.order_by("id").first()
    if first and first.pk != run.pk:
        # Reviews run in order, whichever job comes first; the earlier run enqueues this one when it ends.
        NotClaimed("earlier_first", first=first.pk).log("review", run_id)
        return review_claim(first.pk)
    if _postponed(run):
        raise NotClaimed("daily_limit")
    return _take(run, run.session_id, now, began)


def _take(run: ReviewRun, session_id: UUID, now: datetime, began: float) -> ReviewClaim:
    """Set a due run to running, if it still is due. Its timeout counts from `began`. Raises NotClaimed."""
    timeout = int(run.settings["memory_review_timeout"])
    token = uuid7()
    due = ReviewRun.objects.filter(pk=run.pk, state=State.SCHEDULED, not_before__lte=now)
    try:
        with transaction.atomic():
            due.update(
                state=State.RUNNING,
                attempts=F("attempts") + 1,
                lease_token=token,
                lease_expires_at=now + timedelta(seconds=timeout) + LEASE_MARGIN,
                holder=this_process(),
                started_at=now,
                error=None,
            )
    except IntegrityError:
        # A unique constraint allows one running review per session; this one stays scheduled.
        raise NotClaimed("session_busy") from None
    review = ReviewRun.objects.select_related("book", "session").filter(pk=run.pk, lease_token=token).first()
    if review is None:
        raise NotClaimed("taken")
    return ReviewClaim(review=review, session_id=session_id, deadline=began + timeout)


def _postponed(run: ReviewRun) -> bool:
    """Return False if the owner's daily quota is not used up. Otherwise postpone the run to the next day, or cancel it
    if a later run will read its turns."""
    day = usage_today(run.owner)
    if not day.reached:
        return False
    scheduled = ReviewRun.objects.filter(pk=run.pk, state=State.SCHEDULED)
    if ReviewRun.objects.filter(session=run.session, state=State.SCHEDULED, pk__gt=run.pk).exists():
        reviews_cancel(scheduled, day.reached, code="daily_limit")
    else:
        problem = {"code": "daily_limit", "message": day.reached}
        scheduled.update(not_before=day.ends, enqueued_at=None, error=problem)
    return True
