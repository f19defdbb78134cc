"""Records when keys were last used. Uses are collected when a key is looked up, and stored for many keys at once
outside of requests, so that a GET never waits for the database lock."""

import logging
import threading
from uuid import UUID

from django.db import Error as DatabaseError
from django.utils import timezone

from gateway.jobs import Throttle
from gateway.models import ApiKey
from memories.database.access import LATER_SECONDS, write_later

logger = logging.getLogger("daybook.keys")
_lock = threading.Lock()
_noted: set[UUID] = set()
_writes = Throttle()


def record_key_use(key_id: UUID) -> None:
    """Record that a key was used now. It is stored some seconds later, together with other keys."""
    with _lock:
        _noted.add(key_id)
        is_due = _writes.check(pause=LATER_SECONDS)
    if is_due:
        write_later(_store)


def _store() -> None:
    with _lock:
        keys = list(_noted)
        _noted.clear()
    try:
        ApiKey.objects.filter(pk__in=keys).update(last_used_at=timezone.now())
    except DatabaseError:
        logger.info("The last use of %s keys was not stored: the database is busy.", len(keys))
