"""Jobs in the queue as JSON. django-q2 signs jobs but pickles them, so anyone who knew the signing key, or a way around
it, could run code in a worker. It has no setting for this, but all its parts use one serializer class to sign and read
packages, which is replaced here (docs/decisions/0018)."""

import json
from datetime import datetime
from typing import Any
from uuid import UUID

from django.core.exceptions import ImproperlyConfigured
from django.core.signing import BadSignature, b64_encode
from django.utils.functional import Promise
from django_q import signing
from django_q.status import Stat

_TIME, _ID, _STATUS = "@time", "@id", "@status"


class JsonSerializer:
    """A serializer for `django_q.signing`. It supports JSON values, datetimes, UUIDs, and the status of a cluster;
    anything else raises TypeError when the job is queued."""

    @staticmethod
    def dumps(package: Any) -> bytes:
        """Return the package as JSON. Raises TypeError."""
        return json.dumps(package, default=_plain, separators=(",", ":")).encode()

    @staticmethod
    def loads(data: bytes) -> Any:
        """Read a package. Raises BadSignature for one that is not JSON, such as a job of an older version: django-q2
        drops it, and the sweeps queue the work again."""
        try:
            return json.loads(data, object_hook=_object)
        except ValueError:
            raise BadSignature("The package is not JSON.") from None


def install() -> None:
    """Make django-q2 use JSON. Raises ImproperlyConfigured if this version of it would still use pickle."""
    signing.PickleSerializer = JsonSerializer
    package = {"args": ["job"]}
    signed = signing.SignedPackage.dumps(package, False)
    plain = b64_encode(JsonSerializer.dumps(package)).decode()
    if signed.split(":", 1)[0] != plain or signing.SignedPackage.loads(signed) != package:
        raise ImproperlyConfigured("This version of django-q2 does not use the JSON serializer for its packages.")


def _plain(value: Any) -> dict[str, Any] | str:
    if isinstance(value, datetime):
        return {_TIME: value.isoformat()}
    if isinstance(value, UUID):
        return {_ID: str(value)}
    if isinstance(value, Stat):
        return {_STATUS: value.__getstate__()}
    if isinstance(value, Promise):  # django-q2's names of cluster states are lazy translations
        return str(value)
    raise TypeError(f"A job cannot contain a {type(value).__name__}.")


def _object(value: dict[str, Any]) -> Any:
    if _TIME in value:
        return datetime.fromisoformat(value[_TIME])
    if _ID in value:
        return UUID(value[_ID])
    if _STATUS in value:
        status = Stat.__new__(Stat)
        status.__dict__.update(value[_STATUS])
        return status
    return value
