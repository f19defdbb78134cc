"""Decide whether an automatic write is stored, held for a person, or refused so that the model can quote properly.
`decide` is the only place that combines the scan's verdict with the evidence."""

import re
from dataclasses import dataclass, replace
from enum import StrEnum

from memories.errors import DomainError
from memories.evidence.conversation import Conversation
from memories.evidence.passages import readings_of
from memories.evidence.support import parts_of
from memories.models import Evidence, EvidenceKind
from memories.verdicts import ScanVerdict
from scanning.words import word_set


class Hold(StrEnum):
    """Which automatic writes of an agent are held until a person decides; see docs/evidence.md."""

    OFF = "off"
    UNTRUSTED = "untrusted"
    STRICT = "strict"


class EvidenceNotFound(DomainError):
    """The quote does not occur in the conversation."""

    code, http_status = "evidence_not_found", 422


class WriteHeld(DomainError):
    """The write is held until a person decides. details: rule."""

    code, http_status = "held", 409


@dataclass(frozen=True, slots=True)
class HoldReason:
    """Why a write is held: the rule's name, and a sentence for people."""

    rule: str
    reason: str


_FOREIGN_REASONS = {
    EvidenceKind.PASTED: "This comes from text that you pasted or forwarded, not from your own words.",
    EvidenceKind.TOOL: "This comes from what a tool or document said, not from your own words.",
    EvidenceKind.ASSISTANT: "This is in the assistant's words, which may repeat text or a picture from elsewhere.",
    EvidenceKind.NONE: "Your own words do not say this, and the conversation contains more than can be examined.",
}
_TRUSTED = frozenset({EvidenceKind.OWN_WORDS, EvidenceKind.HAND})
NOT_FOUND = (
    "The `evidence` stands nowhere in this conversation. Quote the person's own words exactly as they wrote them, or "
    "do not save this."
)


# One or two words, possibly with a sign or a short word between them such as "&", "and" or "och".
_LABEL = re.compile(r"[^ ]{1,20}(?: [^ ]{1,3})?(?: [^ ]{1,20})?")
# "Always use X" and "buy X" are orders. "Call notes" is none, but it does no harm to compare it.
_ORDERS = word_set(
    "add always are ask avoid bcc book buy call cc choose copy do email forward get go is log mail never not only pay"
    " prefer put recommend run say see send set tell trust try use visit"
)
_ADDRESS = re.compile(r"[@:]|//|\w\.\w|\d{5}")  # of a page or a mailbox, or the number of an account
_INNER_CAPITAL = re.compile(r"[a-z][A-Z]")
_UNSPACED = re.compile("[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff]")  # Thai, Japanese, Chinese: words have no spaces
_UNSPACED_LABEL = 4  # characters


def is_label(category: str) -> bool:
    """Return True if a category is a label such as "food & drink". A longer one may be a sentence, and is injected
    together with the content."""
    if _UNSPACED.search(category):
        return len(category) <= _UNSPACED_LABEL
    words = category.replace("-", " ").replace("_", " ")
    spelled = re.findall(r"\w+", words.casefold())
    is_order = len(spelled) > 1 and not _ORDERS.isdisjoint(spelled)
    is_other = is_order or _INNER_CAPITAL.search(words) or _ADDRESS.search(words)
    return not category or bool(_LABEL.fullmatch(words) and not is_other)


def evidence_for(
    conversation: Conversation | None,
    content: str,
    quote: str,
    *,
    previous: str = "",
    category: str = "",
    hold: Hold = Hold.UNTRUSTED,
) -> Evidence:
    """Return the evidence for a memory: where the quote occurs or, without a quote, the text that supports it best.
    `previous` is the memory's content before the write. A category that may be a sentence must not come from foreign
    text either. If the conversation contains what cannot be examined, a quote alone does not suffice: the person's
    words must support the memory. Whether it has other names than they have (`weak`) matters to `Hold.STRICT` only.

    Raises EvidenceNotFound for the first quote that is not found; later ones return `unfounded` evidence, which is
    held."""
    if conversation is None:
        return Evidence()
    found = None
    if quote.strip():
        found = conversation.find_quote(quote)
        if found is None:
            conversation.missed += 1
            if conversation.missed == 1:
                raise EvidenceNotFound(NOT_FOUND)
            return Evidence(unfounded=True)
    if found is not None and found.untrusted:
        return found
    parts = parts_of(content)  # a planted sentence may stand behind a true one
    checked = [content, *(parts if len(parts) > 1 else ()), *(() if is_label(category) else (category,))]
    for text in [*checked, *(readings_of(content) if conversation.compared else ())]:
        if foreign := conversation.closest_foreign(text, previous=previous):
            return foreign
    if foreign := conversation.foreign_label(category):
        return foreign
    if conversation.unexamined and not all(conversation.vouches_for(text, previous=previous) for text in checked):
        return replace(conversation.best_support(content, (EvidenceKind.ASSISTANT,)), untrusted=True)
    weak = hold == Hold.STRICT and conversation.lacks_names(content, previous=previous)
    return replace(found or conversation.best_support(content), weak=weak)


def scan_doubt(verdict: ScanVerdict) -> HoldReason | None:
    """Return why a write is held because of the scan's verdict alone, or None."""
    if not verdict.hold:
        return None
    return HoldReason(verdict.hold, f"The scan is not sure: this {verdict.reason}.")


def decide(verdict: ScanVerdict, evidence: Evidence, hold: Hold) -> HoldReason | None:
    """Return why a write that the scan does not block is held, or None if it is stored. What a person writes by hand is
    never held."""
    if hold == Hold.OFF or evidence.kind == EvidenceKind.HAND:
        return None
    if reason := scan_doubt(verdict):
        return reason
    if evidence.unfounded:
        return HoldReason("evidence_not_found", "The quoted words are not in this conversation.")
    if evidence.untrusted:
        return HoldReason(f"evidence_{evidence.kind}", _FOREIGN_REASONS[evidence.kind])
    if hold == Hold.STRICT and evidence.kind not in _TRUSTED:
        return HoldReason(f"evidence_{evidence.kind}", "Your own words do not say this.")
    if hold == Hold.STRICT and evidence.weak:
        return HoldReason("evidence_names", "Your own words lack a name or number of it.")
    return None
