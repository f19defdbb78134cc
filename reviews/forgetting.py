"""Forgetting: erasing reviews, notes, documents and consolidation runs when a session or a book is forgotten or a clear
can no longer be undone; and exporting reviews with an owner's data. Open consolidation runs notice the raised epoch and
end by themselves."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

from django.db.models import F, OuterRef, Subquery, TextField
from django.db.models.functions import Cast
from django.utils import timezone

from gateway.models import Session
from memories.database.batches import Batch
from memories.models import Artifact, ArtifactRevision, ArtifactUsage, Book
from memories.selectors import paged
from memories.services import books_of_owner_lock
from memories.services.erasing import ErasureStep, deleting, each_page, updating
from reviews.consolidation.extraction import record_change
from reviews.consolidation.selection import sessions_in
from reviews.ending import reviews_cancel
from reviews.models import ClearedReview, ConsolidationRun, ConsolidationState, Extraction, ReviewRun

_ERASED: dict[str, Any] = {"rejected_at": None, "change_set": None, "frozen_hash": ""}
_ERASED_NOTES: dict[str, Any] = {
    "raw_memory": "",
    "synopsis": "",
    "usage": {},
    "error": None,
    "state": Extraction.State.PASSED,
    "floor_seq": F("through_seq"),
    "before_clear": None,
    "cleared_by": None,
}
"""The fields of an extraction without texts, of a session that is marked as read."""


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
        _forget_notes(owner_id, session_id)


def _forget_quotes(run: ReviewRun, sessions: Sequence[UUID]) -> None:
    """Erase quotes from sessions in the writes of a review, and all quotes in one of the sessions' own reviews."""
    for write in run.writes:
        if run.session_id in sessions or write.evidence.session_id in sessions:
            write.evidence = write.evidence.without_words()
    run.save(update_fields=["writes"])


def _forget_notes(owner_id: UUID, session_id: UUID) -> None:
    """Erase the notes on a session that was deleted or is forgotten, and have the documents rewritten without them."""
    ClearedReview.objects.filter(owner_id=owner_id, review__session=session_id).delete()
    row = Extraction.objects.filter(owner_id=owner_id, session_id=session_id).first()
    if row is None:
        return
    had_notes = bool(row.raw_memory or row.synopsis)
    Extraction.objects.filter(pk=row.pk).update(**_ERASED_NOTES)
    if had_notes and row.cleared_at is None:
        record_change(row.owner_id, row.book_id, forgotten=True)


def purge_cleared(before: datetime) -> int:
    """Erase the notes and delete the proposals of clears that can no longer be undone. Returns the number of notes."""
    ClearedReview.objects.filter(cleared_at__lt=before).delete()
    return Extraction.objects.filter(cleared_at__lt=before).exclude(raw_memory="", synopsis="").update(**_ERASED_NOTES)


def mark_sessions_read(owner_id: UUID, book_ids: Sequence[UUID]) -> Iterator[ErasureStep]:
    """Yield the steps that mark all conversations of the books as read and reviewed up to their current end, so that no
    message before it is read again."""
    books = list(Book.objects.filter(owner_id=owner_id, pk__in=book_ids))
    for book in books:
        yield ErasureStep("", _marking_new(book))
        end = Subquery(Session.objects.filter(pk=OuterRef("session_id")).values("message_seq")[:1])
        rows = Extraction.objects.filter(owner_id=owner_id, session__in=sessions_in(book))
        marks = {"state": Extraction.State.PASSED, "through_seq": end, "floor_seq": end, "before_clear": None}
        # Notes of another book, which the session's agent had before, stay.
        yield ErasureStep("", updating(rows.exclude(book=book), **marks))
        yield ErasureStep("", updating(rows.filter(book=book), **marks, cleared_at=timezone.now(), cleared_by=None))
    sessions = Session.objects.filter(owner_id=owner_id, agent__book__in=[book.name for book in books])
    yield ErasureStep("", updating(sessions, reviewed_through=F("message_seq"), turns_since_memory_review=0))


def erase(owner_id: UUID, books: Sequence[UUID]) -> Iterator[ErasureStep]:
    """Yield the steps that empty notes and reviews, cancel open reviews, and delete documents, ended consolidation runs
    and the data for undoing clears. The rows of reviews are kept as a record of usage."""
    yield ErasureStep("", deleting(ArtifactRevision.objects.filter(owner_id=owner_id, artifact__book__in=books)))
    yield ErasureStep("", deleting(ArtifactUsage.objects.filter(owner_id=owner_id, artifact__book__in=books)))
    yield ErasureStep("artifacts", deleting(Artifact.objects.filter(owner_id=owner_id, book__in=books)))
    notes = Extraction.objects.filter(owner_id=owner_id, book__in=books)
    unerased = notes.exclude(usage={}, error=None, before_clear=None, cleared_by=None)
    yield ErasureStep("extractions", updating(notes.exclude(raw_memory="", synopsis=""), **_ERASED_NOTES))
    yield ErasureStep("", updating(unerased, **_ERASED_NOTES))
    yield ErasureStep("", deleting(ClearedReview.objects.filter(owner_id=owner_id, review__book__in=books)))
    yield ErasureStep("", deleting(ConsolidationState.objects.filter(owner_id=owner_id, book__in=books)))
    runs = ConsolidationRun.objects.filter(owner_id=owner_id, book__in=books)
    yield ErasureStep("", deleting(runs.exclude(state__in=ConsolidationRun.OPEN)))
    reviews = ReviewRun.objects.filter(owner_id=owner_id, book_id__in=books, book_epoch__lt=F("book__epoch"))
    cancel = partial(reviews_cancel, reason="Everything was forgotten.", **_ERASED)
    yield ErasureStep("reviews", updating(reviews.exclude(writes=[]), writes=[], **_ERASED))
    yield ErasureStep("", each_page(reviews.filter(state__in=ReviewRun.UNDECIDED), cancel))
    yield ErasureStep("", updating(reviews.exclude(change_set=None, frozen_hash="", rejected_at=None), **_ERASED))


def _marking_new(book: Book) -> Batch:
    """Return the work that gives each session without an extraction an empty one, so that it is not read later."""
    now = timezone.now()

    def batch(size: int) -> int:
        sessions = sessions_in(book).filter(extraction=None).order_by("pk")[:size]
        extractions = [
            Extraction(
                owner_id=book.owner_id,
                book=book,
                session=session,
                cleared_at=now,
                said_at=session.last_active_at,
                through_seq=session.message_seq,
                floor_seq=session.message_seq,
            )
            for session in sessions
        ]
        Extraction.objects.bulk_create(extractions, ignore_conflicts=True)
        return len(extractions)

    return batch


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
