"""Notes of a session that rest on text from elsewhere: they are left out of what documents are made from, and wait for
a person as memories of their own."""

from dataclasses import replace

from memories.artifacts.cleaning import Cleaned
from memories.evidence import Conversation, HeldWrites, Hold, Proposal, decide
from memories.models import Book, Evidence, EvidenceKind, Target
from memories.verdicts import ScanVerdict
from reviews.models import ReviewRun
from reviews.proposals import proposals_keep

MOST_LINES = 300
"""Lines of notes that are looked at; more than that are left out where the session read text from elsewhere."""
_SCANNED = ScanVerdict("", "", "", "")
_OWN = Evidence(kind=EvidenceKind.OWN_WORDS)


def without_foreign_lines(text: Cleaned, conversation: Conversation, hold: Hold, held: HeldWrites | None) -> Cleaned:
    """Return a note without the lines that rest on text from elsewhere; they are added to `held`."""
    if hold == Hold.OFF or not conversation.untrusted:
        return text
    kept: list[str] = []
    lines = text.text.splitlines(keepends=True)
    for line in lines[:MOST_LINES]:
        words = line.strip().lstrip("-*•0123456789.) ").strip()
        evidence = (conversation.closest_foreign(words) if words and words[0] != "#" else None) or _OWN
        doubt = decide(_SCANNED, evidence, hold)
        if doubt is None:
            kept.append(line)
        elif held is not None:
            held.add(
                Proposal(
                    action="add",
                    target=Target.MEMORY,
                    category="note",
                    keywords=[],
                    after=words,
                    evidence=evidence,
                    rule=doubt.rule,
                    reason=doubt.reason,
                )
            )
    return replace(text, text="".join(kept).strip(), dropped=text.dropped + len(lines) - len(kept))


def held_keep(book: Book, held: HeldWrites) -> None:
    """Keep held lines, but none of this session that was decided about: it may be read many times."""
    earlier = ReviewRun.objects.filter(owner_id=book.owner_id, session=held.session_id, trigger=ReviewRun.Trigger.NOTES)
    known = {write.after for run in earlier for write in run.writes if not write.waiting}
    held.proposals = [proposal for proposal in held.proposals if proposal.after not in known]
    if held.proposals:
        proposals_keep(book, held, trigger=ReviewRun.Trigger.NOTES)
