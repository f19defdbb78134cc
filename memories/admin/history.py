"""The history of a memory as its page shows it: newest first, who, what, when, and the words that changed."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.utils.safestring import SafeString

from memories.admin.badges import origin_badge
from memories.admin.diffs import FieldChange, field_changes, revision_diff
from memories.models import Memory, Revision

SHOWN = 50
_VERBS = {
    Revision.Action.ADD: "wrote it",
    Revision.Action.UPDATE: "changed it",
    Revision.Action.DELETE: "deleted it",
    Revision.Action.RESTORE: "restored it",
    Revision.Action.UNDO: "undid a change",
    Revision.Action.ALLOW: "allowed it",
    Revision.Action.EXPIRE: "let it expire",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRow:
    """One revision, ready to be shown."""

    id: UUID
    who: SafeString
    actor: str
    verb: str
    at: datetime
    diff: SafeString
    fields: list[FieldChange]
    present: bool
    restorable: bool


def history_rows(memory: Memory) -> list[HistoryRow]:
    """Return the newest revisions of a memory, at most SHOWN; one query."""
    revisions = Revision.objects.filter(owner_id=memory.owner_id, memory=memory).order_by("-version")[:SHOWN]
    return [_row(revision, present=place == 0) for place, revision in enumerate(revisions)]


def action_words(action: str) -> str:
    """Return what a revision's actor did, in words."""
    return _VERBS.get(Revision.Action(action), action)


def _row(revision: Revision, *, present: bool) -> HistoryRow:
    return HistoryRow(
        id=revision.pk,
        who=origin_badge(revision.write_origin),
        actor=revision.actor,
        verb=action_words(revision.action),
        at=revision.created_at,
        diff=revision_diff(revision.before, revision.after),
        fields=field_changes(revision.before, revision.after),
        present=present,
        restorable=not present and not revision.after.get("deleted_at"),
    )
