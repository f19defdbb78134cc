"""What is left of reviews when a session or a book is forgotten, and what of them is in an owner's export."""

from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

from django.db.models import F
from django.utils import timezone

from gateway.hooks import SessionForgotten
from gateway.models import Session
from memories.erasing import Step, each_page, updating
from memories.models import Book
from memories.portability import paged
from reviews.models import ReviewRun

State = ReviewRun.State
_OPEN = (State.SCHEDULED, State.RUNNING, State.AWAITING_APPROVAL)
# What a review wrote, proposed, or stumbled over may repeat somebody's words.
_FORGOTTEN: dict[str, Any] = {"writes": [], "turned_down_at": None, "change_set": None, "frozen_hash": ""}


def session_was_forgotten(event: SessionForgotten) -> None:
    """A session is forgotten: what is under way or waits for a decision ends, in the same transaction."""
    runs = ReviewRun.objects.filter(owner_id=event.owner_id, session_id=event.session_id)
    _cancel(runs.filter(state__in=_OPEN), "The session was deleted or forgotten.")


def pass_over_sessions(owner_id: UUID, books: Sequence[UUID]) -> list[Step]:
    """For forgetting everything: the conversations so far are not read again."""
    names = Book.objects.filter(owner_id=owner_id, pk__in=books).values_list("name", flat=True)
    sessions = Session.objects.filter(owner_id=owner_id, agent__book__in=list(names))
    return [Step("", updating(sessions, reviewed_through=F("message_seq"), turns_since_memory_review=0))]


def erase_reviews(owner_id: UUID, books: Sequence[UUID]) -> list[Step]:
    """For forgetting everything: no words of a review of before stay, and open ones end. The rows stay, without
    content: they say what reviews cost."""
    before = ReviewRun.objects.filter(owner_id=owner_id, book_id__in=books, book_epoch__lt=F("book__epoch"))
    return [
        Step("reviews", updating(before.exclude(writes=[]), **_FORGOTTEN)),
        Step("", each_page(before.filter(state__in=_OPEN), lambda runs: _cancel(runs, "Everything was forgotten."))),
        Step("", updating(before.exclude(change_set=None, frozen_hash="", turned_down_at=None), **_FORGOTTEN)),
    ]


def export_reviews(owner_id: UUID) -> Iterator[dict[str, Any]]:
    """Every review with its writes."""
    runs = ReviewRun.objects.filter(owner_id=owner_id).select_related("book")
    for run in paged(runs, "id"):
        yield {
            "type": "review",
            "id": str(run.pk),
            "book": run.book.name,
            "session_id": str(run.session_id) if run.session_id else None,
            "state": run.state,
            "trigger": run.trigger,
            "model": run.model,
            "usage": run.usage,
            "writes": run.writes,
            "created_at": run.created_at,
            "finished_at": run.finished_at,
        }


def _cancel(runs: Any, reason: str) -> None:
    runs.update(
        state=State.CANCELLED,
        lease_token=None,
        lease_expires_at=None,
        finished_at=timezone.now(),
        error={"code": "cancelled", "message": reason},
        **_FORGOTTEN,
    )
