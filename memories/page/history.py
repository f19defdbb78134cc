"""The history of one memory as the page's drawer shows it: who, what they did, when, and the words that changed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from memories.models import Memory, Revision, Target
from memories.page.rows import TARGET_WORDS, IconLabel, origin_label
from memories.provenance import SourceLink, names_of, source_link
from memories.viewers import Viewer
from memories.word_diff import Piece, word_diff

MOST_REVISIONS = 100
_VERBS = {
    Revision.Action.ADD: "wrote it",
    Revision.Action.UPDATE: "changed it",
    Revision.Action.DELETE: "deleted it",
    Revision.Action.RESTORE: "restored it",
    Revision.Action.ALLOW: "allowed it",
    Revision.Action.EXPIRE: "saw it expire",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownRevision:
    """One revision: its words as a diff, the other fields that changed in words, and where it was written."""

    revision: Revision
    icon_label: IconLabel
    verb: str
    when: str
    pieces: Sequence[Piece]
    gone: bool
    fields: Sequence[str]
    now: bool
    source_link: SourceLink | None
    review_id: UUID | None


def history_of(memory: Memory, viewer: Viewer) -> list[ShownRevision]:
    """Return the newest revisions of a memory, newest first, in three queries or less."""
    rows = Revision.objects.filter(owner_id=viewer.owner.pk, memory=memory).select_related("change_set__undoes")
    revisions = list(rows.order_by("-version")[:MOST_REVISIONS])
    sets = [revision.change_set for revision in revisions]
    names = names_of(
        viewer.owner.pk, [s.session_id for s in sets], [s.run_id for s in sets], [s.review_id for s in sets]
    )
    return [
        ShownRevision(
            revision=revision,
            icon_label=origin_label(revision.write_origin),
            verb=_verb(revision, viewer),
            when=viewer.minute(revision.created_at),
            pieces=_pieces(revision),
            gone=bool(revision.after.get("deleted_at")),
            fields=_fields(revision.before, revision.after, viewer),
            now=revision.version == memory.version,
            source_link=source_link(
                names, revision.change_set.session_id, revision.change_set.run_id, revision.change_set.review_id
            ),
            review_id=revision.change_set.review_id,
        )
        for revision in revisions
    ]


def _verb(revision: Revision, viewer: Viewer) -> str:
    undoes = revision.change_set.undoes
    if revision.action == Revision.Action.UNDO:
        if undoes is not None and undoes.undoes_id is not None:
            return "put it back"
        return f"undid the change of {viewer.day(undoes.created_at)}" if undoes else "undid a change"
    before, after = revision.before or {}, revision.after
    if revision.action == Revision.Action.UPDATE and before.get("content") == after.get("content"):
        if before.get("pinned") != after.get("pinned"):
            return "pinned it" if after.get("pinned") else "unpinned it"
        return "changed how it is kept"
    return _VERBS.get(Revision.Action(revision.action), "changed it")


def _pieces(revision: Revision) -> tuple[Piece, ...]:
    after = str(revision.after.get("content", ""))
    before = str((revision.before or {}).get("content", ""))
    return word_diff(before, after) if before and before != after else (Piece("same", after),)


def _fields(before: Mapping[str, Any] | None, after: Mapping[str, Any], viewer: Viewer) -> list[str]:
    """Return what else changed: `Category: fact → preference`."""
    if not before:
        return []
    shown = {
        "About": (_target(before), _target(after)),
        "Category": (str(before.get("category", "")), str(after.get("category", ""))),
        "Found by": (_keywords(before), _keywords(after)),
        "Expires": (_expiry(before, viewer), _expiry(after, viewer)),
    }
    return [f"{name}: {old} → {new}" for name, (old, new) in shown.items() if old != new]


def _target(state: Mapping[str, Any]) -> str:
    target = state.get("target")
    return TARGET_WORDS[Target(target)] if target in Target.values else "–"


def _keywords(state: Mapping[str, Any]) -> str:
    return ", ".join(str(word) for word in state.get("keywords") or ()) or "nothing"


def _expiry(state: Mapping[str, Any], viewer: Viewer) -> str:
    given = state.get("expires_at")
    return viewer.day(datetime.fromisoformat(str(given))) if given else "never"
