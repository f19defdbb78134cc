"""Diffs of the memories whose text an import would change. Read-only; the numbers of new, known and refused lines are
in the import's own report (memories.imports.report)."""

from collections.abc import Iterator, Sequence
from typing import Any

from memories.database.batches import finish
from memories.entry_rules import content_key
from memories.history.word_diff import word_diff
from memories.imports.contents import Entry
from memories.imports.files import Upload
from memories.imports.formats import read_upload
from memories.models import Memory
from memories.selectors import live_condition
from memories.viewers import Viewer

MAX_SHOWN = 50
_LOOKUP_BATCH = 500


def rewordings(viewer: Viewer, upload: Upload, format: str, book: str) -> list[dict[str, Any]]:
    """Return the first lines that would change a memory's text, with diffs, in file order. Raises InvalidRequest,
    TooLarge."""
    found: list[dict[str, Any]] = []
    entries = finish(read_upload(upload, format=format, book=book, with_conversations=False)).entries
    for line, memory in _with_memories(viewer, entries):
        words = line.fields.content or ""
        if content_key(words) != memory.content_key:
            found.append({"line": line.line, "pieces": word_diff(memory.content, words.strip())})
        if len(found) == MAX_SHOWN:
            break
    return found


def _with_memories(viewer: Viewer, lines: Sequence[Entry]) -> Iterator[tuple[Entry, Memory]]:
    """Yield the lines that name a live memory of their book by number, each with that memory."""
    numbered = [line for line in lines if line.number]
    for start in range(0, len(numbered), _LOOKUP_BATCH):
        batch = numbered[start : start + _LOOKUP_BATCH]
        rows = Memory.objects.filter(live_condition(), owner_id=viewer.owner.pk).select_related("book")
        by_number = {
            (row.book.name, row.number): row for row in rows.filter(number__in=[line.number for line in batch])
        }
        for line in batch:
            if memory := by_number.get((line.book, line.number or 0)):
                yield line, memory
