"""What a scan says: findings (what, where, why), gathered in a verdict.
Neither ever holds the text that was found, so both are safe to log, store and show.
Positions count characters of the scanned text: the content, a line break, then the keywords."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["injection", "secret"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One match of one rule.

    `rule` is a snake_case name, `reason` completes the sentence "This text …" for a person.
    `start` and `end` are character positions in the scanned text, `end` exclusive.
    """

    kind: Kind
    rule: str
    start: int
    end: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """All findings of one scan, in order of position; no finding means the text may be stored."""

    findings: tuple[Finding, ...] = ()

    @property
    def blocked(self) -> bool:
        """Whether anything was found."""
        return bool(self.findings)

    @property
    def rule(self) -> str:
        """Name of the first rule that matched, or the empty string."""
        return self.findings[0].rule if self.findings else ""

    @property
    def kind(self) -> str:
        """`injection` or `secret` of the first finding, or the empty string."""
        return self.findings[0].kind if self.findings else ""

    @property
    def reason(self) -> str:
        """The first finding's reason in a person's words, or the empty string."""
        return self.findings[0].reason if self.findings else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Redaction:
    """A text without its secrets: the new text, how many were replaced, and their rules, each once."""

    text: str
    count: int
    kinds: tuple[str, ...]
