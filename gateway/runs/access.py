"""Whether those who asked for open runs may still ask."""

from collections.abc import Collection
from uuid import UUID

from gateway.keys import valid_keys
from memories.models import Owner

RECHECK_SECONDS = 5.0
"""How often it is looked at whether somebody who waits for an answer or watches it may still do so."""
Requester = tuple[UUID, UUID | None]
"""An owner, and the key that asked; None for a login."""


def without_access(requesters: Collection[Requester]) -> set[Requester]:
    """Return those whose key was revoked or has expired, and without a key those whose account was deactivated or
    deleted. Two queries at most."""
    keys = {key for _, key in requesters if key}
    owners = {owner for owner, key in requesters if key is None}
    valid = set(valid_keys().filter(pk__in=keys).values_list("pk", flat=True)) if keys else set()
    active = Owner.objects.filter(pk__in=owners, user__is_active=True).values_list("pk", flat=True)
    may = set(active) if owners else set()
    return {(owner, key) for owner, key in requesters if (key not in valid if key else owner not in may)}
