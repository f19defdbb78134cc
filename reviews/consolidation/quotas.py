"""Quotas of consolidation: model requests and tokens, per run and per owner and day (UTC). A request reserves an
estimate before it is sent; its usage is recorded afterwards, even if the answer is unusable."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import F

from gateway.agents.settings import ConsolidationSettings
from gateway.limits.spending import today
from reviews.errors import QuotaExceeded
from reviews.models import ConsolidationDay, ConsolidationRun
from reviews.quotas import day_start


@dataclass(slots=True, kw_only=True)
class Usage:
    requests: int = 0
    tokens: int = 0


class Meter:
    """The usage of a run and of its owner's day, in memory. Each recorded request refreshes it from the rows, which
    include the usage of other workers."""

    def __init__(self, run: ConsolidationRun, limits: ConsolidationSettings) -> None:
        self.limits = limits
        self.run, self.day = Usage(requests=run.requests, tokens=run.tokens), day_usage(run.owner_id)
        self.reserved = Usage()

    def reserve(self, tokens: int, *, keep_free: Usage | None = None) -> None:
        """Reserve a request and an estimate of its tokens, and leave `keep_free` of the run's quota unused. Raises
        QuotaExceeded."""
        for scope, used, free, max_requests, max_tokens in (
            ("day", self.day, None, self.limits.max_requests_per_day, self.limits.max_tokens_per_day),
            ("run", self.run, keep_free, self.limits.max_requests_per_run, self.limits.max_tokens_per_run),
        ):
            free = free or Usage()
            if used.requests + self.reserved.requests + 1 + free.requests > max_requests:
                raise QuotaExceeded(scope)
            if used.tokens + self.reserved.tokens + tokens + free.tokens > max_tokens:
                raise QuotaExceeded(scope)
        self.reserved.requests += 1
        self.reserved.tokens += tokens

    def settle(self, reserved: int, run: Usage, day: Usage) -> None:
        """Replace the reservation of a finished request with the recorded usage."""
        self.reserved.requests -= 1
        self.reserved.tokens -= reserved
        self.run, self.day = run, day


@transaction.atomic
def record_usage(run_id: UUID, owner_id: UUID, tokens: int) -> tuple[Usage, Usage]:
    """Add a request to the run and to the owner's day. Returns the totals of the run and of the day."""
    day, _ = ConsolidationDay.objects.get_or_create(owner_id=owner_id, day=today())
    for rows in (ConsolidationDay.objects.filter(pk=day.pk), ConsolidationRun.objects.filter(pk=run_id)):
        rows.update(requests=F("requests") + 1, tokens=F("tokens") + tokens)
    run = ConsolidationRun.objects.values_list("requests", "tokens").get(pk=run_id)
    return Usage(requests=run[0], tokens=run[1]), day_usage(owner_id)


def day_usage(owner_id: UUID) -> Usage:
    """Return the owner's usage today."""
    row = ConsolidationDay.objects.filter(owner_id=owner_id, day=today()).first()
    return Usage(requests=row.requests, tokens=row.tokens) if row else Usage()


def tomorrow() -> datetime:
    """Return the beginning of the next day (UTC)."""
    return day_start(today() + timedelta(days=1))
