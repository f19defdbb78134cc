"""What may stand in a document: the scan of long texts, and the cleaning of what a model wrote before it is stored.
Pure functions; called by memories.artifacts.store and reviews.consolidation."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import scanning
from scanning import Finding

MAX_DOCUMENT = 100_000  # characters of one document

_PIECE = 16_000
_OVERLAP = 500


class OutputRejected(Exception):
    """What the model wrote must not be stored. The message names rules, never what was found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaned:
    """A text that may be stored: how many secrets were taken out of it, and how many lines that the scan blocks."""

    text: str
    redacted: int = 0
    dropped: int = 0


def scan_document(text: str) -> list[Finding]:
    """Return the findings in a text of any length, with their positions; it is scanned in overlapping pieces."""
    found: dict[tuple[str, int, int], Finding] = {}
    for start in range(0, max(len(text), 1), _PIECE):
        first = max(0, start - _OVERLAP)
        for finding in scanning.scan(text[first : start + _PIECE]).findings:
            moved = replace(finding, start=finding.start + first, end=finding.end + first)
            found[moved.rule, moved.start, moved.end] = moved
    return sorted(found.values(), key=lambda finding: finding.start)


def clean_output(text: str, *, most_secrets: int) -> Cleaned:
    """Take secrets and blocked lines out of what a model wrote.

    Raises OutputRejected for a private key, for more than `most_secrets` secrets, and for what can't be taken out."""
    text = text.replace("\x00", "").strip()
    if len(text) > MAX_DOCUMENT:
        raise OutputRejected(f"It has {len(text)} characters; a document has at most {MAX_DOCUMENT}.")
    redaction = scanning.redact(text)
    if "private_key" in redaction.kinds:
        raise OutputRejected("It holds a private key.")
    if redaction.count > most_secrets:
        raise OutputRejected(f"It holds {redaction.count} secrets.")
    kept, dropped = _without_blocked_lines(redaction.text)
    if left := scan_document(kept):
        raise OutputRejected(f"The scan blocks it (rule {left[0].rule}).")
    return Cleaned(text=kept.strip(), redacted=redaction.count, dropped=dropped)


def _without_blocked_lines(text: str) -> tuple[str, int]:
    findings = scan_document(text)
    if not findings:
        return text, 0
    kept = []
    dropped = 0
    for start, end, line in _lines(text):
        if any(finding.start < end and start < finding.end for finding in findings):
            dropped += 1
        else:
            kept.append(line)
    return "".join(kept), dropped


def _lines(text: str) -> Iterator[tuple[int, int, str]]:
    at = 0
    for line in text.splitlines(keepends=True):
        yield at, at + len(line), line
        at += len(line)
