"""What is left of reviews when a session or a book is forgotten, and what of them is in an owner's export."""

from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

from django.db.models import F
from django.utils import timezone

from gateway.hooks import SessionForgotten
from gateway.models import Session
from memories.models import Book
from memories.portability import paged
from reviews.models import ReviewRun

State = ReviewRun.State
_OPEN = (State.SCHEDULED, State.RUNNING, State.AWAITING_APPROVAL)
# What a review wrote, proposed, or stumbled over may repeat somebody's words.
_FORGOTTEN: dict[str, Any] = {"writes": [], "rejected_at": None, "change_set": None, "frozen_hash": ""}


def session_was_forgotten(event: SessionForgotten) -> None:
    """End the reviews of a forgotten session that are under way or wait for a decision, in the same transaction."""
    runs = ReviewRun.objects.filter(owner_id=event.owner_id, session_id=event.session_id)
    _cancel(runs.filter(state__in=_OPEN), "The session was deleted or forgotten.")


def erase_reviews(owner_id: UUID, books: Sequence[UUID]) -> dict[str, int]:
    """Erase all text of reviews, inside the transaction of a forgetting, with the books locked. Open reviews end, and
    the conversations so far are not read again. The rows stay without content, because they say what reviews cost."""
    # One that is being applied this moment holds its row and waits for the book; it finds the raised epoch and ends.
    free = ReviewRun.objects.select_for_update(skip_locked=True).filter(owner_id=owner_id, book_id__in=books)
    mine = ReviewRun.objects.filter(pk__in=[run.pk for run in free.only("pk")])
    with_words = mine.exclude(writes=[]).count()
    _cancel(mine.filter(state__in=_OPEN), "Everything was forgotten.")
    mine.update(**_FORGOTTEN)
    names = Book.objects.filter(owner_id=owner_id, pk__in=books).values_list("name", flat=True)
    sessions = Session.objects.filter(owner_id=owner_id, agent__book__in=list(names))
    sessions.update(reviewed_through=F("message_seq"), turns_since_memory_review=0)
    return {"reviews": with_words}


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
