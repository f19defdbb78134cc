"""Updates of bookkeeping columns, which do not count as changes of a memory: no revision is stored."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.db.models import F

from memories.models import Artifact, Memory
from memories.services.books import books_lock, books_of_owner_lock, generations_raise
from memories.verdicts import ScanVerdict


def usage_add(owner_id: UUID, counts: Mapping[int, int], used_at: datetime) -> None:
    """Increase the usage counters of an owner's memories, by number, in the caller's transaction. The generation stays
    the same, since injected text does not depend on the counters."""
    books_of_owner_lock(owner_id)
    for number, count in sorted(counts.items()):
        Memory.objects.filter(owner_id=owner_id, number=number).update(
            usage_count=F("usage_count") + count, last_used_at=used_at
        )


def keywords_claim(memory: Memory) -> bool:
    """Claim the generation of keywords for a memory's content. Return False if another worker was first."""
    unclaimed = Memory.objects.filter(pk=memory.pk, version=memory.version).exclude(keywords_for=memory.content_key)
    return unclaimed.update(keywords_for=memory.content_key) == 1


def keywords_release(memories: Sequence[Memory]) -> None:
    """Release claims after a temporary failure."""
    Memory.objects.filter(pk__in=[memory.pk for memory in memories], keywords=[]).update(keywords_for="")


@transaction.atomic
def verdicts_store(renewed: Sequence[tuple[Memory | Artifact, ScanVerdict]]) -> None:
    """Store renewed verdicts of unchanged rows. Raise the generation of books whose verdicts differ."""
    if not renewed:
        return
    books_lock({row.book_id for row, _ in renewed})
    for row, verdict in renewed:
        reason = {"scan_reason": verdict.reason[:200]} if isinstance(row, Memory) else {}
        rows = type(row)._default_manager.filter(pk=row.pk, version=row.version)
        rows.update(scan_hash=verdict.scan_hash, scan_rule=verdict.rule, **reason)
    generations_raise({row.book_id for row, verdict in renewed if row.scan_rule != verdict.rule or row.scan_rule})
