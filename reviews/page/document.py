"""A document in the page's drawer, rendered, and its history as changed lines."""

from typing import Any

from gateway.chat.markdown import render_markdown
from memories.history.matching import equal_runs
from memories.history.word_diff import Piece, word_diff
from memories.models import Artifact, ArtifactRevision, WriteOrigin
from memories.number_words import counted
from memories.page.rows import origin_label
from memories.viewers import Viewer
from reviews.page.panel import document_name

MAX_REVISIONS = 30
_VERBS = {
    ArtifactRevision.Action.WRITE: "changed it",
    ArtifactRevision.Action.REMOVE: "removed it",
    ArtifactRevision.Action.UNDO: "undid a change",
}


def shown_document(artifact: Artifact, viewer: Viewer) -> dict[str, Any]:
    """Return the document as the drawer shows it."""
    return {
        "artifact": artifact,
        "name": document_name(artifact.path),
        "html": render_markdown(artifact.content),
        "about": _about(artifact, viewer),
    }


def newest_revisions(artifact: Artifact) -> list[ArtifactRevision]:
    """Return the newest revisions of a document, newest first."""
    rows = ArtifactRevision.objects.filter(owner_id=artifact.owner_id, artifact=artifact).order_by("-version")
    return list(rows[:MAX_REVISIONS])


def document_history(artifact: Artifact, viewer: Viewer) -> list[dict[str, Any]]:
    """Return the newest revisions as the drawer shows them, with the lines that each changed. One query."""
    return [
        {
            "revision": revision,
            "icon_label": origin_label(revision.write_origin),
            "verb": revision_verb(revision),
            "when": viewer.minute(revision.created_at),
            "lines": lines_of(revision),
            "now": revision.version == artifact.version,
        }
        for revision in newest_revisions(artifact)
    ]


def revision_verb(revision: ArtifactRevision) -> str:
    """Return what the actor did, in words."""
    return _VERBS[ArtifactRevision.Action(revision.action)] if revision.before else "wrote it"


def lines_of(revision: ArtifactRevision) -> list[tuple[Piece, ...]]:
    """Return the lines that a revision changed, as diffs."""
    return changed_lines(text_of_state(revision.before), text_of_state(revision.after))


def changed_lines(before: str, after: str) -> list[tuple[Piece, ...]]:
    """Return word diffs of the blocks of lines that changed; for a new text, all its lines."""
    if not before:
        return [(Piece("same", line),) for line in after.splitlines() if line.strip()]
    old, new = before.splitlines(), after.splitlines()
    blocks = []
    left = right = 0
    for start_old, start_new, length in equal_runs(old, new):
        blocks.append(("\n".join(old[left:start_old]).strip(), "\n".join(new[right:start_new]).strip()))
        left, right = start_old + length, start_new + length
    return [word_diff(was, now) for was, now in blocks if was or now]


def _about(artifact: Artifact, viewer: Viewer) -> str:
    day = viewer.day(artifact.updated_at)
    edited_lines = len(artifact.person_lines) + len(artifact.struck_lines)
    if artifact.scan_rule:
        return f"Rule {artifact.scan_rule} blocks this document. It is not sent to a model until its text is changed."
    if artifact.write_origin == WriteOrigin.ADMIN:
        return f"Changed by an administrator on {day}. The next consolidation keeps what they changed."
    if edited_lines:
        return f"Last changed on {day}. You changed {counted(edited_lines, 'line')}; the next consolidation keeps them."
    writer = "consolidation" if artifact.write_origin == WriteOrigin.CONSOLIDATION else "you"
    return f"Written by {writer} on {day}."


def text_of_state(state: dict[str, object] | None) -> str:
    """Return the content in a revision's state; "" if the document was removed."""
    if not state or state.get("deleted_at"):
        return ""
    return str(state.get("content", ""))
