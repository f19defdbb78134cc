"""An in-memory copy of the upstream settings from the agents file and the admin, and of the changes learned from
refusals. Requests never query the database for these: while there are requests, a background thread reads the rows
every half minute and writes newly learned changes, so other processes have them within a minute."""

import logging
import math
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings
from django.db import DatabaseError
from django.utils import timezone
from pydantic import ValidationError

from gateway.models import Configuration, LearnedChange
from gateway.upstream.changes import Change
from gateway.upstream.learned import change_of, learned_now, learned_store, row_of
from gateway.upstream_options import UpstreamSettings
from memories.database.access import write_later

logger = logging.getLogger("daybook.upstreams")

SECTION = "upstreams"
"""The name of the Configuration row and of the section in the agents file."""
_MAX_PENDING = 100
_NO_SETTINGS: Mapping[str, Any] = {}
_NO_CHANGES: Mapping[Change, LearnedChange] = {}

# By upstream and model: the changes with their rows, in the order in which they were learned.
Learned = Mapping[tuple[str, str], Mapping[Change, LearnedChange]]


@dataclass(slots=True)
class UpstreamCache:
    """The copy of one process. Writers replace the mappings as a whole, so readers need no lock."""

    _settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    _learned: Learned = field(default_factory=dict)
    _pending: list[LearnedChange] = field(default_factory=list)
    _synced_at: float = -math.inf
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def settings_of(self, upstream: str) -> Mapping[str, Any]:
        """Return an upstream's settings from the agents file or the admin: `dialect` and `options`, if given."""
        self._sync_if_due()
        return self._settings.get(upstream, _NO_SETTINGS)

    def changes(self, upstream: str, model: str) -> list[Change]:
        """Return the unexpired changes learned for a model, oldest first."""
        self._sync_if_due()
        now = timezone.now()
        learned = self._learned.get((upstream, model), _NO_CHANGES).items()
        return [change for change, row in learned if row.expires_at > now]

    def learn(self, upstream: str, model: str, changes: Mapping[Change, str]) -> None:
        """Cache changes that a server accepted, with the words of its refusal, and store them in the background."""
        now = timezone.now()
        rows = [row_of(change, upstream, model, words, now) for change, words in changes.items()]
        for change in changes:
            logger.info("learned of %s, model %s: %s", upstream, model, change)
        with self._lock:
            self._learned = _with(self._learned, rows)
            self._pending = [*self._pending, *rows][-_MAX_PENDING:]
        write_later(self.sync)

    def sync(self) -> None:
        """Write what this process learned and read all rows. If the database is busy, the next sync retries."""
        self._synced_at = time.monotonic()
        with self._lock:
            pending, self._pending = self._pending, []
        try:
            if pending:
                learned_store(pending)
            self._settings, learned = _settings_read(), _with({}, learned_now())
        except (DatabaseError, ValueError) as error:  # ValueError: the row is from a later release
            logger.info("What is known of upstreams was not stored or read: %s.", type(error).__name__)
            with self._lock:
                self._pending = [*pending, *self._pending][-_MAX_PENDING:]
            return
        with self._lock:
            self._learned = _with(learned, self._pending)

    def forget(self) -> None:
        """Forget everything. The next look-up triggers a sync."""
        with self._lock:
            self._settings, self._learned, self._pending, self._synced_at = {}, {}, [], -math.inf

    def _sync_if_due(self) -> None:
        pause = settings.UPSTREAM_READ_SECONDS
        if pause and time.monotonic() - self._synced_at >= pause:
            self._synced_at = time.monotonic()
            write_later(self.sync)  # requests do not wait for the database


def _with(learned: Learned, rows: Sequence[LearnedChange]) -> Learned:
    merged = dict(learned)
    for row in rows:
        change, target = change_of(row), (row.upstream, row.model)
        others = {other: row for other, row in merged.get(target, _NO_CHANGES).items() if other != change}
        merged[target] = {**others, change: row}
    return merged


def _settings_read() -> dict[str, Mapping[str, Any]]:
    stored = Configuration.objects.filter(section=SECTION).values_list("value", flat=True).first() or {}
    valid: dict[str, Mapping[str, Any]] = {}
    for name, value in stored.items():
        try:
            valid[name] = UpstreamSettings.model_validate(value).model_dump(exclude_unset=True)
        except ValidationError:
            logger.warning("The stored settings of the upstream %s cannot be used; save them again.", name)
    return valid


upstream_cache = UpstreamCache()
