"""Counters of this process. The plain ones only grow and are exposed by gateway.metrics. Refusals by the scan are also
counted per day, until memories.services stores them after the refusing transaction."""

from collections import Counter
from datetime import date
from threading import Lock

from django.utils import timezone

recall_lanes: Counter[tuple[str, str]] = Counter()  # (lane, outcome)
scan_blocks: Counter[str] = Counter()  # rule

Refusal = tuple[date, str, str]  # day (UTC), rule, kind

_unstored: Counter[Refusal] = Counter()
_lock = Lock()


def count_refusal(rule: str, kind: str) -> None:
    """Count a write that the scan refused. No query, since the transaction is about to be rolled back."""
    scan_blocks[rule] += 1
    with _lock:
        _unstored[timezone.now().date(), rule, kind] += 1


def unstored_take() -> Counter[Refusal]:
    """Remove and return the refusals that are not stored yet; the caller stores them."""
    with _lock:
        taken = _unstored.copy()
        _unstored.clear()
    return taken


def unstored_give_back(refusals: Counter[Refusal]) -> None:
    """Add back refusals that could not be stored; they are stored with the next one."""
    with _lock:
        _unstored.update(refusals)
