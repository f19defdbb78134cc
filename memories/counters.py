"""What this process counts of memory. Plain counters that only grow, which gateway.metrics shows; and beside them the
scan's refusals that no row knows yet: memories.services takes them when the refusing transaction is over."""

from collections import Counter
from datetime import date
from threading import Lock

from django.utils import timezone

recall_lanes: Counter[tuple[str, str]] = Counter()  # (lane, outcome)
scan_blocks: Counter[str] = Counter()  # rule

Refusal = tuple[date, str, str]
"""Day (UTC), rule, kind."""

_unstored: Counter[Refusal] = Counter()
_lock = Lock()


def scan_refused(rule: str, kind: str) -> None:
    """The scan refused a write. Touches no database: the transaction around it is about to be rolled back."""
    scan_blocks[rule] += 1
    with _lock:
        _unstored[timezone.now().date(), rule, kind] += 1


def unstored_take() -> Counter[Refusal]:
    """The refusals that are not stored yet; they are the caller's now."""
    with _lock:
        taken = _unstored.copy()
        _unstored.clear()
    return taken


def unstored_give_back(refusals: Counter[Refusal]) -> None:
    """They could not be stored; the next refusal takes them along."""
    with _lock:
        _unstored.update(refusals)
