"""Evidence for a memory: whose words it is based on, the quote, and where it occurs."""

from dataclasses import dataclass, field, replace
from typing import Any, Self
from uuid import UUID

from django.db import models
from pydantic import TypeAdapter


class EvidenceKind(models.TextChoices):
    """Whose words a memory is based on; see docs/evidence.md."""

    OWN_WORDS = "own_words", "You said"
    PASTED = "pasted", "From text you pasted"
    TOOL = "tool", "From a tool or document"
    ASSISTANT = "assistant", "The assistant said"
    RECALLED = "recalled", "From an earlier memory"
    HAND = "hand", "Written by hand"
    NONE = "none", "No quote"


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The words that a memory is based on. `start` is the offset of `quote` in the text of the message, in characters;
    without a quote it is None. `run_id` is the turn.

    Three flags are not stored and only serve the decision about a write: `untrusted`, the words are foreign, neither
    the person's own nor derived from them; `unfounded`, a quote was given that was not found; and `weak`, the person's
    words and recalled memory lack a name or number of the memory."""

    kind: EvidenceKind = EvidenceKind.NONE
    quote: str = ""
    session_id: UUID | None = None
    run_id: UUID | None = None
    message_id: UUID | None = None
    start: int | None = None
    untrusted: bool = False
    unfounded: bool = False
    weak: bool = field(default=False, compare=False)

    @classmethod
    def of_origin(cls, origin: str) -> Self:
        """Return the evidence that follows from a write origin alone."""
        return cls(kind=EvidenceKind.HAND if origin in {"user", "admin", "import"} else EvidenceKind.NONE)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON that review rows store: without empty values, and {} if nothing is known."""
        kept: dict[str, Any] = _JSON.dump_python(self, mode="json", include={*_NAMES}, exclude_defaults=True)
        return kept

    @staticmethod
    def from_json(kept: dict[str, Any]) -> "Evidence":
        """Return the evidence that `to_json` serialised. Raises ValueError."""
        return _JSON.validate_python(kept)

    def public(self) -> dict[str, Any]:
        """Return the API representation."""
        return {
            "kind": str(self.kind),
            "quote": self.quote,
            "session_id": str(self.session_id) if self.session_id else None,
            "turn_id": str(self.run_id) if self.run_id else None,
        }

    def without_words(self) -> Self:
        """Return a copy without the quote and its place, for when the quoted words are erased."""
        return replace(self, quote="", session_id=None, run_id=None, message_id=None, start=None)


_NAMES = ("kind", "quote", "session_id", "run_id", "message_id", "start")
_JSON = TypeAdapter(Evidence)
EVIDENCE_COLUMNS = tuple(f"evidence_{name}" for name in _NAMES)


class Evidenced(models.Model):
    """A row with the evidence for a memory's content."""

    evidence_kind = models.CharField(max_length=10, blank=True, choices=EvidenceKind.choices)
    evidence_quote = models.TextField(blank=True)
    evidence_session_id = models.UUIDField(null=True, blank=True)
    evidence_run_id = models.UUIDField(null=True, blank=True, help_text="The turn in which it was said.")
    evidence_message_id = models.UUIDField(null=True, blank=True)
    evidence_start = models.PositiveIntegerField(
        null=True, blank=True, help_text="Offset of the quote in the message, in characters."
    )

    class Meta:
        abstract = True

    @property
    def evidence(self) -> Evidence:
        """The evidence. For rows from before evidence was recorded, it follows from their write origin alone."""
        if not self.evidence_kind:
            return Evidence.of_origin(getattr(self, "write_origin", ""))
        values = {name: getattr(self, f"evidence_{name}") for name in _NAMES}
        return Evidence(**{**values, "kind": EvidenceKind(self.evidence_kind)})

    @evidence.setter
    def evidence(self, evidence: Evidence) -> None:
        for name in _NAMES:
            setattr(self, f"evidence_{name}", getattr(evidence, name))
