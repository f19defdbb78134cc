"""The history of a memory for people: what each revision changed, in the wording of the page or of the admin."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memories.history.word_diff import Piece, word_diff
from memories.models import Memory, Revision

_VERBS = {
    Revision.Action.ADD: "wrote it",
    Revision.Action.UPDATE: "changed it",
    Revision.Action.DELETE: "deleted it",
    Revision.Action.RESTORE: "restored it",
    Revision.Action.UNDO: "undid a change",
    Revision.Action.ALLOW: "allowed it",
    Revision.Action.EXPIRE: "expired it",
}
_FIELDS = {
    "target": "About",
    "category": "Category",
    "keywords": "Search keywords",
    "metadata": "Metadata",
    "pinned": "Pinned",
    "expires_at": "Expires",
}
_EMPTY = {"keywords": "nothing", "expires_at": "never"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """The wording of a page: the names of targets, and the format of days."""

    targets: Mapping[str, str]
    day: Callable[[datetime], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldChange:
    """A change of a field other than the content."""

    name: str
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownRevision:
    """A revision as it is shown: what its actor did, the diff of the content, and the other changed fields. `gone`: the
    memory was deleted after it; `now`: it is the current one."""

    revision: Revision
    verb: str
    pieces: Sequence[Piece]
    gone: bool
    fields: Sequence[FieldChange]
    now: bool


def revisions_of(memory: Memory, wording: Wording, *, limit: int) -> list[ShownRevision]:
    """Return the newest revisions of a memory, newest first; one query."""
    rows = Revision.objects.filter(owner_id=memory.owner_id, memory=memory).select_related("change_set__undoes")
    return [
        ShownRevision(
            revision=revision,
            verb=_verb(revision, wording),
            pieces=pieces_of(revision.before, revision.after),
            gone=bool(revision.after.get("deleted_at")),
            fields=field_changes(revision.before, revision.after, wording),
            now=revision.version == memory.version,
        )
        for revision in rows.order_by("-version")[:limit]
    ]


def action_words(action: str) -> str:
    """Return the verb for an action of a revision."""
    return _VERBS.get(Revision.Action(action), "changed it")


def pieces_of(before: Mapping[str, Any] | None, after: Mapping[str, Any]) -> Sequence[Piece]:
    """Return the diff of the content; for a deletion, the deleted content."""
    old, new = str((before or {}).get("content", "")), str(after.get("content", ""))
    return word_diff(old, new) if old and old != new else (Piece("same", new),)


def field_changes(before: Mapping[str, Any] | None, after: Mapping[str, Any], wording: Wording) -> list[FieldChange]:
    """Return the changes of fields other than the content."""
    if before is None:
        return []
    names = _FIELDS.items()
    shown = ((label, *(_plain(name, state.get(name), wording) for state in (before, after))) for name, label in names)
    return [FieldChange(name=label, before=old, after=new) for label, old, new in shown if old != new]


def _verb(revision: Revision, wording: Wording) -> str:
    undoes = revision.change_set.undoes
    if revision.action == Revision.Action.UNDO and undoes is not None:
        return "restored it" if undoes.undoes_id else f"undid the change of {wording.day(undoes.created_at)}"
    before, after = revision.before or {}, revision.after
    if revision.action == Revision.Action.UPDATE and before.get("content") == after.get("content"):
        if before.get("pinned") != after.get("pinned"):
            return "pinned it" if after.get("pinned") else "unpinned it"
        return "changed its details"
    return action_words(revision.action)


def _plain(name: str, value: Any, wording: Wording) -> str:
    if name == "pinned":
        return "yes" if value else "no"
    if not value:
        return _EMPTY.get(name, "none")
    if name == "target":
        return wording.targets.get(value, "none")
    if name == "expires_at":
        return wording.day(datetime.fromisoformat(str(value)))
    if isinstance(value, dict):
        return ", ".join(f"{key}: {text}" for key, text in sorted(value.items()))
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
