"""What this process knows of its upstreams beside the environment: the settings of the agents file and the admin, and
what was learned from refusals. No request uses the database for this. While there are requests, a background thread
reads the rows every half minute and writes what was learned, so other processes know it within a minute."""

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

from gateway.agents.upstream_options import UpstreamSettings
from gateway.models import Configuration, LearnedChange
from gateway.upstream.changes import Change
from gateway.upstream.learned import change_of, learned_now, learned_store, row_of
from memories.database.access import write_later

logger = logging.getLogger("daybook.upstreams")

SECTION = "upstreams"
"""The row of Configuration, and the section of the agents file."""
_MOST_PENDING = 100
_NOTHING: Mapping[str, Any] = {}
_NONE: Mapping[Change, LearnedChange] = {}

# Changes with their rows, in the order in which they were learned, by upstream and model.
Learned = Mapping[tuple[str, str], Mapping[Change, LearnedChange]]


@dataclass(slots=True)
class Known:
    """The knowledge of one process. What is read is replaced as a whole, so readers need no lock."""

    _settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    _learned: Learned = field(default_factory=dict)
    _pending: list[LearnedChange] = field(default_factory=list)
    _looked_at: float = -math.inf
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def settings_of(self, upstream: str) -> Mapping[str, Any]:
        """Return the settings of an upstream from the agents file or the admin: `dialect` and `options`, if given."""
        self._look()
        return self._settings.get(upstream, _NOTHING)

    def changes(self, upstream: str, model: str) -> list[Change]:
        """Return the unexpired changes that were learned for a model, in the order in which they were learned."""
        self._look()
        now = timezone.now()
        found = self._learned.get((upstream, model), _NONE).items()
        return [change for change, row in found if row.expires_at > now]

    def learn(self, upstream: str, model: str, changes: Mapping[Change, str]) -> None:
        """Remember changes that helped, with the server's words. This process uses them at once."""
        now = timezone.now()
        found = [row_of(change, upstream, model, words, now) for change, words in changes.items()]
        for change in changes:
            logger.info("learned of %s, model %s: %s", upstream, model, change)
        with self._lock:
            self._learned = _with(self._learned, found)
            self._pending = [*self._pending, *found][-_MOST_PENDING:]
        write_later(self.sync)

    def sync(self) -> None:
        """Write what was learned here, and read the rows. If the database is busy it is tried again later."""
        self._looked_at = time.monotonic()
        with self._lock:
            pending, self._pending = self._pending, []
        try:
            if pending:
                learned_store(pending)
            self._settings, learned = _settings_read(), _with({}, learned_now())
        except (DatabaseError, ValueError) as error:  # or the row is of a later release
            logger.info("What is known of upstreams was not stored or read: %s.", type(error).__name__)
            with self._lock:
                self._pending = [*pending, *self._pending][-_MOST_PENDING:]
            return
        with self._lock:
            self._learned = _with(learned, self._pending)

    def forget(self) -> None:
        """Forget everything; the next look-up reads the database again."""
        with self._lock:
            self._settings, self._learned, self._pending, self._looked_at = {}, {}, [], -math.inf

    def _look(self) -> None:
        pause = settings.UPSTREAM_READ_SECONDS
        if pause and time.monotonic() - self._looked_at >= pause:
            self._looked_at = time.monotonic()
            write_later(self.sync)  # requests do not wait for the database


def _with(known: Learned, more: Sequence[LearnedChange]) -> Learned:
    joined = dict(known)
    for row in more:
        change, asked = change_of(row), (row.upstream, row.model)
        others = {other: row for other, row in joined.get(asked, _NONE).items() if other != change}
        joined[asked] = {**others, change: row}
    return joined


def _settings_read() -> dict[str, Mapping[str, Any]]:
    stored = Configuration.objects.filter(section=SECTION).values_list("value", flat=True).first() or {}
    found: dict[str, Mapping[str, Any]] = {}
    for name, value in stored.items():
        try:
            found[name] = UpstreamSettings.model_validate(value).model_dump(exclude_unset=True)
        except ValidationError:
            logger.warning("The stored settings of the upstream %s cannot be used; save them again.", name)
    return found


known = Known()
