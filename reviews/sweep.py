"""The worker's sweep of reviews, every few seconds: expired leases, lost jobs, expired approvals, idle sessions with
unreviewed turns. It is idempotent and safe in several workers, since each step is a compare-and-set or a claim."""

from contextlib import suppress
from datetime import datetime, timedelta

from django.db.models import Exists, F, OuterRef, Q, QuerySet, Value
from django.db.models.functions import Least
from django.utils import timezone
from django_q.brokers import get_broker
from redis import RedisError

from gateway.agents.rows import agent_settings
from gateway.jobs import mark_enqueued, without_job
from gateway.models import Agent, Session
from memories.clocks import long_ago
from memories.errors import Conflict, NotFound
from memories.selectors import of_active_accounts
from reviews import approvals, services
from reviews.frozen import unreviewed
from reviews.models import ReviewRun
from reviews.schedule import enqueue, review_session

State = ReviewRun.State
_BATCH = 100


def reviews_sweep() -> None:
    now = timezone.now()
    services.expire_leases(now)
    approvals.forget_orphans()
    approvals.expire_approvals(now)
    approvals.purge_proposals(now)
    enqueue_lost()
    review_idle_sessions()


def enqueue_lost() -> int:
    """Enqueue due runs without a job: never enqueued, or so long ago that the job must be lost. Does nothing while the
    queue is full, since their jobs are probably still in it, and while Redis does not answer."""
    now = timezone.now()
    due = ReviewRun.objects.filter(state=State.SCHEDULED, not_before__lte=now)
    # While a session's review runs, its next run is not enqueued: the running one does that when it ends.
    running = ReviewRun.objects.filter(session_id=OuterRef("session_id"), state=State.RUNNING)
    missing = due.filter(of_active_accounts(), without_job(now)).exclude(Exists(running))
    lost = list(missing.order_by("not_before")[:_BATCH])
    room = count = 0
    with suppress(RedisError):
        room = _BATCH - get_broker().queue_size() if lost else 0
    for run in lost[: max(0, room)]:
        if mark_enqueued(due, run, now):
            enqueue(run)
            count += 1
    return count


def review_idle_sessions() -> int:
    """Schedule a review of idle sessions with unreviewed turns, also if a review failed; once per pause."""
    count = 0
    for agent in Agent.objects.all():
        # Independent of memory_review_interval.
        minutes = agent_settings(agent).memory_review_idle_minutes
        if not minutes:
            continue
        now, pause = timezone.now(), timedelta(minutes=minutes)
        idle = Session.objects.filter(
            of_active_accounts(),
            long_ago("last_active_at", now, age=pause),
            agent=agent,
            temporary=False,
            reviewed_through__lt=F("message_seq"),
        )
        uncovered = unreviewed(idle).exclude(Exists(_covering_reviews(now - pause)))
        for session in uncovered.order_by("last_active_at")[:_BATCH]:
            with suppress(Conflict, NotFound):  # something changed meanwhile
                review_session(session.owner_id, session.pk, ReviewRun.Trigger.IDLE)
                count += 1
    return count


def _covering_reviews(idle_since: datetime) -> "QuerySet[ReviewRun]":
    """Return the reviews of a session that make an idle one needless: open ones, and one scheduled in this pause. A
    pause begins at `idle_since` at the latest, also if a clock was ahead."""
    still_open = Q(state__in=ReviewRun.OPEN)
    this_pause = Q(trigger=ReviewRun.Trigger.IDLE, created_at__gte=Least(OuterRef("last_active_at"), Value(idle_since)))
    return ReviewRun.objects.filter(still_open | this_pause, session_id=OuterRef("pk"))
