"""Audit entries of the admin: whose memories and conversations were viewed, and what was done to them."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from django.db.models import Model
from django.http import HttpRequest

from memories.audit.log import SAME_LIST, Action, actor_of, audit_entry, audit_record, audit_record_each
from memories.models import Owner
from memories.number_words import counted


def opening_record(request: HttpRequest, shown: Model) -> None:
    """Record that a row was opened, unless it is the user's own."""
    owner = owner_of(shown)
    if not _is_own(request, owner):
        audit_record(
            Action.VIEW, actor=actor_of(request.user), kind=kind_of(type(shown)), object_id=shown.pk, owner=owner
        )


def listing_record(request: HttpRequest, model: type[Model], rows: Sequence[Any]) -> None:
    """Record that a page of rows was listed: one entry per other owner, with the number of their rows. The note of the
    first entry says how many further ones there are."""
    counts = Counter(row.owner for row in rows if not _is_own(request, row.owner))
    actor, kind = actor_of(request.user), kind_of(model)
    more = counted(len(counts) - 1, "other person", "other people")
    notes = [f"The list also had rows of {more}." if len(counts) > 1 else "", *[SAME_LIST] * (len(counts) - 1)]
    audit_record_each(
        [
            audit_entry(Action.LIST, actor=actor, kind=kind, owner=owner, count=number, note=note)
            for (owner, number), note in zip(counts.items(), notes, strict=False)  # no owners, one note
        ]
    )


def action_record(
    request: HttpRequest, model: type[Model], note: str, rows: Iterable[Model], action: Action = Action.CHANGE
) -> None:
    """Record an action, one entry per row. `note` is a sentence of ours, never a person's text."""
    actor, kind = actor_of(request.user), kind_of(model)
    audit_record_each(
        [audit_entry(action, actor=actor, kind=kind, object_id=row.pk, owner=owner_of(row), note=note) for row in rows]
    )


def fields_note(message: Any) -> str:
    """Return the names of the fields that a form changed, taken from the change message of Django's admin."""
    names = [str(name) for part in message for name in part.get("changed", {}).get("fields", ())]
    return f"Fields: {', '.join(names)}." if names else ""


def kind_of(model: type[Model]) -> str:
    """Return the audit log's name for rows of a model."""
    return str(model._meta.verbose_name)


def owner_of(row: Model) -> Owner | None:
    """Return the owner of a row, or None if it has no owner."""
    owner = getattr(row, "owner", None)
    return row if isinstance(row, Owner) else owner if isinstance(owner, Owner) else None


def _is_own(request: HttpRequest, owner: Owner | None) -> bool:
    return owner is not None and owner.user_id == request.user.pk
