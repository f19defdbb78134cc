"""Owners: one for each Django user, and one for each end user that an application names."""

from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractBaseUser

from memories.errors import InvalidRequest
from memories.models import Owner


class WriteRequired(Exception):
    """Something has to be stored about who asks, and this function was told not to write."""


def owner_for_user(user: AbstractBaseUser, *, write: bool = True) -> Owner:
    """Return the owner row of a Django user, made at first sight. Without `write`, raises FirstSight instead."""
    return _owner(write, user_id=user.pk)


def is_only_administrator(user: AbstractBaseUser) -> bool:
    """Return True if nobody else is an active administrator."""
    if not (getattr(user, "is_superuser", False) and user.is_active):
        return False
    administrators = get_user_model()._default_manager.filter(is_superuser=True, is_active=True)
    return not administrators.exclude(pk=user.pk).exists()


def owner_delete(owner: Owner) -> dict[str, int]:
    """Delete an owner with what still hangs off it. Returns how many rows of what, by the lower-case model name."""
    return {label.rpartition(".")[2].lower(): count for label, count in owner.delete()[1].items()}


def owner_for_end_user(*, parent: Owner, namespace: str, external_id: str, write: bool = True) -> Owner:
    """Return the owner row of an application's end user, made at first sight; replacing a key of the parent keeps it.
    Without `write`, raises FirstSight instead of making one."""
    if not external_id or len(external_id) > 255:
        raise InvalidRequest("An end user's id has 1 to 255 characters.")
    return _owner(write, parent=parent, namespace=namespace, external_id=external_id)


def _owner(write: bool, **who: Any) -> Owner:
    if write:
        return Owner.objects.get_or_create(**who)[0]
    found = Owner.objects.filter(**who).first()
    if found is None:
        raise WriteRequired
    return found


def owner_time_zone_set(owner_id: UUID, name: str) -> None:
    """Show an owner's times in this zone (`Europe/Stockholm`). Raises InvalidRequest for a name nobody knows."""
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidRequest("There is no such time zone.", param="time_zone") from None
    Owner.objects.filter(pk=owner_id).update(time_zone=name)
