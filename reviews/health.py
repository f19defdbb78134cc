"""What reviews know of a book's health: sessions covered, how the last review went, what waits, and used-up days."""

from datetime import datetime
from typing import Any

from gateway.agents.rows import agent_settings
from gateway.models import Agent, Session
from memories.health import COVERAGE, LAST_REVIEW, WARNING, Facts, ago
from memories.models import Book
from reviews.ceilings import day_of
from reviews.frozen import unreviewed
from reviews.models import ReviewRun
from reviews.words import counts

State = ReviewRun.State
_OPEN = (State.SCHEDULED, State.RUNNING)
_FAILED = (State.FAILED, State.TIMED_OUT)
_LEFT_OUT = (*_OPEN, State.CANCELLED)


def review_facts(book: Book, now: datetime) -> Facts:
    """Figures and sentences for memories.health."""
    agents = list(Agent.objects.filter(book=book.name))
    on = any(agent_settings(agent).reviews_on for agent in agents)
    sessions = Session.objects.filter(owner_id=book.owner_id, agent__in=agents, temporary=False, turns__gt=0)
    total, open_ = sessions.count(), unreviewed(sessions).count()
    runs = ReviewRun.objects.filter(owner_id=book.owner_id, book=book)
    last = runs.exclude(state__in=_LEFT_OUT).exclude(finished_at=None).order_by("-finished_at").first()
    waiting = runs.filter(state=State.AWAITING_APPROVAL).count()
    day = day_of(book.owner, now)
    sentences = [(LAST_REVIEW, _last_words(last, on, now))]
    if on and total:
        sentences.append((COVERAGE, f"Covers {total - open_} of {total} session{'' if total == 1 else 's'}."))
    if waiting > bool(last and last.state == State.AWAITING_APPROVAL):
        sentences.append((WARNING, f"{'1 review waits' if waiting == 1 else f'{waiting} reviews wait'} for you."))
    if day.reached:
        sentences.append((WARNING, day.reached))
    return Facts(
        figures={
            "sessions": total,
            "sessions_covered": total - open_,
            "reviews_on": on,
            "reviews_waiting": waiting,
            "last_review_at": last.finished_at if last else None,
            "last_review": _last_json(last) if last else None,
            "today": {"reviews": day.reviews, "tokens": day.tokens, "limit_reached": bool(day.reached)},
        },
        sentences=tuple(sentences),
    )


def _last_json(last: ReviewRun) -> dict[str, Any]:
    saved, removed = counts(write for write in last.writes if write["state"] == "applied")
    return {"id": str(last.pk), "state": last.state, "saved": saved, "removed": removed}


def _last_words(last: ReviewRun | None, on: bool, now: datetime) -> str:
    if last is None or last.finished_at is None:
        return "No review yet." if on else "Reviews are off for every agent of this book."
    when = ago(last.finished_at, now)
    if last.state in _FAILED:
        what = "failed" if last.state == State.FAILED else "ran out of time"
        return f"The last review {what} {when}; the next one reads those turns too."
    return f"Last review {when}: {_result(last)}."


def _result(last: ReviewRun) -> str:
    if last.state == State.AWAITING_APPROVAL:
        return "it waits for your decision"
    if last.state == State.UNDONE:
        return "undone"
    saved, removed = counts(write for write in last.writes if write["state"] == "applied")
    parts = [f"saved {saved}"] * bool(saved) + [f"removed {removed}"] * bool(removed)
    return ", ".join(parts) or "nothing new"
