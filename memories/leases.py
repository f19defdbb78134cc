"""Leases: claims in the database that expire, so that a crashed holder does not block others for ever. Called by
reviews.consolidation. A transaction that writes under a lease calls `require`."""

from datetime import timedelta
from uuid import UUID

from django.db import IntegrityError, transaction
from django.utils import timezone

from memories.ids import uuid7
from memories.models import Lease


class LeaseLost(Exception):
    """Somebody else holds this name now, or the time ran out: nothing may be written."""


def take(name: str, *, holder: str, seconds: float) -> UUID | None:
    """Take a free or expired lease for `seconds`; its token, or None while somebody else holds it."""
    now = timezone.now()
    token = uuid7()
    values = {"token": token, "holder": holder[:255], "expires_at": now + timedelta(seconds=seconds)}
    if Lease.objects.filter(name=name, expires_at__lte=now).update(**values):
        return token
    try:
        with transaction.atomic():
            # Insert only: of two that find no row, the primary key lets one through.
            Lease(name=name, **values).save(force_insert=True)
    except IntegrityError:
        return None
    return token


def extend(name: str, token: UUID, *, seconds: float) -> bool:
    """Extend a lease for its holder. Return False if the lease is gone, even if nobody else has taken it yet."""
    now = timezone.now()
    mine = Lease.objects.filter(name=name, token=token, expires_at__gt=now)
    return mine.update(expires_at=now + timedelta(seconds=seconds)) == 1


def require(name: str, token: UUID) -> None:
    """Lock the lease for the rest of the caller's transaction. Raises LeaseLost."""
    mine = Lease.objects.select_for_update().filter(name=name, token=token, expires_at__gt=timezone.now())
    if mine.first() is None:
        raise LeaseLost(name)


def release(name: str, token: UUID) -> None:
    """Give a lease back; nothing happens if it is held by somebody else."""
    Lease.objects.filter(name=name, token=token).delete()


def is_held(name: str) -> bool:
    """Return True if somebody holds it now."""
    return Lease.objects.filter(name=name, expires_at__gt=timezone.now()).exists()
