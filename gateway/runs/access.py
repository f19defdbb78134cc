"""Checks whether the requesters of open runs still have access."""

from collections.abc import Collection
from uuid import UUID

from gateway.keys import valid_keys
from memories.models import Owner

RECHECK_SECONDS = 5.0
"""How often the access of somebody who waits for an answer, or watches it, is checked."""
Requester = tuple[UUID, UUID | None]
"""An owner, and the key of the request; None for a login."""


def without_access(requesters: Collection[Requester]) -> set[Requester]:
    """Return the requesters whose key was revoked or has expired or, for logins, whose account was deactivated or
    deleted. Two queries at most."""
    keys = {key for _, key in requesters if key}
    owners = {owner for owner, key in requesters if key is None}
    valid = set(valid_keys().filter(pk__in=keys).values_list("pk", flat=True)) if keys else set()
    active = Owner.objects.filter(pk__in=owners, user__is_active=True).values_list("pk", flat=True)
    allowed = set(active) if owners else set()
    return {(owner, key) for owner, key in requesters if (key not in valid if key else owner not in allowed)}
