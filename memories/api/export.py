"""Export of everything about an owner as JSON Lines. Apps of higher layers register exporters when Django starts. The
values of a line's `type` are public. Rows are read in pages, so that no database thread is occupied for long."""

from collections.abc import AsyncGenerator, Callable, Iterator
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import F
from django.http import StreamingHttpResponse

from memories.api.serializers import memory_json, revision_json
from memories.database.access import in_patient_read_thread
from memories.json_output import LongTextEncoder, json_line
from memories.models import Memory, Revision
from memories.selectors import PAGE, paged

FORMAT = "daybook-export"
CONTENT_TYPE = "application/x-ndjson"
LONG = 1_000_000  # characters after which a chunk is sent: lines may contain files

Exporter = Callable[[UUID], Iterator[dict[str, Any]]]
_exporters: dict[str, Exporter] = {}


def register_exporter(name: str, exporter: Exporter) -> None:
    """Register what an app of a higher layer adds to every export; called from AppConfig.ready()."""
    _exporters[name] = exporter


def export_lines(owner_id: UUID, *, book: str | None = None) -> Iterator[str]:
    """Yield a header, memories, revisions and, unless it covers a single book, the rows of the exporters."""
    yield _line({"type": "header", "format": FORMAT, "version": 1, "book": book})
    memories = Memory.objects.filter(owner_id=owner_id).prefetch_related("book")  # many memories share few books
    revisions = Revision.objects.filter(owner_id=owner_id).select_related("change_set")
    if book is not None:
        memories, revisions = memories.filter(book__name=book), revisions.filter(memory__book__name=book)
    for memory in paged(memories, "number"):
        yield _line({"type": "memory", **memory_json(memory), "deleted_at": memory.gone_at})
    for revision in paged(revisions.annotate(number=F("memory__number")), "id"):
        number = revision.number  # type: ignore[attr-defined]
        yield _line({"type": "revision", "memory_id": str(number), **revision_json(revision)})
    if book is None:
        for exporter in _exporters.values():
            for row in exporter(owner_id):
                yield _line(row)


def in_chunks(lines: Iterator[str]) -> Iterator[str]:
    """Join the lines of an export into chunks of PAGE lines, or fewer long ones."""
    chunk: list[str] = []
    size = 0
    for line in lines:
        chunk.append(line)
        size += len(line)
        if len(chunk) == PAGE or size >= LONG:
            yield "".join(chunk)
            chunk, size = [], 0
    if chunk:
        yield "".join(chunk)


def download(lines: Iterator[str], name: str, content_type: str = CONTENT_TYPE) -> StreamingHttpResponse:
    """Return the lines as a file download, read in pages while they are sent."""
    chunks = in_chunks(lines)

    async def stream() -> AsyncGenerator[bytes]:
        while (chunk := await in_patient_read_thread(next, chunks, "")) != "":
            yield chunk.encode()

    disposition = f'attachment; filename="{name}"'
    return StreamingHttpResponse(stream(), content_type=content_type, headers={"Content-Disposition": disposition})


def _line(data: dict[str, Any]) -> str:
    return json_line(data, default=_plain, cls=LongTextEncoder) + "\n"


def _plain(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)
