"""Storage for the changes learned from refusals. Each row has the upstream and model, the change, and the server's
words, and expires after thirty days. gateway.upstream.cache caches the rows."""

import json
from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db import transaction
from django.utils import timezone

from gateway.models import LearnedChange
from gateway.upstream.changes import NO_OWN_TOOLS, Change, Condition, Kind

LIFETIME = timedelta(days=30)
NO_TOOLS_LIFETIME = timedelta(days=1)
"""How long a model that refused tools is not offered ours. Shorter, since another template or server option can give it
tools, and without them it can't change memories."""
MAX_PER_MODEL = 20
_MAX_READ = 5000
_IDENTIFIES = ("upstream", "model", "kind", "parameter", "value", "condition")


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
    LearnedChange.objects.filter(expires_at__lte=now).delete()
