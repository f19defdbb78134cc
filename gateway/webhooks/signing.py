"""Signs webhooks as Standard Webhooks defines it (https://www.standardwebhooks.com).

A webhook's secret is not stored: it is derived from the installation's signing key and the webhook's id, so that a copy
of the database does not suffice to sign."""

import base64
import hashlib
import hmac
from datetime import datetime
from uuid import UUID

from django.conf import settings
from django.utils.crypto import constant_time_compare, salted_hmac

PREFIX = "whsec_"
_SALT = "gateway.webhooks.signing"


def new_secret(webhook_id: UUID) -> str:
    """Return the secret of a new webhook, as its owner receives it."""
    return _secret(webhook_id, settings.SECRET_KEY)


def secret_of(webhook_id: UUID, sha256: str) -> str | None:
    """Return the secret of a webhook with this hash, from the signing key or one of the older keys
    (DAYBOOK_SECRET_KEY_FALLBACKS); None if no key matches."""
    secrets = (_secret(webhook_id, key) for key in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS))
    return next((secret for secret in secrets if constant_time_compare(secret_sha256(secret), sha256)), None)


def is_of_this_key(webhook_id: UUID, sha256: str) -> bool:
    """Return True if a webhook's secret, given by its hash, was derived from the current signing key."""
    return constant_time_compare(secret_sha256(new_secret(webhook_id)), sha256)


def secret_sha256(secret: str) -> str:
    """Return the hash of a secret that is stored."""
    return hashlib.sha256(secret.encode()).hexdigest()


def signed_headers(secret: str, message_id: str, body: bytes, at: datetime) -> dict[str, str]:
    """Return the signature headers of a delivery at that time."""
    timestamp = str(int(at.timestamp()))
    key = base64.b64decode(secret.removeprefix(PREFIX))
    content = b".".join((message_id.encode(), timestamp.encode(), body))
    signature = base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode()
    return {"webhook-id": message_id, "webhook-timestamp": timestamp, "webhook-signature": f"v1,{signature}"}


def _secret(webhook_id: UUID, key: str | bytes) -> str:
    derived = salted_hmac(_SALT, webhook_id.bytes, secret=key, algorithm="sha256").digest()
    return PREFIX + base64.b64encode(derived).decode()
