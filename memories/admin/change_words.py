"""Describe change sets: a sentence with who did what to how many memories, and the memories with their diffs."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from django.db.models import IntegerField, OuterRef, Subquery
from django.urls import reverse

from memories.admin.actors import actor_names, actor_words
from memories.admin.diffs import revision_diff
from memories.models import ArtifactRevision, ChangeSet, Revision
from memories.number_words import counted

MAX_COUNTED = 200  # changes of a set are counted up to this number
MAX_LINES = 50
_VERBS = {
    Revision.Action.ADD: "added",
    Revision.Action.UPDATE: "changed",
    Revision.Action.DELETE: "deleted",
    Revision.Action.RESTORE: "restored",
    Revision.Action.UNDO: "restored",
    Revision.Action.ALLOW: "allowed",
    Revision.Action.EXPIRE: "expired",
}
_KINDS = {
    ChangeSet.Kind.UNDO: "undid changes and",
    ChangeSet.Kind.CLEAR: "cleared the book and",
    ChangeSet.Kind.IMPORT: "imported a file and",
}


class _RowCount(Subquery):
    """The number of rows of a correlated query `found` that match the SQL condition `where`."""

    template = "(SELECT COUNT(*) FROM (%(subquery)s) found WHERE %(where)s)"
    output_field = IntegerField()


def sentences_add(change_sets: Sequence[ChangeSet]) -> None:
    """Set `sentence` on change sets: "alice's key “laptop” added 2 memories". At most three queries, which look at
    about MAX_COUNTED rows per set."""
    counts = _counts([change_set.pk for change_set in change_sets])
    names = actor_names(change_set.actor for change_set in change_sets)
    for change_set in change_sets:
        who = actor_words(change_set.actor, change_set.write_origin, names)
        change_set.sentence = sentence_of(change_set, who, counts[change_set.pk])  # type: ignore[attr-defined]


def shown_change_sets(owner_id: UUID, change_sets: Sequence[ChangeSet]) -> list[dict[str, Any]]:
    """Return change sets of an owner with the first MAX_LINES memories of each; `more` says whether there are more. At
    most four queries."""
    if not change_sets:
        return []
    sentences_add(change_sets)
    max_rows = MAX_LINES * len(change_sets) + 1
    rows = Revision.objects.filter(owner_id=owner_id, change_set__in=[row.pk for row in change_sets])
    by_set: dict[UUID, list[Revision]] = defaultdict(list)
    for revision in rows.select_related("memory").order_by("change_set_id", "id")[:max_rows]:
        by_set[revision.change_set_id].append(revision)
    return [_shown(change_set, by_set[change_set.pk]) for change_set in change_sets]


def sentence_of(change_set: ChangeSet, who: str, counts: Mapping[str, int]) -> str:
    """Return a sentence without the full stop. `counts` has the number of changes by action, and of `documents`."""
    parts = [
        f"{verb} {_count_text(counts[action], 'memory', 'memories')}"
        for action, verb in _VERBS.items()
        if counts.get(action)
    ]
    if sum(counts.get(action, 0) for action in _VERBS) > MAX_COUNTED:  # the counts by action are arbitrary then
        parts = [f"made more than {MAX_COUNTED} changes to memories"]
    if counts.get("documents"):
        parts.append(f"wrote {_count_text(counts['documents'], 'document', 'documents')}")
    kind = _KINDS.get(ChangeSet.Kind(change_set.kind), "")
    done = f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else "".join(parts)
    return " ".join(part for part in (who, kind, done or "changed nothing that is still kept") if part)


def _counts(ids: Sequence[UUID]) -> dict[UUID, Counter[str]]:
    found: dict[UUID, Counter[str]] = defaultdict(Counter)
    if not ids:
        return found
    of_set: dict[str, Any] = {"change_set": OuterRef("pk")}
    revisions = Revision.objects.filter(**of_set).order_by().values("action")[: MAX_COUNTED + 1]
    documents = ArtifactRevision.objects.filter(**of_set).order_by().values("id")[: MAX_COUNTED + 1]
    counts = {f"n_{name}": _RowCount(revisions, where=f"found.action = '{name}'") for name in Revision.Action.values}
    counts["n_documents"] = _RowCount(documents, where="TRUE")
    for row in ChangeSet.objects.filter(pk__in=ids).annotate(**counts).values("pk", *counts):
        key = row.pop("pk")
        found[key] = Counter({name.removeprefix("n_"): number for name, number in row.items()})
    return found


def _shown(change_set: ChangeSet, revisions: Sequence[Revision]) -> dict[str, Any]:
    return {
        "sentence": change_set.sentence,  # type: ignore[attr-defined]
        "url": reverse("admin:memories_changeset_change", args=[change_set.pk]),
        "change_set": change_set,
        "lines": [_line(revision) for revision in revisions[:MAX_LINES]],
        "more": len(revisions) > MAX_LINES,
    }


def _line(revision: Revision) -> dict[str, Any]:
    return {
        "verb": _VERBS[Revision.Action(revision.action)].capitalize(),
        "number": revision.memory.number,
        "url": reverse("admin:memories_memory_change", args=[revision.memory_id]),
        "diff": revision_diff(revision.before, revision.after),
    }


def _count_text(number: int, one: str, many: str) -> str:
    return f"more than {MAX_COUNTED} {many}" if number > MAX_COUNTED else counted(number, one, many)
