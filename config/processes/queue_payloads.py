"""Jobs in the queue as JSON. django-q2 signs jobs but pickles them, so somebody who knew the signing key, or a way
around it, could run code in a worker. It has no setting for this, only one class in a module that all its parts use to
sign and read packages; that class is replaced here (docs/decisions/0018)."""

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
    """The serializer for `django_q.signing`. It supports strings, numbers, lists, objects, times, UUIDs, and the status
    of a cluster; anything else raises TypeError when the job is queued."""

    @staticmethod
    def dumps(package: Any) -> bytes:
        """Return the package as JSON. Raises TypeError."""
        return json.dumps(package, default=_plain, separators=(",", ":")).encode()

    @staticmethod
    def loads(data: bytes) -> Any:
        """Read a package. Raises BadSignature for one that is not JSON. django-q2 drops it, and the sweeps queue the
        work of such jobs of an older version again."""
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
        raise ImproperlyConfigured("This version of django-q2 does not take the JSON serializer for its packages.")


def _plain(value: Any) -> dict[str, Any] | str:
    if isinstance(value, datetime):
        return {_TIME: value.isoformat()}
    if isinstance(value, UUID):
        return {_ID: str(value)}
    if isinstance(value, Stat):
        return {_STATUS: value.__getstate__()}
    if isinstance(value, Promise):  # django-q2 names the states of a cluster with texts to be translated
        return str(value)
    raise TypeError(f"A job carries plain values, not {type(value).__name__}.")


def _object(found: dict[str, Any]) -> Any:
    if _TIME in found:
        return datetime.fromisoformat(found[_TIME])
    if _ID in found:
        return UUID(found[_ID])
    if _STATUS in found:
        status = Stat.__new__(Stat)
        status.__dict__.update(found[_STATUS])
        return status
    return found
