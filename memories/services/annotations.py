"""Updates of bookkeeping columns, which do not count as changes of a memory: no revision is stored."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from memories.models import Artifact, Memory
from memories.services.books import books_lock, books_of_owner_lock, generations_raise
from memories.verdicts import ScanVerdict

_CLAIMED = "claimed at "
_CLAIM_LIFETIME = timedelta(hours=1)


def _claim(at: datetime) -> str:
    return f"{_CLAIMED}{int(at.timestamp())}"


def usage_add(owner_id: UUID, counts: Mapping[int, int], used_at: datetime) -> None:
    """Increase the usage counters of an owner's memories, by number, in the caller's transaction. The generation stays
    the same, since injected text does not depend on the counters."""
    books_of_owner_lock(owner_id)
    for number, count in sorted(counts.items()):
        Memory.objects.filter(owner_id=owner_id, number=number).update(
            usage_count=F("usage_count") + count, last_used_at=used_at
        )


def keywords_wanted() -> Q:
    """Return the condition for memories whose keywords were not requested for their content, nor claimed recently."""
    now = timezone.now()
    lasting = (_claim(now - _CLAIM_LIFETIME), _claim(now + _CLAIM_LIFETIME))  # not one of a clock that was ahead
    claimed = Q(keywords_for__startswith=_CLAIMED, keywords_for__range=lasting)
    return ~Q(keywords_for=F("content_key")) & ~claimed


def keywords_claim(memory: Memory) -> bool:
    """Claim the generation of keywords for a memory's content, for an hour in case the worker is killed. Return False
    if another worker was first."""
    rows = Memory.objects.filter(keywords_wanted(), pk=memory.pk, version=memory.version)
    return rows.update(keywords_for=_claim(timezone.now())) == 1


def keywords_requested(memories: Sequence[Memory]) -> None:
    """Record that keywords were requested for these contents of claimed memories, so that this is not repeated. This
    ends the claims, also of memories edited meanwhile, whose new content has another key and is requested next."""
    for memory in memories:
        Memory.objects.filter(pk=memory.pk).update(keywords_for=memory.content_key)


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
