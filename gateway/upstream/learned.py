"""Rows of what was learned from refusals, for thirty days: upstream and model, the change, and the server's words.
gateway.upstream.known reads and writes them for its process."""

import json
from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db import transaction
from django.utils import timezone

from gateway.models import LearnedChange
from gateway.upstream.changes import NO_OWN_TOOLS, Change, Condition, Kind

KEPT_FOR = timedelta(days=30)
TOOLLESS_FOR = timedelta(days=1)
"""Until a model that took no tools is offered ours again: another template or an option of its server gives it tools,
and without them it can't change memories."""
MOST_OF_MODEL = 20
_MOST_READ = 5000
_IDENTIFIES = ("upstream", "model", "kind", "parameter", "value", "condition")


def row_of(change: Change, upstream: str, model: str, words: str, now: datetime) -> LearnedChange:
    """Return the row of a change that helped, with the server's words that asked for it; it is not stored yet."""
    return LearnedChange(
        upstream=upstream,
        model=model,
        kind=change.kind,
        parameter=change.parameter,
        value=json.dumps(change.value),
        condition=change.condition,
        words=words,
        learned_at=now,
        expires_at=now + (TOOLLESS_FOR if change == NO_OWN_TOOLS else KEPT_FOR),
    )


def change_of(row: LearnedChange) -> Change:
    return Change(Kind(row.kind), row.parameter, json.loads(row.value), Condition(row.condition))


@transaction.atomic
def learned_store(rows: Sequence[LearnedChange]) -> None:
    """Store what was learned. Only the latest changes of an upstream and model are kept."""
    asked = {(row.upstream, row.model) for row in rows}
    for row in rows:
        values = {name: getattr(row, name) for name in ("words", "learned_at", "expires_at")}
        LearnedChange.objects.update_or_create(**{name: getattr(row, name) for name in _IDENTIFIES}, defaults=values)
    for upstream, model in asked:
        stored = LearnedChange.objects.filter(upstream=upstream, model=model).order_by("-learned_at", "-pk")
        LearnedChange.objects.filter(pk__in=[row.pk for row in stored[MOST_OF_MODEL : 2 * MOST_OF_MODEL]]).delete()


def learned_now() -> list[LearnedChange]:
    """Return the unexpired changes, in the order in which they were learned. One query."""
    rows = LearnedChange.objects.filter(expires_at__gt=timezone.now()).order_by("-learned_at", "-pk")
    return list(reversed(rows[:_MOST_READ]))


def learned_purge(now: datetime) -> None:
    """Delete expired changes. Idempotent."""
    LearnedChange.objects.filter(expires_at__lte=now).delete()
