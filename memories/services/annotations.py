"""Notes beside a memory that do not change it: no revision."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.db.models import F

from memories.models import Artifact, Memory
from memories.services.books import books_lock, generations_raise
from memories.verdicts import ScanVerdict


def usage_add(owner_id: UUID, counts: Mapping[int, int], used_at: datetime) -> None:
    """Raise the usage counters of an owner's memories, by number. No revision and no new generation: what may be
    injected, and in which bytes, does not depend on them."""
    for number, count in sorted(counts.items()):
        Memory.objects.filter(owner_id=owner_id, number=number).update(
            usage_count=F("usage_count") + count, last_used_at=used_at
        )


def keywords_claim(memory: Memory) -> bool:
    """Note that search words are being generated for this content. Return False if another worker was first."""
    mine = Memory.objects.filter(pk=memory.pk, version=memory.version).exclude(keywords_for=memory.content_key)
    return mine.update(keywords_for=memory.content_key) == 1


def keywords_release(memories: Sequence[Memory]) -> None:
    """Release claims after a request that failed in a way that may pass."""
    Memory.objects.filter(pk__in=[memory.pk for memory in memories], keywords=[]).update(keywords_for="")


@transaction.atomic
def verdicts_store(renewed: Sequence[tuple[Memory | Artifact, ScanVerdict]]) -> None:
    """Store verdicts of rows that nobody changed meanwhile. Where one is different the book's generation is raised."""
    if not renewed:
        return
    changed = {row.book_id for row, verdict in renewed if row.scan_rule != verdict.rule or row.scan_rule}
    books_lock(changed)  # they come first, as everywhere
    for row, verdict in renewed:
        reason = {"scan_reason": verdict.reason[:200]} if isinstance(row, Memory) else {}
        rows = type(row)._default_manager.filter(pk=row.pk, version=row.version)
        rows.update(scan_hash=verdict.scan_hash, scan_rule=verdict.rule, **reason)
    generations_raise(changed)
