"""Scheduling reviews: after some turns (by the gateway's hook, in the transaction that closes the turn), for idle
sessions (by the sweep), and on request. Scheduling inserts a row and, on the database broker, a job with it."""

from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from gateway import jobs
from gateway.agents.rows import agent_settings
from gateway.agents.settings import AgentSettings
from gateway.models import Session
from gateway.runs.context import TurnContext
from memories.books import book_state
from memories.database.access import only_row
from memories.errors import Conflict, InvalidRequest, NotFound
from memories.recall.book_views import BookState
from memories.selectors import require_active_account
from reviews.frozen import last_reviewable_seq, unreviewed
from reviews.models import ReviewRun

State, Trigger = ReviewRun.State, ReviewRun.Trigger
TASK = "reviews.tasks.review_execute"
# The queue's timeout is a backstop and must be longer than the review's own.
BACKSTOP_SECONDS = 30
_STORED_SETTINGS = (
    "model",
    "upstream",
    "memory_review_model",
    "memory_review_timeout",
    "memory_review_max_writes",
    "memory_review_verbose",
    "memory_review_approval",
    "memory_hold",
)


def after_turn(context: TurnContext, session: Session) -> bool:
    """Schedule a review if enough user turns have passed. Returns True if the caller should reset the counter."""
    interval = context.agent.settings.memory_review_interval
    if context.book is None or not interval or session.turns_since_memory_review < interval:
        return False
    agent = context.agent
    _schedule(_review(session, context.book, agent.name, agent.settings, Trigger.INTERVAL, session.message_seq))
    return True


def covered_seq(session: Session) -> int:
    """Return the number of the last message of a session that a review has read or is scheduled to read."""
    open_runs = ReviewRun.objects.filter(owner_id=session.owner_id, session=session, state__in=ReviewRun.OPEN)
    return max([session.reviewed_through, *open_runs.values_list("last_seq", flat=True)])


def new_review(session: Session, trigger: ReviewRun.Trigger, last_seq: int) -> ReviewRun:
    """Return an unsaved run over the messages since the last review, up to `last_seq`, with the current settings."""
    agent = session.agent
    book = book_state(session.owner_id, agent.book)
    return _review(session, book, agent.name, agent_settings(agent), trigger, last_seq)


def _review(
    session: Session, book: BookState, agent: str, settings: AgentSettings, trigger: ReviewRun.Trigger, last_seq: int
) -> ReviewRun:
    return ReviewRun(
        owner_id=session.owner_id,
        session=session,
        book_id=book.book_id,
        book_epoch=book.epoch,
        agent_name=agent,
        settings=stored_settings(settings),
        trigger=trigger,
        first_seq=session.reviewed_through + 1,
        last_seq=last_seq,
    )


def _schedule(run: ReviewRun) -> None:
    """Insert a run and enqueue its job, in the caller's transaction."""
    run.not_before = run.enqueued_at = timezone.now()
    run.save(force_insert=True)
    enqueue(run)


def stored_settings(agent: AgentSettings) -> dict[str, Any]:
    """Return the agent's settings that a review is stored with, so that later changes do not affect it."""
    return {name: getattr(agent, name) for name in _STORED_SETTINGS}


def enqueue(run: ReviewRun) -> None:
    """Enqueue a run's job, in the caller's transaction."""
    jobs.enqueue(TASK, run.pk, timeout=run.settings["memory_review_timeout"] + BACKSTOP_SECONDS)


def enqueue_next(session_id: UUID) -> None:
    """Enqueue the session's next scheduled review, if one is due."""
    now = timezone.now()
    due = ReviewRun.objects.filter(session_id=session_id, state=State.SCHEDULED, not_before__lte=now)
    run = due.order_by("id").first()
    if run and due.filter(pk=run.pk).update(enqueued_at=now):
        enqueue(run)


@transaction.atomic
def review_session(owner_id: UUID, session_id: UUID, trigger: ReviewRun.Trigger = Trigger.REQUEST) -> ReviewRun:
    """Schedule a review of new messages. Raises NotFound for a deleted session, InvalidRequest for a temporary one,
    Conflict if there are no new messages or the account was deactivated."""
    sessions = Session.objects.select_related("agent").filter(pk=session_id, owner_id=owner_id)
    session = only_row(sessions.select_for_update(of=("self",), no_key=True))
    if session is None:
        raise NotFound("There is no such session. It may have been deleted.")
    if session.temporary:
        raise InvalidRequest("A temporary session is never reviewed.")
    require_active_account(sessions)
    last_seq = last_reviewable_seq(owner_id, session_id)
    if last_seq <= covered_seq(session) or not unreviewed(sessions.order_by()).exists():
        raise Conflict("Nothing was said in this session since its last review.")
    run = new_review(session, trigger, last_seq)
    _schedule(run)
    session.turns_since_memory_review = 0
    session.save(update_fields=["turns_since_memory_review"])
    return run
