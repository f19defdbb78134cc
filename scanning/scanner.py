"""The scan: which views are looked at by which rules, and how findings become a verdict or a redaction.
Pure functions without database or network; the provider rules are loaded on first use (`warm` does it earlier).
A text costs a fraction of a millisecond; all work is linear in its length, which is cut at SCAN_LIMIT."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence

from scanning import commands, markup
from scanning.decoding import decoded_views
from scanning.hidden import hidden_findings
from scanning.judging import KnownLines, judged_orders
from scanning.patterns import pattern_findings
from scanning.rejoining import joined_view, rejoined_view, unscrambled_view
from scanning.rules_version import rules_version
from scanning.secret_rules import spoken_findings, written_findings
from scanning.verdict import Finding, Redaction, Verdict
from scanning.views import View, cleaned_view, folded_view, labels_view, leet_views, lookalike_view, raw_view

SCAN_LIMIT = 32_000
"""Characters of a content that are scanned; what is longer must be refused by the caller."""

_PATTERN_RULES = (*markup.RULES, *commands.RULES)

RULES_VERSION: str = rules_version()


def scan(content: str, keywords: Sequence[str] = ()) -> Verdict:
    """Judge a text that is to be stored or injected; never raises on any text.

    Content and keywords are scanned joined by line breaks, each of the two cut at SCAN_LIMIT characters,
    so that a long content cannot push the keywords out of sight.
    """
    text = "\n".join((content[:SCAN_LIMIT], *keywords))[: 2 * SCAN_LIMIT]
    found: dict[tuple[str, int, int], Finding] = {}
    for finding in _findings(text):
        place = finding.rule, finding.start, finding.end
        if finding.certain or place not in found:
            found[place] = finding
    ordered = sorted(found.values(), key=lambda f: (f.start, f.end, f.rule))
    return Verdict(
        findings=tuple(finding for finding in ordered if finding.certain),
        doubts=tuple(finding for finding in ordered if not finding.certain),
    )


def scan_hash(content: str, keywords: Sequence[str], *, rules: str = RULES_VERSION) -> str:
    """SHA-256 in hex over the rules' version, the content and the keywords; equal means the verdict still holds."""
    digest = hashlib.sha256()
    for part in (rules, content, *keywords):
        encoded = part.encode("utf-8", "surrogatepass")
        digest.update(len(encoded).to_bytes(8, "big") + encoded)
    return digest.hexdigest()


def _findings(text: str) -> Iterator[Finding]:
    raw, known = raw_view(text), KnownLines()
    yield from hidden_findings(text)
    yield from _readable_findings(raw, known)
    for view in decoded_views(raw):
        yield from _readable_findings(view, known)


def _readable_findings(view: View, known: KnownLines) -> Iterator[Finding]:
    """Findings in a text and its disguises: folded, look-alikes, joined letters, digits for letters."""
    yield from written_findings(view)
    if clean := cleaned_view(view):
        yield from written_findings(clean)
    plain = folded_view(view)
    yield from _plain_findings(plain, view.text, known, is_disguise=view.decoded)
    for disguise in _disguises(plain):
        yield from _plain_findings(disguise, view.text, known, is_disguise=True)


def _disguises(plain: View) -> Iterator[View]:
    for undo in (lookalike_view, joined_view, rejoined_view, unscrambled_view, labels_view):
        if view := undo(plain):
            yield view
    yield from leet_views(plain)


def _plain_findings(view: View, original: str, known: KnownLines, *, is_disguise: bool) -> Iterator[Finding]:
    yield from pattern_findings(view, _PATTERN_RULES)
    yield from judged_orders(view, is_disguise=is_disguise, known=known)
    yield from spoken_findings(view, original)


_MOST_PASSES = 8
_REDACTED = re.compile(r"\[redacted: [a-z_]{2,20}\]")


def redact(text: str) -> Redaction:
    """Replace every secret by `[redacted: rule]`; private key blocks whole. Not cut: for long documents too.

    What a first pass takes away can let a cue point at its other neighbour: it is passed over again until nothing more
    is found, so redacting twice changes nothing."""
    rules: list[str] = []
    for _ in range(_MOST_PASSES):
        text, found = _redact_once(text)
        if not found:
            break
        rules += found
    return Redaction(text=text, count=len(rules), kinds=tuple(dict.fromkeys(rules)))


def _redact_once(text: str) -> tuple[str, list[str]]:
    """Return the text without the secrets that one pass finds, and the rule of each."""
    redacted = [match.span() for match in _REDACTED.finditer(text)]
    # A mark of ours names its rule, which may be a cue word itself: it is scanned as a placeholder of the same length.
    unredacted = _REDACTED.sub(lambda mark: "…" * len(mark[0]), text)
    view = raw_view(unredacted)
    plain = folded_view(view)
    found = written_findings(view)
    if clean := cleaned_view(view):
        found += written_findings(clean)
    for read in (plain, *_disguises(plain)):
        found += spoken_findings(read, unredacted)
    spans = [
        (start, end, rule)
        for start, end, rule in _merged(found)
        if not any(first < end and start < last for first, last in redacted)
    ]
    pieces: list[str] = []
    at = 0
    for start, end, rule in spans:
        pieces += (text[at:start], f"[redacted: {rule}]")
        at = end
    return "".join([*pieces, text[at:]]), [rule for _, _, rule in spans]


def _merged(findings: list[Finding]) -> list[tuple[int, int, str]]:
    """Overlapping spans as one, named after the longest."""
    groups: list[list[Finding]] = []
    end = 0
    for finding in sorted(findings, key=lambda f: (f.start, -f.end)):
        if not groups or finding.start >= end:
            groups.append([])
            end = finding.end
        groups[-1].append(finding)
        end = max(end, finding.end)
    return [
        (group[0].start, max(f.end for f in group), max(group, key=lambda f: f.end - f.start).rule) for group in groups
    ]
