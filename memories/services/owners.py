"""Owners: one for each Django user, and one for each end user of an application."""

from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractBaseUser

from memories.errors import InvalidRequest
from memories.models import Owner


class WriteRequired(Exception):
    """A row has to be stored about the caller, but the function was called without `write`."""


def owner_for_user(user: AbstractBaseUser, *, write: bool = True) -> Owner:
    """Return the owner of a Django user, created if missing. Without `write`, raises WriteRequired instead."""
    return _owner(write, user_id=user.pk)


def is_only_administrator(user: AbstractBaseUser, *, lock: bool = False) -> bool:
    """Return True if the user is the only active administrator. With `lock`, no administrator can be removed until the
    transaction ends: two that remove each other at the same moment would leave none."""
    administrators = get_user_model()._default_manager.filter(is_superuser=True, is_active=True).order_by("pk")
    if lock:
        administrators = administrators.select_for_update(no_key=True)
    return list(administrators.values_list("pk", flat=True)) == [user.pk]


def owner_lock(owner_id: UUID) -> None:
    """Lock an owner's row for the rest of the transaction."""
    Owner.objects.select_for_update(no_key=True).filter(pk=owner_id).first()


def owner_delete(owner: Owner) -> dict[str, int]:
    """Delete an owner and its remaining rows. Return the number of deleted rows by lower-case model name."""
    return {label.rpartition(".")[2].lower(): count for label, count in owner.delete()[1].items()}


def owner_for_end_user(*, parent: Owner, namespace: str, external_id: str, write: bool = True) -> Owner:
    """Return the owner of an application's end user, created if missing; replacing a key of the parent keeps it.
    Without `write`, raises WriteRequired instead of creating one."""
    if not external_id or len(external_id) > 255:
        raise InvalidRequest("An end user's id has 1 to 255 characters.")
    return _owner(write, parent=parent, namespace=namespace, external_id=external_id)


def _owner(write: bool, **lookup: Any) -> Owner:
    if write:
        return Owner.objects.get_or_create(**lookup)[0]
    found = Owner.objects.filter(**lookup).first()
    if found is None:
        raise WriteRequired
    return found


def owner_time_zone_set(owner_id: UUID, name: str) -> None:
    """Set an owner's time zone, such as `Europe/Stockholm`. Raises InvalidRequest for an unknown name."""
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidRequest("There is no such time zone.", param="time_zone") from None
    Owner.objects.filter(pk=owner_id).update(time_zone=name)
