"""What a scan says: findings (what, where, why), gathered in a verdict.
Neither ever holds the text that was found, so both are safe to log, store and show.
Positions count characters of the scanned text: the content, a line break, then the keywords."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

Kind = Literal["injection", "secret"]


class Outcome(StrEnum):
    """What becomes of a write: it is stored, waits for a person, or is refused."""

    PASS = "pass"  # noqa: S105 - no password
    HOLD = "hold"
    BLOCK = "block"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One match of one rule.

    `rule` is a snake_case name, `reason` completes the sentence "This text …" for a person.
    `start` and `end` are character positions in the scanned text, `end` exclusive.
    What is not `certain` is a doubt, which a person decides.
    """

    kind: Kind
    rule: str
    start: int
    end: int
    reason: str
    certain: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What one scan found, in order of position: certain findings, and doubts.

    `findings` forbid the text. `doubts` only ask for a person's decision, which is the caller's part: `blocked`,
    `rule`, `kind` and `reason` don't speak of them."""

    findings: tuple[Finding, ...] = ()
    doubts: tuple[Finding, ...] = ()

    @property
    def outcome(self) -> Outcome:
        """What is to become of the text: the caller's part, where it is HOLD."""
        if self.findings:
            return Outcome.BLOCK
        return Outcome.HOLD if self.doubts else Outcome.PASS

    @property
    def blocked(self) -> bool:
        """Whether anything certain was found."""
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
