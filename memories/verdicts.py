"""Verdicts of the scan that this process reached lately: who takes a lock for a write has the words scanned before.

They are kept by hash of the words and of the rules, not with the words, and until something is forgotten. Asking again,
or trying a refused text again and again, costs a hash."""

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import scanning
from memories.artifacts.cleaning import scan_document
from memories.database.access import in_read_thread
from memories.messaging.invalidation import register_cache
from memories.metadata import metadata_words
from memories.models import ScanRenewal
from scanning import Finding

INLINE_SCAN_CHARS = (
    500  # characters that are scanned where they are written: a thread of their own would cost more than the scan
)
_MOST_KEPT = 20_000
"""About 8 MB. An import is looked at before it is written: the verdicts of the preview hold for what follows."""
NO_METADATA: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ScanVerdict:
    """What the scan said: the first rule that blocks with its kind and reason, "" for a text that may be stored; else
    in `hold` the first rule that is not sure."""

    scan_hash: str
    rule: str
    kind: str
    reason: str
    hold: str = ""


_lock = threading.Lock()
_kept: "OrderedDict[tuple[str, bool], ScanVerdict]" = OrderedDict()


def verdict_of(content: str, keywords: Sequence[str], metadata: Mapping[str, str] = NO_METADATA) -> ScanVerdict:
    """Return the verdict of a memory's words, scanned at most once. Metadata is scanned by itself: where only it or
    only the rest changes, the other half is known."""
    words = _judged(content, keywords, document=False)
    if not metadata:
        return words
    beside = _judged("", metadata_words(metadata), document=False)
    worse = max((words, beside), key=lambda judged: (bool(judged.rule), bool(judged.hold)))
    return replace(worse, scan_hash=words_hash(content, keywords, metadata))


def words_hash(
    content: str,
    keywords: Sequence[str],
    metadata: Mapping[str, str] = NO_METADATA,
    *,
    rules: str = scanning.RULES_VERSION,
) -> str:
    """Return what the verdict of a memory's words is of."""
    # A keyword has no equals sign, so it is never taken for metadata.
    return scanning.scan_hash(content, (*keywords, *metadata_words(metadata)), rules=rules)


def verdict_of_document(content: str) -> ScanVerdict:
    """Return the verdict of a document, scanned at most once."""
    return _judged(content, (), document=True)


def older_rules() -> tuple[str, ...]:
    """Return the versions of the rules whose verdicts are being renewed. One query."""
    rows = ScanRenewal.objects.exclude(rules=scanning.RULES_VERSION)
    return tuple(rows.values_list("rules", flat=True).distinct())


def is_verdict_for(
    scan_hash: str,
    content: str,
    keywords: Sequence[str],
    older: Sequence[str],
    metadata: Mapping[str, str] = NO_METADATA,
) -> bool:
    """Return True if a stored verdict is of exactly these words, under the present rules or older ones."""
    return any(
        scan_hash == words_hash(content, keywords, metadata, rules=rules) for rules in (scanning.RULES_VERSION, *older)
    )


async def scan_ahead(content: str, keywords: Sequence[str] = (), metadata: Mapping[str, str] = NO_METADATA) -> None:
    """Scan a memory's words in a reading thread, so that the writing that follows finds the verdict. They are cleaned
    as they will be stored."""
    if len(content) > INLINE_SCAN_CHARS or metadata:
        await in_read_thread(verdict_of, content, tuple(keywords), metadata)


async def scan_document_ahead(content: str) -> None:
    """Scan a document, cleaned as it will be stored, in a reading thread."""
    if len(content) > INLINE_SCAN_CHARS:
        await in_read_thread(verdict_of_document, content)


def _judged(content: str, keywords: Sequence[str], *, document: bool) -> ScanVerdict:
    scan_hash = scanning.scan_hash(content, keywords)
    key = scan_hash, document
    with _lock:
        known = _kept.get(key)
        if known is not None:
            _kept.move_to_end(key)
            return known
    if document:
        judged = _verdict(scan_hash, scan_document(content), ())
    else:
        verdict = scanning.scan(content, keywords)
        judged = _verdict(scan_hash, verdict.findings, verdict.doubts)
    with _lock:
        _kept[key] = judged
        while len(_kept) > _MOST_KEPT:
            _kept.popitem(last=False)
    return judged


def _verdict(scan_hash: str, findings: Sequence[Finding], doubts: Sequence[Finding]) -> ScanVerdict:
    if findings:
        return ScanVerdict(scan_hash, findings[0].rule, findings[0].kind, findings[0].reason)
    if doubts:
        return ScanVerdict(scan_hash, "", doubts[0].kind, doubts[0].reason, hold=doubts[0].rule)
    return ScanVerdict(scan_hash, "", "", "")


def _clear() -> None:
    with _lock:
        _kept.clear()


register_cache(lambda _: _clear(), clear=_clear)
