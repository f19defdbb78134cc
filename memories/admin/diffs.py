"""Diffs as HTML for the admin: removed text is struck through, added text underlined."""

from collections.abc import Iterable, Mapping
from typing import Any

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from memories.admin.actors import actors_add
from memories.admin.badges import TARGETS, day, origin_badge
from memories.history.revisions import FieldChange, ShownRevision, Wording, pieces_of, revisions_of
from memories.history.revisions import field_changes as changes_of
from memories.history.word_diff import Piece
from memories.models import Memory

MAX_REVISIONS = 50
_WORDING = Wording(targets=TARGETS, day=day)


def history_rows(memory: Memory) -> list[dict[str, Any]]:
    """Return the newest MAX_REVISIONS revisions of a memory, for admin/history.html. At most three queries."""
    shown = revisions_of(memory, _WORDING, limit=MAX_REVISIONS)
    actors_add(entry.revision for entry in shown)
    return [_row(entry) for entry in shown]


def pieces_html(pieces: Iterable[Piece]) -> SafeString:
    """Return the HTML of a diff."""
    return format_html_join("", "{}", ((_piece(piece),) for piece in pieces))


def field_changes(before: Mapping[str, Any] | None, after: Mapping[str, Any]) -> list[FieldChange]:
    """Return the changes of a revision to fields other than the content."""
    return changes_of(before, after, _WORDING)


def revision_diff(before: Mapping[str, Any] | None, after: Mapping[str, Any]) -> SafeString:
    """Return the HTML diff of a memory's content in a revision."""
    return _revision_html(pieces_of(before, after), before, after)


def _row(entry: ShownRevision) -> dict[str, Any]:
    revision = entry.revision
    return {
        "id": revision.pk,
        "who": origin_badge(revision.write_origin),
        "actor": revision.actor_words,  # type: ignore[attr-defined]
        "verb": entry.verb,
        "at": revision.created_at,
        "diff": _revision_html(entry.pieces, revision.before, revision.after),
        "fields": entry.fields,
        "evidence": revision.evidence,
        "present": entry.now,
        "restorable": not entry.now and not entry.gone,
    }


def _revision_html(pieces: Iterable[Piece], before: Mapping[str, Any] | None, after: Mapping[str, Any]) -> SafeString:
    html = pieces_html(pieces)
    deletes = after.get("deleted_at") and before is not None and not before.get("deleted_at")
    return format_html("<del>{}</del>", html) if deletes else html


def _piece(piece: Piece) -> SafeString | str:
    if piece.kind == "same":
        return piece.text
    return format_html("<del>{}</del>" if piece.kind == "del" else "<ins>{}</ins>", piece.text)
