"""An in-memory copy of the upstream settings from the agents file and the admin, and of the changes learned from
refusals. Requests never query the database for these: while there are requests, a background thread reads the rows
every half minute and writes newly learned changes, so other processes have them within a minute. A learned change
expires after thirty days."""

import json
import logging
import math
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import DatabaseError, transaction
from django.utils import timezone
from pydantic import ValidationError

from gateway.models import Configuration, LearnedChange
from gateway.upstream.changes import NO_OWN_TOOLS, Change, Condition, Kind
from gateway.upstream_options import UpstreamSettings
from memories.clocks import lease_over
from memories.database.access import write_later

logger = logging.getLogger("daybook.upstreams")

SECTION = "upstreams"
"""The name of the Configuration row and of the section in the agents file."""
LIFETIME = timedelta(days=30)
NO_TOOLS_LIFETIME = timedelta(days=1)
"""How long a model that refused tools is not offered ours. Shorter, since another template or server option can give it
tools, and without them it can't change memories."""
MAX_PER_MODEL = 20
_MAX_READ = 5000
_IDENTIFIES = ("upstream", "model", "kind", "parameter", "value", "condition")
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


def row_of(change: Change, upstream: str, model: str, words: str, now: datetime) -> LearnedChange:
    """Return an unsaved row for a change that the server accepted. `words` are those of its refusal."""
    return LearnedChange(
        upstream=upstream,
        model=model,
        kind=change.kind,
        parameter=change.parameter,
        value=json.dumps(change.value),
        condition=change.condition,
        words=words,
        learned_at=now,
        expires_at=now + (NO_TOOLS_LIFETIME if change == NO_OWN_TOOLS else LIFETIME),
    )


def change_of(row: LearnedChange) -> Change:
    return Change(Kind(row.kind), row.parameter, json.loads(row.value), Condition(row.condition))


@transaction.atomic
def learned_store(rows: Sequence[LearnedChange]) -> None:
    """Store rows, keeping only the latest MAX_PER_MODEL of each model."""
    targets = {(row.upstream, row.model) for row in rows}
    for row in rows:
        values = {name: getattr(row, name) for name in ("words", "learned_at", "expires_at")}
        LearnedChange.objects.update_or_create(**{name: getattr(row, name) for name in _IDENTIFIES}, defaults=values)
    for upstream, model in targets:
        stored = LearnedChange.objects.filter(upstream=upstream, model=model).order_by("-learned_at", "-pk")
        LearnedChange.objects.filter(pk__in=[row.pk for row in stored[MAX_PER_MODEL : 2 * MAX_PER_MODEL]]).delete()


def learned_now() -> list[LearnedChange]:
    """Return the unexpired rows, oldest first. One query."""
    rows = LearnedChange.objects.filter(expires_at__gt=timezone.now()).order_by("-learned_at", "-pk")
    return list(reversed(rows[:_MAX_READ]))


def learned_purge(now: datetime) -> None:
    LearnedChange.objects.filter(lease_over("expires_at", now, lease=LIFETIME)).delete()


upstream_cache = UpstreamCache()
