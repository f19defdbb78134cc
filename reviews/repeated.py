"""Asking a person about the same write only once. A write that repeats a waiting one of the same book joins it: the
repetition is counted, and its reason and evidence replace the earlier ones. A rejected write is not proposed again from
the same source while it can still be approved."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db.models import Q
from django.utils import timezone

from memories.entry_rules import content_key
from memories.evidence import KnownProposal, proposal_id
from memories.evidence.quotes import folded
from memories.models import Book
from reviews.models import ReviewRun
from reviews.writes import ReviewWrite, WriteState

MAX_RUNS = 200
MAX_WRITES = 2_000
"""How many earlier reviews and writes are compared, newest first."""
_WAITS = "It is already waiting for a decision."
_REJECTED = "It was rejected before. You can still approve it on the reviews page."
_Key = tuple[str, str, str]
_Earlier = tuple[ReviewRun, ReviewWrite]


def repeats_join(book: Book, session_id: UUID | None, writes: Sequence[ReviewWrite]) -> dict[int, KnownProposal]:
    """Let waiting writes join the earlier writes that they repeat. Returns what was joined by index.

    Called in a transaction that holds the book's lock. Locked runs are skipped, since the transaction that holds them
    may be waiting for the book."""
    keys = [write.key for write in writes]
    wanted = {_key(write): write for write in writes if write.waiting and keys.count(write.key) == 1}
    found = _earlier(book, session_id, wanted) if wanted else {}
    joined: dict[int, KnownProposal] = {}
    touched: dict[UUID, ReviewRun] = {}
    for key, (run, earlier) in found.items():
        write = wanted[key]
        joined[write.index] = KnownProposal(id=proposal_id(run.pk, earlier.index), rejected=not earlier.waiting)
        if earlier.waiting:
            earlier.repeat(write)
            touched[run.pk] = run
        write.join(_WAITS if earlier.waiting else _REJECTED)
    for run in touched.values():
        run.save(update_fields=["writes"])
    return joined


def _earlier(book: Book, session_id: UUID | None, wanted: Mapping[_Key, ReviewWrite]) -> dict[_Key, _Earlier]:
    """Return, by key, the earlier write that waits or, if none does, one that was rejected."""
    found: dict[_Key, _Earlier] = {}
    for run, write in _recent(book):
        key = _key(write)
        if key not in wanted or (key in found and found[key][1].waiting):
            continue
        same_quote = folded(write.evidence.quote) == folded(wanted[key].evidence.quote) != ""
        if write.waiting or run.session_id == session_id or same_quote:
            found[key] = run, write
    return found


def _recent(book: Book) -> Iterator[_Earlier]:
    since = timezone.now() - timedelta(days=settings.APPROVAL_DAYS)
    asked = Q(state=ReviewRun.State.AWAITING_APPROVAL) | Q(rejected_at__gt=since)
    rows = ReviewRun.objects.filter(asked, owner_id=book.owner_id, book_id=book.pk, proposals__gt=0)
    rows = rows.select_for_update(skip_locked=True, of=("self",)).order_by("-id")
    seen = 0
    for run in rows.only("writes", "session_id")[:MAX_RUNS]:
        for write in run.writes:
            if write.waiting or write.state == WriteState.REJECTED:
                yield run, write
        seen += len(run.writes)
        if seen >= MAX_WRITES:
            return


def _key(write: ReviewWrite) -> _Key:
    """Return what identifies repetitions of a write."""
    return write.action, write.memory_id or "", content_key(write.after or "")
