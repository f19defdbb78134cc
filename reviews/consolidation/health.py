"""Consolidation's part of a book's health and of an owner's export."""

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
from memories.selectors import paged
from reviews.models import ConsolidationRun, Extraction
from reviews.selectors import newest_by_book


def consolidation_facts(books: Sequence[Book], now: datetime) -> dict[UUID, Facts]:
    """Return figures and sentences by book: the newest run, its progress while it is open, and why no upstream may be
    given the book."""
    models = BackgroundModels.now() if consolidation_settings().enabled else None
    runs = newest_by_book(books, ConsolidationRun.objects.all(), "-id")
    return {book.pk: _facts(runs.get(book.pk), models.obstacle(book.name) if models else "") for book in books}


def _facts(run: ConsolidationRun | None, obstacle: str) -> Facts:
    sentences = [f"This book is not consolidated. {obstacle}" if obstacle else "", progress_words(run) if run else ""]
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
        sentences=tuple((WARNING, sentence) for sentence in sentences if sentence),
    )


def finished_text(run: ConsolidationRun) -> str:
    """Return one or two sentences about what a finished run did."""
    read, wrote = run.sessions_done - run.sessions_failed, counted(len(run.written), "document")
    failed = f"{counted(run.sessions_failed, 'session')} could not be read." if run.sessions_failed else ""
    if run.written:
        text = f"Consolidation read {counted(read, 'session')} and wrote {wrote}."
    elif read:
        text = f"Consolidation read {counted(read, 'session')}; the documents stay as they are."
    else:
        text = "" if failed else "Nothing new was found."
    return f"{text} {failed}".strip()


def progress_words(run: ConsolidationRun) -> str:
    """Return a sentence about an open or failed run; "" for any other."""
    if run.state == ConsolidationRun.State.FAILED:
        return f"The last consolidation failed: {(run.error or {}).get('message', 'unknown error')}"
    if run.state not in ConsolidationRun.OPEN:
        return ""
    paused = "paused" if run.state == ConsolidationRun.State.PAUSED else "running"
    done = f"{run.sessions_done} of {run.sessions_total} sessions read"
    writing = ", writing documents" if run.phase == ConsolidationRun.Phase.SYNTHESIS else ""
    return f"Consolidation is {paused}: {done}{writing}."


def export_consolidation(owner_id: UUID) -> Iterator[dict[str, Any]]:
    """Yield the documents and the notes on each session."""
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
