"""Physical deletion: the purge of old tombstones and revisions, and the steps of a forgetting.

A step erases rows of one table, or blanks their columns, in batches, so that transactions stay short. The tables of an
owner are found through the foreign keys of Django's models and emptied children first."""

from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from graphlib import TopologicalSorter
from typing import Any
from uuid import UUID

from django.apps import apps
from django.db import transaction
from django.db.models import Exists, ForeignKey, Model, OuterRef, QuerySet

from memories.database.ageing import AgeScan
from memories.database.batches import Batch, finish, in_batches
from memories.ids import first_id
from memories.messaging import invalidation
from memories.models import Artifact, ArtifactRevision, ChangeSet, Memory, Owner, Revision, ThreadRecord

_KEYS = 2_000


@dataclass(frozen=True, slots=True)
class ErasureStep:
    """A step on one table, in transactions of the caller. The receipt counts rows by `name`, if there is one."""

    name: str
    batch: Batch


def deleting(
    rows: "QuerySet[Any]",
    *,
    before: Callable[[], object] = lambda: None,
    after: Callable[[list[Any]], object] = lambda keys: None,
) -> Batch:
    """Return a batch function that deletes rows. Rows that refer to them must be gone already, or cascade. A row that
    no longer matches when it is locked stays, such as a change set that was empty and is written to. `before` and
    `after` are called in the transaction of each batch, `after` with the keys, if there are any."""

    def batch(limit: int) -> int:
        before()
        keys = list(rows.order_by().values_list("pk", flat=True)[:limit])
        if rows.model._meta.related_objects:
            # A turn that has locked one of the rows and adds rows that refer to it ends first, so that the deletion
            # sees these rows and cascades to them.
            list(rows.model._base_manager.filter(pk__in=keys).select_for_update().order_by("pk").values_list("pk"))
        rows.order_by().filter(pk__in=keys).delete()
        if keys:
            after(keys)
        return len(keys)

    return batch


def each_page(rows: "QuerySet[Any]", change: "Callable[[QuerySet[Any]], object]") -> Batch:
    """Return a batch function that calls `change` with pages of the rows, each row once, if it still matches."""
    reached: Any = None
    keys: list[Any] = []

    def batch(limit: int) -> int:
        nonlocal reached, keys
        if not keys:  # many at once, since a query may read all rows of the owner without a matching index
            remaining = rows if reached is None else rows.filter(pk__gt=reached)
            keys = list(remaining.order_by("pk").values_list("pk", flat=True)[:_KEYS])
        page, keys = keys[:limit], keys[limit:]
        if page:
            reached = page[-1]
            still = list(rows.filter(pk__in=page).order_by().values_list("pk", flat=True))
            change(rows.model._base_manager.filter(pk__in=still))
        return len(page)

    return batch


def updating(rows: "QuerySet[Any]", **values: Any) -> Batch:
    return each_page(rows, lambda page: page.update(**values))


def owner_steps(owner_id: UUID) -> Iterator[ErasureStep]:
    """Yield the steps that erase an owner's end users and then all else that belongs to it, except its own row."""
    for owner in ("owner__parent_id", "owner_id"):
        for model in owner_tables():
            yield ErasureStep(str(model._meta.model_name), deleting(model._base_manager.filter(**{owner: owner_id})))
        if owner != "owner_id":
            yield ErasureStep("owner", deleting(Owner.objects.filter(parent_id=owner_id), after=_publish))


def _publish(owners: list[UUID]) -> None:
    for owner_id in owners:
        invalidation.publish(invalidation.Kind.OWNER, owner_id=owner_id)


@cache
def owner_tables() -> tuple[type[Model], ...]:
    """Return every model whose rows belong to an owner, each before the models that it refers to."""
    parents = {
        model: {field.related_model for field in model._meta.concrete_fields if isinstance(field, ForeignKey)} - {model}
        for model in apps.get_models()
        if not model._meta.proxy and model is not Owner
    }
    owned = [model for model in parents if Owner in parents[model]]
    referring = {model: [other for other in owned if model in parents[other]] for model in owned}
    return tuple(TopologicalSorter(referring).static_order())


def tombstones_purge(before: datetime, limit: int) -> None:
    """Purge up to `limit` tombstones of each table from before a time, and the change sets that are empty then."""
    for model, column, change_set in (
        (Memory, "deleted_at", "revisions__change_set"),
        (Artifact, "deleted_at", "revisions__change_set"),
        (ThreadRecord, "cleared_at", "cleared_by"),
    ):
        gone = model.objects.filter(**{f"{column}__lt": before})
        keys = list(gone.values_list("pk", flat=True)[:limit])
        touched = set(model.objects.filter(pk__in=keys).values_list(change_set, flat=True))
        with transaction.atomic():
            deleting(gone.filter(pk__in=keys))(limit)  # except those that were restored in the meantime
        _empty_delete(touched)


def revisions_purge(before: datetime, *, scans: Sequence[AgeScan], seconds: float) -> None:
    """Delete the revisions of memories and of documents from before a time, except the last of each, so that the
    history of the time since stays complete; and the change sets that are empty then. `scans` are one for each of the
    two tables, `seconds` the approximate time for each."""
    for scan, model, of in zip(scans, (Revision, ArtifactRevision), ("memory", "artifact"), strict=True):
        rows = model._base_manager.only("pk", of)
        for page in scan.pages(rows, before=before, seconds=seconds):
            written = model._base_manager.filter(pk__lt=first_id(before))
            later = written.filter(**{of: OuterRef(of), "version__gt": OuterRef("version")})
            ids = {getattr(row, f"{of}_id") for row in page}
            superseded = written.filter(Exists(later), **{f"{of}__in": ids})
            touched = {*superseded.order_by().values_list("change_set", flat=True)}
            finish(in_batches(deleting(superseded)))
            _empty_delete(touched)


def _empty_delete(change_sets: Set[UUID | None]) -> None:
    """Delete those of these change sets that hold nothing any more, and then their undos that hold nothing. The undo of
    one that stays, such as a clear of thread records, stays too: by it, that one is known to be undone."""
    cleared = Exists(ThreadRecord.objects.filter(cleared_by=OuterRef("pk")))
    left = [pk for pk in change_sets if pk]
    while left:
        some, left = left[:_KEYS], left[_KEYS:]
        empty = without_revisions(ChangeSet.objects.filter(~cleared, undoes=None, pk__in=some))
        keys = list(empty.values_list("pk", flat=True))
        left += ChangeSet.objects.filter(undoes__in=keys).values_list("pk", flat=True)
        ChangeSet.objects.filter(pk__in=keys).delete()


def without_revisions(change_sets: "QuerySet[ChangeSet]") -> "QuerySet[ChangeSet]":
    """Return the change sets that have no revision any more."""
    return change_sets.filter(
        ~Exists(Revision.objects.filter(change_set=OuterRef("pk"))),
        ~Exists(ArtifactRevision.objects.filter(change_set=OuterRef("pk"))),
    )
