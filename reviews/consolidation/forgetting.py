"""Erasing consolidation when books are forgotten: documents with their history, notes and runs. Open runs notice the
raised epoch and end by themselves."""

from collections.abc import Iterator, Sequence
from uuid import UUID

from django.db.models import OuterRef, Subquery
from django.utils import timezone

from gateway.models import Session
from memories.database.batches import Batch
from memories.models import Artifact, ArtifactRevision, ArtifactUsage, Book
from memories.services.erasing import ErasureStep, deleting, updating
from reviews.consolidation.clear import ERASED
from reviews.consolidation.selection import sessions_in
from reviews.models import ClearedReview, ConsolidationRun, ConsolidationState, Extraction


def mark_sessions_read(owner_id: UUID, books: Sequence[UUID]) -> Iterator[ErasureStep]:
    """Yield the steps that mark every session of the books as read up to its current end, so that no message before it
    is read again."""
    for book in Book.objects.filter(owner_id=owner_id, pk__in=books):
        yield ErasureStep("", _marking_new(book))
        end = Subquery(Session.objects.filter(pk=OuterRef("session_id")).values("message_seq")[:1])
        rows = Extraction.objects.filter(owner_id=owner_id, book=book, session__in=sessions_in(book))
        marks = {"state": Extraction.State.PASSED, "through_seq": end, "floor_seq": end}
        yield ErasureStep("", updating(rows, **marks, cleared_at=timezone.now(), cleared_by=None, before_clear=None))


def erase_consolidation(owner_id: UUID, books: Sequence[UUID]) -> Iterator[ErasureStep]:
    """Yield the steps that empty the notes and delete documents, ended runs and the data for undoing clears."""
    yield ErasureStep("", deleting(ArtifactRevision.objects.filter(owner_id=owner_id, artifact__book__in=books)))
    yield ErasureStep("", deleting(ArtifactUsage.objects.filter(owner_id=owner_id, artifact__book__in=books)))
    yield ErasureStep("artifacts", deleting(Artifact.objects.filter(owner_id=owner_id, book__in=books)))
    notes = Extraction.objects.filter(owner_id=owner_id, book__in=books)
    yield ErasureStep("extractions", updating(notes.exclude(raw_memory="", synopsis=""), **ERASED))
    yield ErasureStep("", updating(notes.exclude(usage={}, error=None, before_clear=None, cleared_by=None), **ERASED))
    yield ErasureStep("", deleting(ClearedReview.objects.filter(owner_id=owner_id, review__book__in=books)))
    yield ErasureStep("", deleting(ConsolidationState.objects.filter(owner_id=owner_id, book__in=books)))
    runs = ConsolidationRun.objects.filter(owner_id=owner_id, book__in=books)
    yield ErasureStep("", deleting(runs.exclude(state__in=ConsolidationRun.OPEN)))


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
