"""Entries of an import that the scan is not sure of: they are handed to the queue of writes that wait for a person."""

from typing import Any

from memories.evidence import HeldStep, Proposal, held_keeper
from memories.imports.report import HeldEntry, ImportReport
from memories.models import Book, ChangeSet, Evidence, EvidenceKind

AT_ONCE = 10  # entries that are decided about together: saving them takes one transaction


def propose(book: Book, report: ImportReport, change_set: ChangeSet) -> None:
    """Hand on the first entries that wait and were not handed on yet, at most AT_ONCE. They go with the change set of
    their import when that is undone."""
    held, report.to_propose = report.to_propose[:AT_ONCE], report.to_propose[AT_ONCE:]
    step = HeldStep(session_id=None, agent="", imported=change_set.pk)
    added = {step.add(_proposal(one)): one for one in held}
    book.refresh_from_db(fields=["epoch"])
    for given, kept in held_keeper().keep(book, step).items():
        if kept.turned_down:
            report.turned_down(added[given].entry)


def _proposal(held: HeldEntry) -> Proposal:
    fields, memory = held.fields, held.changes
    more: dict[str, Any] = {"target": str(fields.target), "metadata": dict(fields.metadata or {})}
    if fields.pinned is not None:
        more["pinned"] = fields.pinned
    if fields.expires_at is not None:
        more["expires_at"] = fields.expires_at.isoformat()
    return Proposal(
        action="update" if memory else "add",
        number=memory.number if memory else None,
        version=memory.version if memory else None,
        target=str(fields.target),
        category=str(fields.category),
        keywords=list(fields.keywords or ()),
        before=memory.content if memory else None,
        after=str(fields.content),
        more=more,
        evidence=fields.evidence or Evidence(kind=EvidenceKind.HAND),
        rule=held.doubt.rule,
        reason=held.doubt.reason,
    )
