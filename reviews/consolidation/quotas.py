"""Quotas of consolidation: model requests and tokens, per run and per owner and day (UTC). A request reserves its
estimate before it is sent, and its usage is recorded afterwards, even if its answer cannot be used."""

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from gateway.agents.settings import ConsolidationSettings
from reviews.consolidation.errors import QuotaExceeded
from reviews.models import ConsolidationDay, ConsolidationRun
from reviews.quotas import begin_of


@dataclass(slots=True, kw_only=True)
class Spent:
    """Requests and tokens."""

    requests: int = 0
    tokens: int = 0


@dataclass(slots=True)
class Meter:
    """The running sums of a worker's slice; other workers' share of the day comes in with every booking."""

    limits: ConsolidationSettings
    run: Spent
    day: Spent
    reserved: Spent

    @classmethod
    def of(cls, run: ConsolidationRun, limits: ConsolidationSettings) -> "Meter":
        """Return the meter of a run, from the rows as they are now."""
        return cls(limits, Spent(requests=run.requests, tokens=run.tokens), day_spent(run.owner_id), Spent())

    def reserve(self, tokens: int, *, leave: Spent | None = None) -> None:
        """Reserve an estimate; `leave` keeps that much of the run's quota free for later. Raises QuotaExceeded."""
        leave = leave or Spent()
        for scope, spent, requests, most in (
            ("day", self.day, self.limits.max_requests_per_day, self.limits.max_tokens_per_day),
            ("run", self.run, self.limits.max_requests_per_run, self.limits.max_tokens_per_run),
        ):
            kept = leave if scope == "run" else Spent()
            if spent.requests + self.reserved.requests + 1 + kept.requests > requests:
                raise QuotaExceeded(scope)
            if spent.tokens + self.reserved.tokens + tokens + kept.tokens > most:
                raise QuotaExceeded(scope)
        self.reserved.requests += 1
        self.reserved.tokens += tokens

    def settle(self, reserved: int, run: Spent, day: Spent) -> None:
        """Replace the reservation of a finished request by the sums of the rows."""
        self.reserved.requests -= 1
        self.reserved.tokens -= reserved
        self.run, self.day = run, day


@transaction.atomic
def book_usage(run_id: UUID, owner_id: UUID, tokens: int) -> tuple[Spent, Spent]:
    """Add a request to the run and to the owner's day. Returns the sums of both, run first."""
    day, _ = ConsolidationDay.objects.get_or_create(owner_id=owner_id, day=today())
    for rows in (ConsolidationDay.objects.filter(pk=day.pk), ConsolidationRun.objects.filter(pk=run_id)):
        rows.update(requests=F("requests") + 1, tokens=F("tokens") + tokens)
    run = ConsolidationRun.objects.values_list("requests", "tokens").get(pk=run_id)
    return Spent(requests=run[0], tokens=run[1]), day_spent(owner_id)


def day_spent(owner_id: UUID) -> Spent:
    """Return what the owner's day took so far."""
    row = ConsolidationDay.objects.filter(owner_id=owner_id, day=today()).first()
    return Spent(requests=row.requests, tokens=row.tokens) if row else Spent()


def today() -> date:
    """Return the day that is counted (UTC)."""
    return timezone.now().date()


def tomorrow() -> datetime:
    """Return when the next day begins."""
    return begin_of(today() + timedelta(days=1))
