"""Reading and writing of artifacts: the documents of a book, their revisions and their usage.
Called by memories.api.artifacts, memories.tools.documents, memories.history.undo and reviews.consolidation. Writes go
through the BookWriter of memories.services: one transaction under the book's lock, one change set, a new generation.

Edits by people are preserved: each document records the lines that people added and removed, and the output of a
consolidation that drops the former or restores the latter is corrected before it is stored."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import F, QuerySet
from django.utils import timezone

import scanning
from memories.artifacts.cleaning import MAX_DOCUMENT
from memories.artifacts.paths import clean_path, skill_name
from memories.entry_rules import refuse_blocked
from memories.errors import Conflict, InvalidRequest, NotFound, TooLarge
from memories.models import Artifact, ArtifactRevision, ArtifactUsage, Book, ChangeSet, WriteOrigin
from memories.selectors import is_in_effect
from memories.services import BookWriter, Source, book_writing, refusals_stored
from memories.verdicts import is_verdict_for, older_rules, verdict_of_document

Action = ArtifactRevision.Action
KEPT_HEADING = "## Kept from your edits"
_BY_PERSON = frozenset({WriteOrigin.USER, WriteOrigin.ADMIN})
_STATE = ("content", "write_origin", "kept", "person_lines", "struck_lines")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaceResult:
    """The result of a consolidation: the paths of written, removed and kept documents."""

    written: tuple[str, ...]
    removed: tuple[str, ...]
    kept: tuple[str, ...]


def live_artifacts(owner_id: UUID, book_id: UUID) -> "QuerySet[Artifact]":
    """Return a book's documents, ordered by path."""
    return Artifact.objects.filter(owner_id=owner_id, book_id=book_id, deleted_at__isnull=True).order_by("path")


def artifact_get(owner_id: UUID, book_id: UUID, path: str) -> Artifact:
    """Return a document. Raises NotFound, also for an invalid path."""
    artifact = live_artifacts(owner_id, book_id).filter(path=path).first()
    if artifact is None:
        raise NotFound("There is no such document in this book.")
    return artifact


@refusals_stored()
def artifact_put(book: Book, path: str, content: str, source: Source, *, version: int | None = None) -> Artifact:
    """Store a person's edit of a document; empty content removes it. `version` prevents lost updates (0: there is no
    document).

    Raises InvalidRequest (path), TooLarge, BlockedByScan, Conflict."""
    path = clean_path(path)
    content = clean_document(content)
    refuse_blocked(verdict_of_document(content))
    if not content and not live_artifacts(book.owner_id, book.pk).filter(path=path).exists():
        raise InvalidRequest("A document needs some words.", param="content")
    with book_writing(book, source) as writer:
        artifact, before = _open(writer, path)
        present = 0 if before is None or artifact.deleted_at else artifact.version
        if version is not None and version != present:
            raise Conflict("This document was changed in the meantime. Read it again and repeat your change.")
        if before is not None and content == (artifact.content if present else ""):
            return artifact
        if not present:
            artifact.content = ""  # the lines of a removed document belong to nobody
        _record_person_lines(artifact, content)
        artifact.content, artifact.kept, artifact.scan_rule = content, False, ""
        artifact.deleted_at = None if content else timezone.now()
        _store(writer, artifact, before, Action.WRITE if content else Action.REMOVE)
    return artifact


def clean_document(content: str) -> str:
    """Return a document's content in its stored form. Raises TooLarge."""
    content = content.replace("\x00", "").replace("\r\n", "\n").strip()
    if len(content) > MAX_DOCUMENT:
        raise TooLarge(
            f"A document has at most {MAX_DOCUMENT} characters; this one has {len(content)}.",
            param="content",
            limit=MAX_DOCUMENT,
        )
    return "" if scanning.is_blank(content) else content


def artifacts_replace(writer: BookWriter, documents: Mapping[str, str]) -> ReplaceResult:
    """Replace a book's documents by the output of a consolidation, `{path: content}`, in the writer's transaction.

    Missing lines that people wrote are added again. Skills that are not in the output are removed, except those that a
    person edited, which are marked as kept."""
    written, removed, kept = [], [], []
    for path, content in documents.items():
        artifact, before = _open(writer, path)
        corrected = with_person_lines(artifact, content)
        if before is not None and corrected == artifact.content and not artifact.deleted_at and not artifact.kept:
            continue
        artifact.content, artifact.kept, artifact.deleted_at = corrected, False, None
        artifact.scan_rule = "" if corrected == content else verdict_of_document(corrected).rule
        _store(writer, artifact, before, Action.WRITE)
        written.append(artifact.path)
    named = {path.casefold() for path in documents}
    for artifact in live_artifacts(writer.book.owner_id, writer.book.pk).select_for_update():
        if not skill_name(artifact.path) or artifact.path_key in named:
            continue
        if artifact.write_origin in _BY_PERSON or artifact.person_lines:
            if not artifact.kept:
                Artifact.objects.filter(pk=artifact.pk).update(kept=True)
            kept.append(artifact.path)
            continue
        _remove(writer, artifact)
        removed.append(artifact.path)
    return ReplaceResult(written=tuple(written), removed=tuple(removed), kept=tuple(kept))


def artifacts_remove(writer: BookWriter, paths: Collection[str] | None = None) -> list[str]:
    """Turn documents of the book (None: all) into tombstones, which an undo of the writer's change set restores. Return
    the paths of those that existed."""
    live = live_artifacts(writer.book.owner_id, writer.book.pk).select_for_update()
    rows = list(live if paths is None else live.filter(path__in=paths))
    for artifact in rows:
        _remove(writer, artifact)
    return [artifact.path for artifact in rows]


def artifacts_undo(
    writer: BookWriter, change_set: ChangeSet, family: Collection[UUID]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Undo a change set's changes of documents and return the paths of `(undone, left alone)` ones. Documents that were
    changed after the set's `family` (itself, its undos, their undos) are left alone, unless that was undone."""
    undone: list[str] = []
    left: list[str] = []
    revisions = ArtifactRevision.objects.filter(owner_id=change_set.owner_id, change_set=change_set)
    first_of = {revision.artifact_id: revision for revision in revisions.order_by("-version")}
    for artifact in Artifact.objects.select_for_update().filter(pk__in=first_of).order_by("path"):
        history = ArtifactRevision.objects.filter(artifact=artifact).order_by("version")
        steps = history.values_list("change_set_id", "change_set__undoes_id")
        if not is_in_effect([(step, undoes, False) for step, undoes in steps], family):
            left.append(artifact.path)
            continue
        first = first_of[artifact.pk]
        state = first.before or {**first.after, "deleted_at": timezone.now().isoformat()}
        before = artifact_state(artifact)
        if before == state or (before["deleted_at"] and state["deleted_at"]):
            continue
        for name in _STATE:
            setattr(artifact, name, state[name])
        artifact.deleted_at = datetime.fromisoformat(state["deleted_at"]) if state["deleted_at"] else None
        artifact.scan_rule = verdict_of_document(artifact.content).rule
        _store(writer, artifact, before, Action.UNDO, origin=WriteOrigin(state["write_origin"]))
        undone.append(artifact.path)
    return tuple(undone), tuple(left)


def artifact_read(artifact: Artifact) -> None:
    """Count a use of a document, without a new version or generation."""
    now = timezone.now()
    ArtifactUsage.objects.get_or_create(artifact=artifact, defaults={"owner_id": artifact.owner_id})
    ArtifactUsage.objects.filter(artifact=artifact).update(reads=F("reads") + 1, last_read_at=now)


def artifact_usage(owner_id: UUID, artifacts: Iterable[Artifact]) -> dict[UUID, ArtifactUsage]:
    """Return the usage of artifacts by id; those that were never read are missing."""
    rows = ArtifactUsage.objects.filter(owner_id=owner_id, artifact__in=[artifact.pk for artifact in artifacts])
    return {row.artifact_id: row for row in rows}


def blocking_rule(artifact: Artifact) -> str:
    """Return the rule that blocks a document, or "". The stored verdict is used, which is renewed in the background
    (memories.sweep); without one, the document is scanned. Nothing is written."""
    known = is_verdict_for(artifact.scan_hash, older_rules(), artifact.content, ())
    return artifact.scan_rule if known else verdict_of_document(artifact.content).rule


def artifact_state(artifact: Artifact) -> dict[str, Any]:
    """Return the state of an artifact that a revision stores, as JSON."""
    state: dict[str, Any] = {name: getattr(artifact, name) for name in _STATE}
    state["write_origin"] = str(artifact.write_origin)
    state["deleted_at"] = artifact.deleted_at.isoformat() if artifact.deleted_at else None
    return state


def with_person_lines(artifact: Artifact, content: str) -> str:
    """Return a consolidation's output without the lines that people removed, and with those that they wrote."""
    struck = {line.strip() for line in artifact.struck_lines}
    lines = [line for line in content.strip().splitlines() if line.strip() not in struck]
    present = {line.strip() for line in lines}
    missing = [line for line in artifact.person_lines if line.strip() not in present]
    if not missing:
        return "\n".join(lines).strip()
    if KEPT_HEADING in present:
        at = next(index for index, line in enumerate(lines) if line.strip() == KEPT_HEADING)
        return "\n".join([*lines[: at + 1], "", *missing, *lines[at + 1 :]]).strip()
    return "\n".join([*lines, "", KEPT_HEADING, "", *missing]).strip()


def text_of_people(artifact: Artifact) -> str:
    """Return the lines that people wrote; the whole document, with blank lines and fences, if it has no others."""
    theirs = {line.strip() for line in artifact.person_lines}
    if all(line.strip() in theirs for line in _lines_of(artifact.content)):
        return artifact.content
    return "\n".join(artifact.person_lines)


def _record_person_lines(artifact: Artifact, content: str) -> None:
    old, new = _lines_of(artifact.content), _lines_of(content)
    before, after = {line.strip() for line in old}, {line.strip() for line in new}
    written = [line for line in artifact.person_lines if line.strip() in after]
    artifact.person_lines = [*written, *(line for line in new if line.strip() not in before)]
    struck = [line for line in artifact.struck_lines if line.strip() not in after]
    artifact.struck_lines = _newest([*struck, *(line for line in old if line.strip() not in after)])


def _newest(lines: Sequence[str]) -> list[str]:
    """Return the last lines within MAX_DOCUMENT characters, since every revision stores them."""
    remaining = MAX_DOCUMENT
    for count, line in enumerate(reversed(lines)):
        remaining -= len(line)
        if remaining < 0:
            return list(lines[len(lines) - count :])
    return list(lines)


def _lines_of(content: str) -> list[str]:
    """Return the distinct lines with letters or digits; horizontal rules and blank lines do not count as edits."""
    lines = [line.rstrip() for line in content.splitlines() if any(c.isalnum() for c in line)]
    return list(dict.fromkeys(line for line in lines if line.strip() != KEPT_HEADING))


def _open(writer: BookWriter, path: str) -> tuple[Artifact, dict[str, Any] | None]:
    """Return the artifact with this path, ignoring case, even a removed one, and its state; else a new one and None."""
    unique = {"owner_id": writer.book.owner_id, "book": writer.book, "path_key": path.casefold()}
    artifact = Artifact.objects.select_for_update().filter(**unique).first()
    if artifact is not None:
        return artifact, artifact_state(artifact)
    return Artifact(**unique, path=path, version=0, write_origin=writer.source.origin), None


def _remove(writer: BookWriter, artifact: Artifact) -> None:
    before = artifact_state(artifact)
    artifact.deleted_at = timezone.now()
    artifact.person_lines, artifact.struck_lines = [], []
    _store(writer, artifact, before, Action.REMOVE)


def _store(
    writer: BookWriter,
    artifact: Artifact,
    before: dict[str, Any] | None,
    action: ArtifactRevision.Action,
    *,
    origin: WriteOrigin | None = None,
) -> None:
    artifact.version += 1
    artifact.write_origin = origin or writer.source.origin
    artifact.updated_at = timezone.now()
    artifact.scan_hash = scanning.scan_hash(artifact.content, ())
    artifact.save()
    writer.removed = writer.removed or artifact.deleted_at is not None
    ArtifactRevision.objects.create(
        owner_id=artifact.owner_id,
        artifact=artifact,
        change_set=writer.changes(),
        version=artifact.version,
        action=action,
        before=before,
        after=artifact_state(artifact),
        actor=writer.source.actor,
        write_origin=writer.source.origin,
    )


def versions_of(artifacts: Iterable[Artifact]) -> dict[str, int]:
    """Return `{path: version}`, to detect later changes."""
    return {artifact.path: artifact.version for artifact in artifacts}
