"""What consolidation adds to the health of a book and to an owner's export."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from gateway.agents.configuration import consolidation_settings
from gateway.agents.model_choice import BackgroundModels
from memories.api.serializers import artifact_json
from memories.health import WARNING, Facts
from memories.models import Artifact, Book
from memories.number_words import counted
from memories.portability import paged
from reviews.models import ConsolidationRun, Extraction
from reviews.selectors import newest_by_book


def consolidation_facts(books: Sequence[Book], now: datetime) -> dict[UUID, Facts]:
    """Return for each book the newest run, its progress in words while it is open, and why nothing runs if no upstream
    may be given the book."""
    models = BackgroundModels.now() if consolidation_settings().enabled else None
    runs = newest_by_book(books, ConsolidationRun.objects.all(), "-id")
    return {book.pk: _facts(runs.get(book.pk), models.obstacle(book.name) if models else "") for book in books}


def _facts(run: ConsolidationRun | None, obstacle: str) -> Facts:
    words = [f"It is not consolidated. {obstacle}" if obstacle else "", progress_words(run) if run else ""]
    figures = run and {
        "id": str(run.pk),
        "state": run.state,
        "phase": run.phase,
        "sessions_done": run.sessions_done,
        "sessions_total": run.sessions_total,
        "finished_at": run.finished_at,
    }
    return Facts(
        figures={"consolidation": figures, "consolidation_obstacle": obstacle or None},
        sentences=tuple((WARNING, said) for said in words if said),
    )


def obstacle_of(book: Book) -> str:
    """Return why a book is not consolidated although consolidation is on, as a sentence; "" if nothing hinders it."""
    return BackgroundModels.now(book.name).obstacle(book.name) if consolidation_settings().enabled else ""


def finished_text(run: ConsolidationRun) -> str:
    """Return what a finished run did, in a sentence or two."""
    read, wrote = run.sessions_done - run.sessions_failed, counted(len(run.written), "document")
    failed = f"{counted(run.sessions_failed, 'session')} could not be read." if run.sessions_failed else ""
    if run.written:
        said = f"Consolidation read {counted(read, 'session')} and wrote {wrote}."
    elif read:
        said = f"Consolidation read {counted(read, 'session')}; the documents stay as they are."
    else:
        said = "" if failed else "Nothing new was found."
    return f"{said} {failed}".strip()


def progress_words(run: ConsolidationRun) -> str:
    """Return one sentence about a run that is open or failed; "" for one that ended well."""
    if run.state == ConsolidationRun.State.FAILED:
        return f"The last consolidation failed: {(run.error or {}).get('message', 'nobody knows why')}"
    if run.state not in ConsolidationRun.OPEN:
        return ""
    paused = "paused" if run.state == ConsolidationRun.State.PAUSED else "running"
    done = f"{run.sessions_done} of {run.sessions_total} sessions read"
    writing = ", writing documents" if run.phase == ConsolidationRun.Phase.SYNTHESIS else ""
    return f"Consolidation is {paused}: {done}{writing}."


def export_consolidation(owner_id: UUID) -> Iterator[dict[str, Any]]:
    """Yield the documents, and what was noted of each session."""
    documents = Artifact.objects.filter(owner_id=owner_id, deleted_at=None).select_related("book")
    for artifact in paged(documents, "book_id", "path"):
        yield {"type": "artifact", "book": artifact.book.name, **artifact_json(artifact)}
    notes = Extraction.objects.filter(owner_id=owner_id, cleared_at=None).exclude(raw_memory="", synopsis="")
    for row in paged(notes.select_related("book"), "said_at", "id"):
        yield {
            "type": "extraction",
            "book": row.book.name,
            "session_id": str(row.session_id),
            "raw_memory": row.raw_memory,
            "synopsis": row.synopsis,
            "extracted_at": row.extracted_at,
        }
