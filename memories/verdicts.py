"""A cache of this process's recent scan verdicts. It lets texts be scanned before a write takes a lock.

Verdicts are cached by a hash of the text and the rules, without the text, until something is forgotten. Scanning the
same text again, such as a refused one, only costs the hash."""

import math
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import scanning
from memories.artifacts.cleaning import scan_document
from memories.database.access import in_read_thread
from memories.lru_cache import LRUCache
from memories.messaging.invalidation import register_cache, watch
from memories.metadata import metadata_words
from memories.models import ScanRenewal
from scanning import Finding

INLINE_SCAN_CHARS = 500  # up to here a text is scanned under the lock: a thread hop would cost more than the scan
_MAX_CACHED = 20_000
"""About 8 MB. Large enough that an import can use the verdicts of its preview."""
NO_METADATA: Mapping[str, str] = MappingProxyType({})
_PLAIN_WORDS = re.compile(r"[A-Za-z]{1,20}(?:[ _-][A-Za-z]{1,20})?")


@dataclass(frozen=True, slots=True)
class ScanVerdict:
    """The scan's verdict: the first blocking rule with its kind and reason, or "" for a text that may be stored. `hold`
    is then the first rule that is in doubt, if any."""

    scan_hash: str
    rule: str
    kind: str
    reason: str
    hold: str = ""


_lock = threading.Lock()
_cache: LRUCache[tuple[str, bool], ScanVerdict] = LRUCache()


def verdict_of(
    content: str, keywords: Sequence[str], metadata: Mapping[str, str] = NO_METADATA, category: str = ""
) -> ScanVerdict:
    """Return the verdict of a memory, scanned at most once. Category and metadata are scanned separately, so that the
    cached verdict of the other part can be used if only one of them changes."""
    main = _scan_cached(content, keywords, document=False)
    others = _other_words(metadata, category)
    if not others:
        return main
    extra = _scan_cached("", others, document=False)
    worse = max((main, extra), key=lambda verdict: (bool(verdict.rule), bool(verdict.hold)))
    return replace(worse, scan_hash=words_hash(content, keywords, metadata, category))


def words_hash(
    content: str,
    keywords: Sequence[str],
    metadata: Mapping[str, str] = NO_METADATA,
    category: str = "",
    *,
    rules: str = scanning.RULES_VERSION,
) -> str:
    """Return the hash that identifies a memory's scanned texts under a version of the rules."""
    # A keyword contains no equals sign, so it cannot be mistaken for metadata. A category may have the words of a
    # keyword, and then has its verdict.
    return scanning.scan_hash(content, (*keywords, *_other_words(metadata, category)), rules=rules)


def _other_words(metadata: Mapping[str, str], category: str) -> tuple[str, ...]:
    """Return what is scanned besides content and keywords. One or two plain words as a category can be no order."""
    scanned = (category,) if category and not _PLAIN_WORDS.fullmatch(category) else ()
    return (*scanned, *metadata_words(metadata))


def verdict_of_document(content: str) -> ScanVerdict:
    """Return the verdict of a document, scanned at most once."""
    return _scan_cached(content, (), document=True)


def older_rules() -> tuple[str, ...]:
    """Return the older versions of the rules whose verdicts have not all been renewed yet. One query."""
    rows = ScanRenewal.objects.exclude(rules=scanning.RULES_VERSION)
    return tuple(rows.values_list("rules", flat=True).distinct())


def is_verdict_for(scan_hash: str, older: Sequence[str], *words: Any) -> bool:
    """Return True if a verdict is of exactly these arguments of `words_hash`, by the current rules or `older` ones."""
    return any(scan_hash == words_hash(*words, rules=rules) for rules in (scanning.RULES_VERSION, *older))


async def scan_ahead(content: str, keywords: Sequence[str] = (), metadata: Mapping[str, str] = NO_METADATA) -> None:
    """Scan a memory in a read thread, so that the write that follows finds the verdict in the cache. Expects cleaned
    values, as they will be stored."""
    if len(content) > INLINE_SCAN_CHARS or metadata:
        await in_read_thread(verdict_of, content, tuple(keywords), metadata)


async def scan_document_ahead(content: str) -> None:
    """Scan a cleaned document in a read thread."""
    if len(content) > INLINE_SCAN_CHARS:
        await in_read_thread(verdict_of_document, content)


def _scan_cached(content: str, keywords: Sequence[str], *, document: bool) -> ScanVerdict:
    scan_hash = scanning.scan_hash(content, keywords)
    key = scan_hash, document
    with _lock:
        if known := _cache.touch(key):
            return known
    watch()  # the scan caches words
    if document:
        judged = _verdict(scan_hash, scan_document(content), ())
    else:
        verdict = scanning.scan(content, keywords)
        judged = _verdict(scan_hash, verdict.findings, verdict.doubts)
    with _lock:
        _cache.put(key, judged)
        _cache.trim(math.inf, _MAX_CACHED)
    return judged


def _verdict(scan_hash: str, findings: Sequence[Finding], doubts: Sequence[Finding]) -> ScanVerdict:
    if findings:
        return ScanVerdict(scan_hash, findings[0].rule, findings[0].kind, findings[0].reason)
    if doubts:
        return ScanVerdict(scan_hash, "", doubts[0].kind, doubts[0].reason, hold=doubts[0].rule)
    return ScanVerdict(scan_hash, "", "", "")


def _clear() -> None:
    with _lock:
        _cache.clear()


register_cache(lambda _: _clear(), clear=_clear)
