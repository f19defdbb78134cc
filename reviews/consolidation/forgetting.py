"""What forgetting everything erases of a consolidation: documents with their history, notes, runs. Open runs find the
raised epoch and end by themselves."""

from collections.abc import Iterator, Sequence
from uuid import UUID

from django.db.models import OuterRef, Subquery
from django.utils import timezone

from gateway.models import Session
from memories.models import Artifact, ArtifactRevision, ArtifactUsage, Book
from memories.services.erasing import Batch, ErasureStep, deleting, updating
from reviews.consolidation.clear import EMPTY
from reviews.consolidation.selection import sessions_in
from reviews.models import ClearedReview, ConsolidationRun, ConsolidationState, Extraction


def pass_over_extractions(owner_id: UUID, books: Sequence[UUID]) -> Iterator[ErasureStep]:
    """Yield the steps that count every session of the books as dealt with up to its present end; nothing before that is
    read again."""
    for book in Book.objects.filter(owner_id=owner_id, pk__in=books):
        yield ErasureStep("", _marking(book))
        end = Subquery(Session.objects.filter(pk=OuterRef("session_id")).values("message_seq")[:1])
        rows = Extraction.objects.filter(owner_id=owner_id, book=book, session__in=sessions_in(book))
        marks = {"state": Extraction.State.PASSED, "through_seq": end, "floor_seq": end}
        yield ErasureStep("", updating(rows, **marks, cleared_at=timezone.now(), cleared_by=None, before_clear=None))


def erase_consolidation(owner_id: UUID, books: Sequence[UUID]) -> Iterator[ErasureStep]:
    """Yield the steps that empty the notes, and delete documents, runs and what was kept of clears."""
    yield ErasureStep("", deleting(ArtifactRevision.objects.filter(owner_id=owner_id, artifact__book__in=books)))
    yield ErasureStep("", deleting(ArtifactUsage.objects.filter(owner_id=owner_id, artifact__book__in=books)))
    yield ErasureStep("artifacts", deleting(Artifact.objects.filter(owner_id=owner_id, book__in=books)))
    notes = Extraction.objects.filter(owner_id=owner_id, book__in=books)
    yield ErasureStep("extractions", updating(notes.exclude(raw_memory="", synopsis=""), **EMPTY))
    yield ErasureStep("", updating(notes.exclude(usage={}, error=None, before_clear=None, cleared_by=None), **EMPTY))
    yield ErasureStep("", deleting(ClearedReview.objects.filter(owner_id=owner_id, review__book__in=books)))
    yield ErasureStep("", deleting(ConsolidationState.objects.filter(owner_id=owner_id, book__in=books)))
    over = ConsolidationRun.objects.filter(owner_id=owner_id, book__in=books)
    yield ErasureStep("", deleting(over.exclude(state__in=ConsolidationRun.OPEN)))


def _marking(book: Book) -> Batch:
    """Give each session that has none an extraction without words, so that it is not read later."""
    now = timezone.now()

    def batch(most: int) -> int:
        new = sessions_in(book).filter(extraction=None).order_by("pk")[:most]
        made = [
            Extraction(
                owner_id=book.owner_id,
                book=book,
                session=session,
                cleared_at=now,
                said_at=session.last_active_at,
                through_seq=session.message_seq,
                floor_seq=session.message_seq,
            )
            for session in new
        ]
        Extraction.objects.bulk_create(made, ignore_conflicts=True)
        return len(made)

    return batch
