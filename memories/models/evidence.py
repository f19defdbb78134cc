"""What a memory rests on: whose words they were, the words themselves, and where they stand."""

from dataclasses import dataclass, replace
from typing import Any, Self
from uuid import UUID

from django.db import models


class EvidenceKind(models.TextChoices):
    """Whose words a memory rests on; see docs/evidence.md."""

    OWN_WORDS = "own_words", "You said"
    PASTED = "pasted", "From text you pasted"
    TOOL = "tool", "From a tool or document"
    ASSISTANT = "assistant", "The assistant said"
    RECALLED = "recalled", "From an earlier memory"
    HAND = "hand", "Written by hand"
    NONE = "none", "No quote"


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The words that a memory rests on. `start` is the place of `quote` in the text of the message, in characters;
    without a quote there is no place. `run_id` is the turn.

    Two things are known only while a write is decided about: `untrusted`, the words are neither the person's own nor
    follow from them, and `unfounded`, a quote was given that stands nowhere."""

    kind: EvidenceKind = EvidenceKind.NONE
    quote: str = ""
    session_id: UUID | None = None
    run_id: UUID | None = None
    message_id: UUID | None = None
    start: int | None = None
    untrusted: bool = False
    unfounded: bool = False

    @classmethod
    def of_origin(cls, origin: str) -> Self:
        """Return what is known of words by their write origin alone."""
        return cls(kind=EvidenceKind.HAND if origin in {"user", "admin", "import"} else EvidenceKind.NONE)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON that rows of reviews keep: without empty values, and empty if nothing is known."""
        kept = {name: getattr(self, name) for name in _COLUMNS} if self != Evidence() else {}
        return {
            name: value if isinstance(value, int) else str(value)
            for name, value in kept.items()
            if value not in (None, "")
        }

    @classmethod
    def from_json(cls, kept: dict[str, Any]) -> Self:
        """Return what `to_json` made. Raises ValueError."""
        ids: dict[str, Any] = {
            name: UUID(kept[name]) for name in ("session_id", "run_id", "message_id") if kept.get(name)
        }
        kind = EvidenceKind(kept.get("kind", EvidenceKind.NONE))
        return cls(kind=kind, quote=kept.get("quote", ""), start=kept.get("start"), **ids)

    def public(self) -> dict[str, Any]:
        """Return what the API shows."""
        return {
            "kind": str(self.kind),
            "quote": self.quote,
            "session_id": str(self.session_id) if self.session_id else None,
            "turn_id": str(self.run_id) if self.run_id else None,
        }

    def without_words(self) -> Self:
        """Return it as it is when the words it quotes are erased: only whose they were."""
        return replace(self, quote="", session_id=None, run_id=None, message_id=None, start=None)


_COLUMNS = {
    "kind": "evidence_kind",
    "quote": "evidence_quote",
    "session_id": "evidence_session_id",
    "run_id": "evidence_run_id",
    "message_id": "evidence_message_id",
    "start": "evidence_start",
}
EVIDENCE_COLUMNS = tuple(_COLUMNS.values())


class Evidenced(models.Model):
    """A row that says what the words of a memory rest on."""

    evidence_kind = models.CharField(max_length=10, blank=True, choices=EvidenceKind.choices)
    evidence_quote = models.TextField(blank=True)
    evidence_session_id = models.UUIDField(null=True, blank=True)
    evidence_run_id = models.UUIDField(null=True, blank=True, help_text="The turn in which it was said.")
    evidence_message_id = models.UUIDField(null=True, blank=True)
    evidence_start = models.PositiveIntegerField(
        null=True, blank=True, help_text="Where the quote stands in the message, in characters."
    )

    class Meta:
        abstract = True

    @property
    def evidence(self) -> Evidence:
        """What it rests on. Rows from before evidence was asked for say only who wrote them."""
        if not self.evidence_kind:
            return Evidence.of_origin(getattr(self, "write_origin", ""))
        values = {name: getattr(self, column) for name, column in _COLUMNS.items()}
        return Evidence(**{**values, "kind": EvidenceKind(self.evidence_kind)})

    @evidence.setter
    def evidence(self, evidence: Evidence) -> None:
        for name, column in _COLUMNS.items():
            setattr(self, column, getattr(evidence, name))
