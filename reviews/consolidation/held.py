"""Lines of a session's notes that rest on foreign text (not the person's own words): they are removed from the notes,
and proposed to the person as memories instead."""

from dataclasses import replace

from memories.artifacts.cleaning import CleanedOutput
from memories.evidence import Conversation, HeldWrites, Hold, Proposal, decide
from memories.models import Book, Evidence, EvidenceKind, Target
from memories.verdicts import verdict_of
from reviews.models import ReviewRun
from reviews.proposals import proposals_keep

MAX_LINES = 300
"""How many lines of a note are checked if its session contains foreign text; the rest are dropped."""
_OWN = Evidence(kind=EvidenceKind.OWN_WORDS)


def without_foreign_lines(
    text: CleanedOutput, conversation: Conversation, hold: Hold, held: HeldWrites | None
) -> CleanedOutput:
    """Return a note without the lines that rest on foreign text; these are added to `held` if it is given."""
    if hold == Hold.OFF or not conversation.compared:
        return text
    kept: list[str] = []
    lines = text.text.splitlines(keepends=True)
    for line in lines[:MAX_LINES]:
        content = line.strip().lstrip("-*•#0123456789.) ").strip()
        evidence = (conversation.closest_foreign(content) if content else None) or _OWN
        doubt = decide(verdict_of(content, ()), evidence, hold)
        if doubt is None:
            kept.append(line)
        elif held is not None:
            held.add(
                Proposal(
                    action="add",
                    target=Target.MEMORY,
                    category="note",
                    keywords=[],
                    after=content,
                    evidence=evidence,
                    rule=doubt.rule,
                    reason=doubt.reason,
                )
            )
    return replace(text, text="".join(kept).strip(), dropped=text.dropped + len(lines) - len(kept))


def held_keep(book: Book, held: HeldWrites) -> None:
    """Store held lines as proposals, except those decided about in an earlier extraction of the same session, in the
    caller's transaction."""
    if not held.proposals:
        return
    earlier = ReviewRun.objects.filter(owner_id=book.owner_id, session=held.session_id, trigger=ReviewRun.Trigger.NOTES)
    decided = {write.after for run in earlier for write in run.writes if not write.waiting}
    held.proposals = [proposal for proposal in held.proposals if proposal.after not in decided]
    if held.proposals:
        proposals_keep(book, held, trigger=ReviewRun.Trigger.NOTES)
