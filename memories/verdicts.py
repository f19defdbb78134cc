"""Verdicts of the scan that this process reached lately: who takes a lock for a write has the words scanned before.

They are kept by hash of the words and of the rules, not with the words, and until something is forgotten. Asking again,
or trying a refused text again and again, costs a hash."""

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import scanning
from memories.database import in_read_thread
from memories.documents import scan_document
from memories.invalidation import register_cache
from memories.models import ScanRenewal
from scanning import Finding

SHORT = 500
"""Characters that are scanned where they are written: a thread of their own would cost more than the scan."""
_MOST_KEPT = 1_000


@dataclass(frozen=True, slots=True)
class Judged:
    """What the scan said: the first rule that matched with its kind and reason, "" for a text that may be stored."""

    scan_hash: str
    rule: str
    kind: str
    reason: str


_lock = threading.Lock()
_kept: "OrderedDict[tuple[str, bool], Judged]" = OrderedDict()


def verdict_of(content: str, keywords: Sequence[str]) -> Judged:
    """Return the verdict of a memory's words, scanned at most once."""
    return _judged(content, keywords, document=False)


def verdict_of_document(content: str) -> Judged:
    """Return the verdict of a document, scanned at most once."""
    return _judged(content, (), document=True)


def older_rules() -> tuple[str, ...]:
    """Versions of the rules whose verdicts are being renewed. One query."""
    rows = ScanRenewal.objects.exclude(rules=scanning.RULES_VERSION)
    return tuple(rows.values_list("rules", flat=True).distinct())


def is_of_words(scan_hash: str, content: str, keywords: Sequence[str], older: Sequence[str]) -> bool:
    """Return True if a stored verdict is of exactly these words, under the present rules or older ones."""
    return any(
        scan_hash == scanning.scan_hash(content, keywords, rules=rules) for rules in (scanning.RULES_VERSION, *older)
    )


async def scan_ahead(content: str, keywords: Sequence[str] = (), *, document: bool = False) -> None:
    """Scan words in a reading thread, so that the writing that follows finds the verdict. `content` and `keywords` are
    cleaned as they will be stored."""
    if len(content) > SHORT:
        await in_read_thread(_judged, content, tuple(keywords), document=document)


def _judged(content: str, keywords: Sequence[str], *, document: bool) -> Judged:
    scan_hash = scanning.scan_hash(content, keywords)
    key = scan_hash, document
    with _lock:
        known = _kept.get(key)
        if known is not None:
            _kept.move_to_end(key)
            return known
    finding = _first(content, keywords, document=document)
    judged = Judged(scan_hash, finding.rule, finding.kind, finding.reason) if finding else Judged(scan_hash, "", "", "")
    with _lock:
        _kept[key] = judged
        while len(_kept) > _MOST_KEPT:
            _kept.popitem(last=False)
    return judged


def _first(content: str, keywords: Sequence[str], *, document: bool) -> Finding | None:
    findings = scan_document(content) if document else scanning.scan(content, keywords).findings
    return findings[0] if findings else None


def _clear() -> None:
    with _lock:
        _kept.clear()


register_cache(lambda _: _clear(), clear=_clear)
