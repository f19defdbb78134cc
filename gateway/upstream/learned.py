"""Rows of what was learned from refusals, for thirty days: upstream and model, the change, and the server's words.
gateway.upstream.known reads and writes them for its process."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.utils import timezone

from gateway.models import LearnedChange
from gateway.upstream.changes import Change, Condition, Kind

KEPT_FOR = timedelta(days=30)
TOOLLESS_FOR = timedelta(days=1)
"""Until a model that took no tools is offered ours again: another template or an option of its server gives it tools,
and without them it can't change memories."""
MOST_OF_MODEL = 20
_MOST_READ = 5000


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """A change that helped, and the server's words that asked for it."""

    upstream: str
    model: str
    change: Change
    words: str
    learned_at: datetime
    expires_at: datetime


def change_of(row: LearnedChange) -> Change:
    return Change(Kind(row.kind), row.parameter, json.loads(row.value), Condition(row.condition))


@transaction.atomic
def learned_store(found: Iterable[Learned]) -> None:
    """Store what was learned. Only the latest changes of an upstream and model are kept."""
    asked = set()
    for one in found:
        change = one.change
        LearnedChange.objects.update_or_create(
            upstream=one.upstream,
            model=one.model,
            kind=change.kind,
            parameter=change.parameter,
            value=json.dumps(change.value),
            condition=change.condition,
            defaults={"words": one.words, "learned_at": one.learned_at, "expires_at": one.expires_at},
        )
        asked.add((one.upstream, one.model))
    for upstream, model in asked:
        rows = LearnedChange.objects.filter(upstream=upstream, model=model).order_by("-learned_at", "-pk")
        LearnedChange.objects.filter(pk__in=[row.pk for row in rows[MOST_OF_MODEL : 2 * MOST_OF_MODEL]]).delete()


def learned_now() -> list[Learned]:
    """Return the unexpired changes, in the order in which they were learned. One query."""
    rows = LearnedChange.objects.filter(expires_at__gt=timezone.now())
    return [
        Learned(
            upstream=row.upstream,
            model=row.model,
            change=change_of(row),
            words=row.words,
            learned_at=row.learned_at,
            expires_at=row.expires_at,
        )
        for row in reversed(list(rows.order_by("-learned_at", "-pk")[:_MOST_READ]))
    ]


def learned_purge(now: datetime) -> None:
    """Delete expired changes. Idempotent."""
    LearnedChange.objects.filter(expires_at__lte=now).delete()
