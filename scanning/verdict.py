"""The result of a scan: findings (what, where, why), collected in a verdict.
Neither contains the text that was found, so both are safe to log, store and show.
Positions are character offsets in the scanned text: the content, a line break, then the keywords."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

Kind = Literal["injection", "secret"]


class Outcome(StrEnum):
    """What happens to a write: it is stored, held for a person's decision, or refused."""

    PASS = "pass"  # noqa: S105 - not a password
    HOLD = "hold"
    BLOCK = "block"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One match of one rule.

    `rule` is a snake_case name, `reason` completes the sentence "This text …" for people. `start` and `end` are
    character offsets in the scanned text, `end` exclusive. A finding that is not `certain` is a doubt, which a person
    must decide.
    """

    kind: Kind
    rule: str
    start: int
    end: int
    reason: str
    certain: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The findings of a scan, in order of position: certain ones, which block the text, and `doubts`, which require a
    person's decision."""

    findings: tuple[Finding, ...] = ()
    doubts: tuple[Finding, ...] = ()

    @property
    def outcome(self) -> Outcome:
        """What should happen to the text; for HOLD, the caller must obtain a person's decision."""
        if self.findings:
            return Outcome.BLOCK
        return Outcome.HOLD if self.doubts else Outcome.PASS

    @property
    def has_secret(self) -> bool:
        """Whether a secret is among the findings, so that the text should not be shown."""
        return any(finding.kind == "secret" for finding in self.findings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Redaction:
    """A text without its secrets, the number of replaced secrets, and their distinct rules."""

    text: str
    count: int
    kinds: tuple[str, ...]
