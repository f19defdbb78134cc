"""API keys: made, found and revoked. A key is 256 random bits, shown once and stored as its SHA-256."""

import hashlib
import secrets
from collections.abc import Sequence

from django.db import transaction
from django.utils import timezone

from gateway.models import Agent, ApiKey
from memories.errors import InvalidRequest
from memories.models import Owner

PREFIX = "dbk_"


def api_key_create(
    *,
    owner: Owner,
    name: str,
    plain: str | None = None,
    read_only: bool = False,
    trusted: bool = False,
    agents: Sequence[str] = (),
    requests_per_minute: int = 0,
) -> tuple[ApiKey, str]:
    """A new key and its plain text, which is nowhere kept. `plain` takes a given one (first start).

    Raises InvalidRequest for an unknown agent or a given key that is no key."""
    if unknown := sorted(set(agents) - set(Agent.objects.filter(name__in=agents).values_list("name", flat=True))):
        raise InvalidRequest(f"There is no agent {', '.join(unknown)}.", param="agents")
    plain = plain or PREFIX + secrets.token_urlsafe(32)
    if not plain.startswith(PREFIX) or len(plain) < 24:
        raise InvalidRequest(f"A key starts with {PREFIX} and has at least 24 characters.")
    key = ApiKey.objects.create(
        owner=owner,
        name=name[:80],
        prefix=plain[:8],
        sha256=key_hash(plain),
        read_only=read_only,
        trusted=trusted,
        agents=list(agents),
        requests_per_minute=requests_per_minute,
    )
    return key, plain


@transaction.atomic
def api_key_revoke(key: ApiKey) -> None:
    """Revoke a key; it stays listed."""
    ApiKey.objects.filter(pk=key.pk, revoked_at__isnull=True).update(revoked_at=timezone.now())


def key_hash(plain: str) -> str:
    """How a key is stored and found. Plain SHA-256: 256 random bits need no slow hash."""
    return hashlib.sha256(plain.encode()).hexdigest()
