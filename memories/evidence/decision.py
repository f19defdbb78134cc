"""What becomes of an automatic write: stored, held for a person, or answered so that the model can quote properly.
`decide` is the one place where the scan's verdict and the evidence come together."""

from dataclasses import dataclass
from enum import StrEnum

from memories.errors import DomainError
from memories.evidence.conversation import Conversation
from memories.models import Evidence, EvidenceKind
from memories.verdicts import Judged


class Hold(StrEnum):
    """Which automatic writes of an agent wait for a person."""

    OFF = "off"
    UNTRUSTED = "untrusted"
    STRICT = "strict"


class EvidenceNotFound(DomainError):
    """A quote that stands nowhere in the conversation."""

    code, http_status = "evidence_not_found", 422


class Held(DomainError):
    """A write that waits for a person. details: rule."""

    code, http_status = "held", 409


@dataclass(frozen=True, slots=True)
class Doubt:
    """Why a write waits for a person, in a name and in words."""

    rule: str
    reason: str


_FROM_ELSEWHERE = {
    EvidenceKind.PASTED: "This comes from text that you pasted or forwarded, not from your own words.",
    EvidenceKind.TOOL: "This comes from what a tool or document said, not from your own words.",
    EvidenceKind.ASSISTANT: "This is in the assistant's words after it had read text from elsewhere.",
}
_TRUSTED = frozenset({EvidenceKind.OWN_WORDS, EvidenceKind.HAND})
NOT_FOUND = (
    "The `evidence` stands nowhere in this conversation. Quote the person's own words exactly as they wrote them, or "
    "do not save this."
)


def evidence_for(conversation: Conversation | None, content: str, quote: str, *, known: str = "") -> Evidence:
    """Return what a memory rests on: the quote that the model gives, or without one the words that support it best.
    `known` is what the memory said before.

    Raises EvidenceNotFound for the first quote that stands nowhere; later ones make evidence that is to be held."""
    if conversation is None:
        return Evidence()
    found = None
    if quote.strip():
        found = conversation.quoted(quote)
        if found is None:
            conversation.missed += 1
            if conversation.missed == 1:
                raise EvidenceNotFound(NOT_FOUND)
            return Evidence(unfounded=True)
    if found is not None and found.untrusted:
        return found
    return conversation.leaning(content, known=known) or found or conversation.closest(content)


def doubt_of(verdict: Judged) -> Doubt | None:
    """Return why a write waits for what the scan says of its words alone; None where that is nothing."""
    if not verdict.hold:
        return None
    return Doubt(verdict.hold, f"The scan is not sure: this {verdict.reason}.")


def decide(verdict: Judged, evidence: Evidence, hold: Hold) -> Doubt | None:
    """Return why a write that the scan does not block waits; None where it is stored. What a person writes by hand is
    never held."""
    if hold == Hold.OFF or evidence.kind == EvidenceKind.HAND:
        return None
    if doubt := doubt_of(verdict):
        return doubt
    if evidence.unfounded:
        return Doubt("evidence_not_found", "The quoted words are not in this conversation.")
    if evidence.untrusted:
        return Doubt(f"evidence_{evidence.kind}", _FROM_ELSEWHERE[evidence.kind])
    if hold == Hold.STRICT and evidence.kind not in _TRUSTED:
        return Doubt(f"evidence_{evidence.kind}", "Your own words do not say this.")
    return None
