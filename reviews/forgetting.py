"""Erasing reviews when a session or a book is forgotten, and exporting them with an owner's data."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any
from uuid import UUID

from django.db.models import F, TextField
from django.db.models.functions import Cast

from gateway.models import Session
from memories.models import Book
from memories.selectors import paged
from memories.services import books_of_owner_lock
from memories.services.erasing import ErasureStep, each_page, updating
from reviews.consolidation.clear import notes_forget
from reviews.ending import reviews_cancel
from reviews.models import ReviewRun

_ERASED: dict[str, Any] = {"rejected_at": None, "change_set": None, "frozen_hash": ""}


def sessions_were_forgotten(owner_id: UUID, sessions: Sequence[UUID]) -> None:
    """Cancel the reviews of forgotten sessions that are open or wait for approval, erase quotes from them in all
    reviews, and erase the notes on them, in the caller's transaction. Leaves the owner's books locked."""
    runs = ReviewRun.objects.filter(owner_id=owner_id)
    own = runs.filter(session_id__in=sessions)
    # Writes of other sessions quote them too if both proposed the same (reviews.repeated).
    others = runs.filter(proposals__gt=0).annotate(writes_text=Cast("writes", TextField()))
    keys = {*own.values_list("pk", flat=True)}
    for session_id in sessions:
        keys.update(others.filter(writes_text__contains=str(session_id)).values_list("pk", flat=True))
    locked = list(runs.filter(pk__in=keys).select_for_update().order_by("pk"))
    reviews_cancel(own.filter(state__in=ReviewRun.UNDECIDED), "The session was deleted or forgotten.", **_ERASED)
    for run in locked:
        if run.session_id not in sessions or run.state not in ReviewRun.UNDECIDED:
            _forget_quotes(run, sessions)
    books_of_owner_lock(owner_id)
    for session_id in sessions:
        notes_forget(owner_id, session_id)


def _forget_quotes(run: ReviewRun, sessions: Sequence[UUID]) -> None:
    """Erase quotes from sessions in the writes of a review, and all quotes in one of the sessions' own reviews."""
    for write in run.writes:
        if run.session_id in sessions or write.evidence.session_id in sessions:
            write.evidence = write.evidence.without_words()
    run.save(update_fields=["writes"])


def mark_sessions_reviewed(owner_id: UUID, books: Sequence[UUID]) -> list[ErasureStep]:
    """Return the step that marks all conversations as reviewed, so that they are not read again."""
    names = Book.objects.filter(owner_id=owner_id, pk__in=books).values_list("name", flat=True)
    sessions = Session.objects.filter(owner_id=owner_id, agent__book__in=list(names))
    return [ErasureStep("", updating(sessions, reviewed_through=F("message_seq"), turns_since_memory_review=0))]


def erase_reviews(owner_id: UUID, books: Sequence[UUID]) -> list[ErasureStep]:
    """Return the steps that cancel open reviews and erase the texts of all. The rows are kept as a record of usage."""
    runs = ReviewRun.objects.filter(owner_id=owner_id, book_id__in=books, book_epoch__lt=F("book__epoch"))
    cancel = partial(reviews_cancel, reason="Everything was forgotten.", **_ERASED)
    return [
        ErasureStep("reviews", updating(runs.exclude(writes=[]), writes=[], **_ERASED)),
        ErasureStep("", each_page(runs.filter(state__in=ReviewRun.UNDECIDED), cancel)),
        ErasureStep("", updating(runs.exclude(change_set=None, frozen_hash="", rejected_at=None), **_ERASED)),
    ]


def export_reviews(owner_id: UUID) -> Iterator[dict[str, Any]]:
    """Yield every review with its writes."""
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
            "writes": [write.to_json() for write in run.writes],
            "created_at": run.created_at,
            "finished_at": run.finished_at,
        }
