"""The scan: which rules are applied to which views, and how findings become a verdict or a redaction.
Pure functions without database or network; the provider rules are loaded on first use or by `warm`. A text costs a
fraction of a millisecond; the cost is linear in its length, which is cut at SCAN_LIMIT."""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

from scanning import commands, markup
from scanning.decoding import decoded_views
from scanning.formats import format_spans
from scanning.hidden import hidden_findings
from scanning.judging import judged_orders
from scanning.patterns import pattern_findings
from scanning.personal_numbers import number_spans
from scanning.program_secrets import program_spans
from scanning.provider_keys import Span, provider_spans
from scanning.rejoining import joined_view, rejoined_view
from scanning.respelling import respelled_views
from scanning.rules_version import rules_version
from scanning.spoken import spoken_spans
from scanning.verdict import Finding, Redaction, Verdict
from scanning.views import View, cleaned_view, folded_view, raw_view

SCAN_LIMIT = 32_000
"""Characters of a content that are scanned. The caller must refuse longer contents."""

_SECRET_REASONS = {
    "provider_key": "contains a key or token of a service",
    "private_key": "contains a private key",
    "json_web_token": "contains a signed token (JWT)",
    "url_password": "contains an address with a password in it",
    "card_number": "contains a payment card number",
    "bank_account": "contains a bank account number",
    "identity_number": "contains the number of a passport, a tax file or an identity card",
    "seed_phrase": "contains a wallet's recovery phrase",
    "password": "contains a password",
    "pin": "contains a PIN or an access code",
    "token": "contains an access key or token",
}
_PATTERN_RULES = (*markup.RULES, *commands.RULES)

RULES_VERSION: str = rules_version()


def scan(content: str, keywords: Sequence[str] = ()) -> Verdict:
    """Return the verdict for a text that is to be stored or injected. Never raises.

    Content and keywords are joined by line breaks, each cut at SCAN_LIMIT characters, so that a long content cannot
    prevent the keywords from being scanned.
    """
    text = "\n".join((content[:SCAN_LIMIT], *keywords))[: 2 * SCAN_LIMIT]
    found: dict[tuple[str, int, int], Finding] = {}
    for finding in _findings(text):
        key = finding.rule, finding.start, finding.end
        if finding.certain or key not in found:
            found[key] = finding
    ordered = sorted(found.values(), key=lambda f: (f.start, f.end, f.rule))
    return Verdict(
        findings=tuple(finding for finding in ordered if finding.certain),
        doubts=tuple(finding for finding in ordered if not finding.certain),
    )


def scan_hash(content: str, keywords: Sequence[str], *, rules: str = RULES_VERSION) -> str:
    """Return the SHA-256, in hex, of the rules' version, the content and the keywords. A verdict is valid while it is
    unchanged."""
    digest = hashlib.sha256()
    for part in (rules, content, *keywords):
        encoded = part.encode("utf-8", "surrogatepass")
        digest.update(len(encoded).to_bytes(8, "big") + encoded)
    return digest.hexdigest()


def _findings(text: str) -> Iterator[Finding]:
    raw = raw_view(text)
    yield from hidden_findings(text)
    yield from _readable_findings(raw)
    for view in decoded_views(raw):
        yield from _readable_findings(view)


def _readable_findings(view: View) -> Iterator[Finding]:
    """Yield the findings in a text and its disguises: look-alikes, spaced-out letters, digits for letters, and more."""
    yield from _written_findings(view)
    plain = folded_view(view)
    yield from _folded_findings(plain, view.text, is_disguise=view.decoded)
    for disguise in _disguises(plain):
        yield from _folded_findings(disguise, view.text, is_disguise=True)


def _disguises(plain: View) -> Iterator[View]:
    for undo in (joined_view, rejoined_view):
        if view := undo(plain):
            yield view
    yield from respelled_views(plain)


def _folded_findings(view: View, original: str, *, is_disguise: bool) -> Iterator[Finding]:
    yield from pattern_findings(view, _PATTERN_RULES)
    yield from judged_orders(view, is_disguise=is_disguise)
    yield from _spoken_findings(view, original)


def _written_findings(view: View) -> list[Finding]:
    """Return secrets with a known format in a view with its original case, as it is and cleaned."""
    spans = (provider_spans, format_spans, program_spans, number_spans)
    reads = filter(None, (view, cleaned_view(view)))
    return [found for read in reads for find in spans for found in _secret_findings(read, find(read.text))]


def _spoken_findings(view: View, original: str) -> list[Finding]:
    """Return secrets announced by words in a folded view of `original`."""
    return _secret_findings(view, spoken_spans(view, original))


def _secret_findings(view: View, spans: Iterable[Span]) -> list[Finding]:
    found = []
    for start, end, rule in spans:
        first, last = view.located(start, end)
        found.append(Finding(kind="secret", rule=rule, start=first, end=last, reason=_SECRET_REASONS[rule]))
    return found


_MAX_PASSES = 8
_REDACTED = re.compile(r"\[redacted: [a-z_]{2,20}\]")


def redact(text: str) -> Redaction:
    """Replace every secret, including whole private key blocks, by `[redacted: rule]`. There is no length limit.

    A redaction can make a label apply to another neighbouring word, so passes are repeated until nothing more is found;
    redacting is thus idempotent."""
    rules: list[str] = []
    for _ in range(_MAX_PASSES):
        text, found = _redact_once(text)
        if not found:
            break
        rules += found
    return Redaction(text=text, count=len(rules), kinds=tuple(dict.fromkeys(rules)))


def _redact_once(text: str) -> tuple[str, list[str]]:
    """Return the text after one pass, and the rule of each redacted secret."""
    redacted = [match.span() for match in _REDACTED.finditer(text)]
    # A redaction mark contains the rule's name, which may be a label itself, so it is masked with the same length.
    unredacted = _REDACTED.sub(lambda mark: "…" * len(mark[0]), text)
    view = raw_view(unredacted)
    plain = folded_view(view)
    found = _written_findings(view)
    for read in (plain, *_disguises(plain)):
        found += _spoken_findings(read, unredacted)
    starts = [start for start, _ in redacted]
    spans = [
        (start, end, rule)
        for start, end, rule in _merged(found)
        if not ((before := bisect_left(starts, end)) and redacted[before - 1][1] > start)
    ]
    pieces: list[str] = []
    at = 0
    for start, end, rule in spans:
        pieces += (text[at:start], f"[redacted: {rule}]")
        at = end
    return "".join([*pieces, text[at:]]), [rule for _, _, rule in spans]


def _merged(findings: list[Finding]) -> list[tuple[int, int, str]]:
    """Return overlapping spans merged, named after the longest finding."""
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
