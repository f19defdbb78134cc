"""The scan of long documents, and the cleaning of a model's output before it is stored.
Pure functions; called by memories.artifacts.store and reviews.consolidation."""

from collections import deque
from dataclasses import dataclass, replace

import scanning
from scanning import Finding

MAX_DOCUMENT = 100_000  # characters of one document

_PIECE = 16_000
_OVERLAP = 500


class OutputRejected(Exception):
    """A model's output must not be stored. The message names rules, never the text that was found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanedOutput:
    """A text that may be stored, with the number of redacted secrets and of dropped lines that the scan blocks."""

    text: str
    redacted: int = 0
    dropped: int = 0


def scan_document(text: str) -> list[Finding]:
    """Return the findings in a text of any length, scanned in overlapping pieces, by position."""
    found: dict[tuple[str, int, int], Finding] = {}
    for start in range(0, max(len(text), 1), _PIECE):
        first = max(0, start - _OVERLAP)
        for finding in scanning.scan(text[first : start + _PIECE]).findings:
            moved = replace(finding, start=finding.start + first, end=finding.end + first)
            found[moved.rule, moved.start, moved.end] = moved
    return sorted(found.values(), key=lambda finding: finding.start)


def clean_output(text: str, *, max_secrets: int) -> CleanedOutput:
    """Redact secrets in a model's output and drop blocked lines.

    Raises OutputRejected for a private key, for more than `max_secrets` secrets, and if the rest is still blocked."""
    text = text.replace("\x00", "").strip()
    if len(text) > MAX_DOCUMENT:
        raise OutputRejected(f"It has {len(text)} characters; a document has at most {MAX_DOCUMENT}.")
    redaction = scanning.redact(text)
    if "private_key" in redaction.kinds:
        raise OutputRejected("It holds a private key.")
    if redaction.count > max_secrets:
        raise OutputRejected(f"It holds {redaction.count} secrets.")
    kept, dropped = _without_blocked_lines(redaction.text)
    if left := scan_document(kept):
        raise OutputRejected(f"The scan blocks it (rule {left[0].rule}).")
    return CleanedOutput(text=kept.strip(), redacted=redaction.count, dropped=dropped)


def _without_blocked_lines(text: str) -> tuple[str, int]:
    """Return the text without the lines that the scan blocks, and their number."""
    findings = deque(scan_document(text))
    kept = []
    end = dropped = blocked_to = 0
    for line in text.splitlines(keepends=True):
        start, end = end, end + len(line)
        while findings and findings[0].start < end:
            blocked_to = max(blocked_to, findings.popleft().end)
        if start < blocked_to:
            dropped += 1
        else:
            kept.append(line)
    return "".join(kept), dropped
