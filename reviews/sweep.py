"""What the worker looks after every few seconds: lost jobs, leases that ran out, sessions left with unreviewed turns.
Idempotent and safe in several workers: each step is a compare-and-set or a claim."""

from datetime import timedelta

from django.db.models import F, Q
from django.utils import timezone

from gateway.models import Agent, Session
from gateway.runs import agent_settings
from reviews import services
from reviews.models import ReviewRun
from reviews.schedule import enqueue, idle_since, review_idle_session

LOST_AFTER = timedelta(seconds=60)
_BATCH = 100


def reviews_sweep() -> None:
    """One sweep."""
    services.expire_leases(timezone.now())
    enqueue_lost()
    review_idle_sessions()


def enqueue_lost() -> int:
    """Hand due runs to the queue whose job is missing: never enqueued, or so long ago that it must be lost."""
    now = timezone.now()
    due = ReviewRun.objects.filter(state=ReviewRun.State.SCHEDULED, not_before__lte=now)
    lost = due.filter(Q(enqueued_at__isnull=True) | Q(enqueued_at__lt=now - LOST_AFTER)).order_by("not_before")[:_BATCH]
    count = 0
    for run in lost:
        mine = ReviewRun.objects.filter(pk=run.pk, state=ReviewRun.State.SCHEDULED, enqueued_at=run.enqueued_at)
        if mine.update(enqueued_at=now):
            enqueue(run.pk, timeout=run.settings["memory_review_timeout"])
            count += 1
    return count


def review_idle_sessions() -> int:
    """Review sessions that were left before their interval was full, so that short ones are not lost."""
    count = 0
    for agent in Agent.objects.all():
        since = idle_since(agent_settings(agent), timezone.now())
        if since is None:
            continue
        left = Session.objects.filter(
            agent=agent,
            temporary=False,
            turns_since_memory_review__gt=0,
            last_active_at__lt=since,
            reviewed_through__lt=F("message_seq"),
        )
        for session in left.order_by("last_active_at")[:_BATCH]:
            count += review_idle_session(session) is not None
    return count
