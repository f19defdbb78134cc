"""The reviews' part of a book's health: session coverage, the last review, waiting reviews and used-up quotas."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from gateway.agents.rows import agent_settings
from gateway.models import Agent, Session
from memories.health import COVERAGE, LAST_REVIEW, WARNING, Facts, ago
from memories.models import Book
from memories.number_words import counted
from memories.selectors import count_by
from reviews.frozen import unreviewed
from reviews.models import ReviewRun
from reviews.quotas import DailyUsage, usage_today
from reviews.selectors import newest_by_book
from reviews.writes import applied, counts

State = ReviewRun.State
_IGNORED = (*ReviewRun.OPEN, State.CANCELLED)


def review_facts(books: Sequence[Book], now: datetime) -> dict[UUID, Facts]:
    """Return figures and sentences by book for memories.health."""
    owner = books[0].owner
    agents = list(Agent.objects.filter(book__in={book.name for book in books}))
    on = {agent.book for agent in agents if agent_settings(agent).reviews_on}
    sessions = Session.objects.filter(owner_id=owner.pk, agent__in=agents, temporary=False, turns__gt=0)
    total, open_ = count_by(sessions, "agent__book"), count_by(unreviewed(sessions), "agent__book")
    runs = ReviewRun.objects.filter(owner_id=owner.pk, book__in=books)
    waiting = count_by(runs.filter(state=State.AWAITING_APPROVAL), "book")
    finished = ReviewRun.objects.filter(owner_id=owner.pk).exclude(state__in=_IGNORED).exclude(finished_at=None)
    last = newest_by_book(books, finished, "-finished_at")
    day = usage_today(owner, now)
    return {
        book.pk: _book_facts(
            last.get(book.pk),
            day,
            now,
            on=book.name in on,
            total=total.get(book.name, 0),
            covered=total.get(book.name, 0) - open_.get(book.name, 0),
            waiting=waiting.get(book.pk, 0),
        )
        for book in books
    }


def _book_facts(
    last: ReviewRun | None, day: DailyUsage, now: datetime, *, on: bool, total: int, covered: int, waiting: int
) -> Facts:
    saved, removed = counts(applied(last.writes)) if last else (0, 0)
    sentences = [(LAST_REVIEW, _last_review_text(last, on, now))]
    if on and total:
        sentences.append((COVERAGE, f"Covers {covered} of {counted(total, 'session')}."))
    if waiting > bool(last and last.state == State.AWAITING_APPROVAL):
        sentences.append((WARNING, f"{counted(waiting, 'review waits', 'reviews wait')} for you."))
    if day.reached:
        sentences.append((WARNING, day.reached))
    return Facts(
        figures={
            "sessions": total,
            "sessions_covered": covered,
            "reviews_on": on,
            "reviews_waiting": waiting,
            "last_review_at": last.finished_at if last else None,
            "last_review": last and {"id": str(last.pk), "state": last.state, "saved": saved, "removed": removed},
            "today": {"reviews": day.reviews, "tokens": day.tokens, "limit_reached": bool(day.reached)},
        },
        sentences=tuple(sentences),
    )


def _last_review_text(last: ReviewRun | None, on: bool, now: datetime) -> str:
    if last is None or last.finished_at is None:
        return "No review yet." if on else "Reviews are off for every agent of this book."
    when = ago(last.finished_at, now)
    if last.state in ReviewRun.FAILED:
        what = "failed" if last.state == State.FAILED else "ran out of time"
        return f"The last review {what} {when}; the next one reads those turns too."
    return f"Last review {when}: {_result(last)}."


def _result(last: ReviewRun) -> str:
    if last.state == State.AWAITING_APPROVAL:
        return "it waits for your decision"
    if last.state == State.UNDONE:
        return "undone"
    saved, removed = counts(applied(last.writes))
    parts = [f"saved {saved}"] * bool(saved) + [f"removed {removed}"] * bool(removed)
    return ", ".join(parts) or "nothing new"
