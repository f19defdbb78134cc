"""When a review is due. Called by the gateway's hook inside the closing transaction of a turn, by the sweep for idle
sessions, and by a person's request. Scheduling is one row and, on the database broker, one job in its transaction."""

from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from gateway import jobs
from gateway.agents.rows import agent_settings
from gateway.agents.settings import AgentSettings
from gateway.hooks import TurnCompleted
from gateway.models import Session
from memories.books import book_state
from memories.errors import Conflict, InvalidRequest
from reviews.frozen import said_through, unreviewed
from reviews.models import ReviewRun

State = ReviewRun.State
TASK = "reviews.tasks.review_execute"
# The queue's own timeout is a backstop above a review's; it counts whole seconds.
BACKSTOP_SECONDS = 30
_KEPT = (
    "model",
    "upstream",
    "memory_review_model",
    "memory_review_timeout",
    "memory_review_max_writes",
    "memory_review_verbose",
    "memory_review_approval",
    "memory_hold",
)


def after_turn(event: TurnCompleted) -> bool:
    """Schedule a review when enough user turns have passed; True resets the session's counter."""
    interval = event.settings.memory_review_interval
    if not interval or event.turns_since_review < interval:
        return False
    review_schedule(
        owner_id=event.owner_id,
        session_id=event.session_id,
        book_id=event.book_id,
        book_epoch=event.book_epoch,
        agent_name=event.agent_name,
        agent=event.settings,
        trigger=ReviewRun.Trigger.INTERVAL,
        first_seq=event.reviewed_through + 1,
        last_seq=event.last_seq,
    )
    return True


def review_schedule(
    *,
    owner_id: UUID,
    session_id: UUID,
    book_id: UUID,
    book_epoch: int,
    agent_name: str,
    agent: AgentSettings,
    trigger: ReviewRun.Trigger,
    first_seq: int,
    last_seq: int,
) -> ReviewRun:
    """Insert the run with its frozen range and settings, and hand it to the queue, in the caller's transaction."""
    now = timezone.now()
    run = ReviewRun.objects.create(
        owner_id=owner_id,
        book_id=book_id,
        session_id=session_id,
        trigger=trigger,
        first_seq=first_seq,
        last_seq=last_seq,
        agent_name=agent_name,
        settings=kept_settings(agent),
        book_epoch=book_epoch,
        not_before=now,
        enqueued_at=now,
    )
    enqueue(run.pk, timeout=agent.memory_review_timeout)
    return run


def kept_settings(agent: AgentSettings) -> dict[str, Any]:
    """Return what a review is done with, as the agent is now."""
    return {name: getattr(agent, name) for name in _KEPT}


def enqueue(run_id: UUID, *, timeout: int) -> None:
    """Hand a run to the queue, in the caller's transaction. `timeout` in seconds is the review's own."""
    jobs.enqueue(TASK, run_id, timeout=timeout + BACKSTOP_SECONDS)


def enqueue_next(session_id: UUID) -> None:
    """Let the session's next scheduled review begin."""
    now = timezone.now()
    due = ReviewRun.objects.filter(session_id=session_id, state=State.SCHEDULED, not_before__lte=now)
    following = due.order_by("id").first()
    if following and due.filter(pk=following.pk).update(enqueued_at=now):
        enqueue(following.pk, timeout=following.settings["memory_review_timeout"])


@transaction.atomic
def review_session(
    owner_id: UUID, session_id: UUID, trigger: ReviewRun.Trigger = ReviewRun.Trigger.REQUEST
) -> ReviewRun:
    """Schedule a review of what is new. Raises InvalidRequest for a temporary session, Conflict if nothing is."""
    sessions = Session.objects.select_related("agent").filter(pk=session_id, owner_id=owner_id)
    session = sessions.select_for_update(of=("self",)).get()
    if session.temporary:
        raise InvalidRequest("A temporary session is never reviewed.")
    last_seq = said_through(owner_id, session_id)
    open_runs = ReviewRun.objects.filter(owner_id=owner_id, session=session, state__in=ReviewRun.OPEN)
    covered = max([session.reviewed_through, *open_runs.values_list("last_seq", flat=True)])
    if last_seq <= covered or not unreviewed(sessions.order_by()).exists():
        raise Conflict("Nothing was said in this session since its last review.")
    book = book_state(owner_id, session.agent.book)
    run = review_schedule(
        owner_id=owner_id,
        session_id=session.pk,
        book_id=book.book_id,
        book_epoch=book.epoch,
        agent_name=session.agent.name,
        agent=agent_settings(session.agent),
        trigger=trigger,
        first_seq=session.reviewed_through + 1,
        last_seq=last_seq,
    )
    session.turns_since_memory_review = 0
    session.save(update_fields=["turns_since_memory_review"])
    return run
