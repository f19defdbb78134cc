"""The record of administrators: what they did, and whose memories and conversations they opened.
Kept in Django's own admin log, with one more kind of entry; it names rows, and never holds their words."""

from collections.abc import Sequence
from typing import Any

from django.contrib.admin.models import ADDITION, CHANGE, DELETION, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db.models import Model
from django.http import HttpRequest

from memories.models import Owner

VIEW = 4
_WORDS = {ADDITION: "Added", CHANGE: "Changed", DELETION: "Deleted", VIEW: "Opened"}


def opening_record(request: HttpRequest, shown: Model) -> None:
    """Record that a row of somebody else was opened. One's own is nobody's business."""
    if _is_own(request, getattr(shown, "owner", None)):
        return
    _record(request, type(shown), str(shown.pk), str(shown), f"Opened; owner {shown.owner_id}.")  # type: ignore[attr-defined]


def listing_record(request: HttpRequest, model: type[Model], rows: Sequence[Any]) -> None:
    """Record that a page of rows was listed, with how many rows of how many owners."""
    others = [row for row in rows if not _is_own(request, row.owner)]
    if others:
        owners = len({row.owner_id for row in others})
        kind = model._meta.verbose_name if len(others) == 1 else model._meta.verbose_name_plural
        _record(
            request,
            model,
            None,
            str(kind),
            f"Listed {len(others)} {kind} of {owners} owner{'s' if owners > 1 else ''}.",
        )


def deed_record(request: HttpRequest, model: type[Model], what: str, rows: Sequence[Model]) -> None:
    """Record an action on rows: its name and the rows' keys."""
    names = ", ".join(str(row) for row in rows[:20]) + (", …" if len(rows) > 20 else "")
    LogEntry.objects.create(
        user_id=str(request.user.pk),
        content_type=ContentType.objects.get_for_model(model),
        object_id=str(rows[0].pk) if len(rows) == 1 else None,
        object_repr=names[:200],
        action_flag=CHANGE,
        change_message=what,
    )


def log_word(flag: int) -> str:
    """A log entry's kind in a word."""
    return _WORDS.get(flag, str(flag))


def _is_own(request: HttpRequest, owner: Owner | None) -> bool:
    return owner is not None and owner.user_id == request.user.pk


def _record(request: HttpRequest, model: type[Model], key: str | None, name: str, message: str) -> None:
    LogEntry.objects.create(
        user_id=str(request.user.pk),
        content_type=ContentType.objects.get_for_model(model),
        object_id=key,
        object_repr=name[:200],
        action_flag=VIEW,
        change_message=message,
    )
