"""Tokens by owner: who used most in the period, the cost, and today's use of the quotas."""

from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import QuerySet, Sum, UUIDField
from django.http import HttpRequest

from gateway.agents.configuration import consolidation_settings
from gateway.limits.money import Money, dollars, token_sums
from gateway.models import Run
from memories.admin.columns import viewable_url
from memories.models import Owner
from reviews.admin.dashboard.figures import Usage
from reviews.admin.dashboard.periods import Period, group_of
from reviews.models import ConsolidationDay, ConsolidationRun, ReviewRun
from reviews.quotas import usages_today

MAX_OWNERS = 20
# Only the groups of owner and model with the most tokens are read; all other owners count as "All others".
_MAX_GROUPS = 5_000
_NEAR_PERCENT = 90
_OWNER = group_of("owner", UUIDField())
_TABLES: tuple[tuple[type[Run] | type[ReviewRun], str], ...] = ((Run, "started_at"), (ReviewRun, "created_at"))


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaUse:
    """Today's use of a quota. `limit` is 0 if there is no quota."""

    used: int
    limit: int

    @property
    def percent(self) -> int:
        return min(100, 100 * self.used // self.limit) if self.limit else 0

    @property
    def is_near(self) -> bool:
        return self.percent >= _NEAR_PERCENT


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerUse:
    """An owner's tokens in the period, and today's use of the quotas."""

    name: str
    link: str = ""
    turns: int
    reviews: int
    consolidation: int
    spent: float
    quotas: tuple[QuotaUse, ...] = ()  # reviews, their tokens, tokens of consolidation

    @property
    def total(self) -> int:
        return self.turns + self.reviews + self.consolidation

    @property
    def cost(self) -> str:
        return dollars(self.spent)


def owners_table(request: HttpRequest, period: Period, money: Money, usage: Usage, now: datetime) -> list[OwnerUse]:
    """Return at most MAX_OWNERS owners, most tokens first, and a row for the rest of `usage`. Seven queries, ten with a
    cold cache."""
    spent = defaultdict[UUID, float](float)
    turns, reviewed = (_by_owner(period, table, column, money, spent) for table, column in _TABLES)
    consolidated = Counter[UUID]()
    used = ConsolidationRun.objects.filter(tokens__gt=0).annotate(whose=_OWNER).order_by().values_list("whose")
    by_owner = used.annotate(sum=Sum("tokens")).order_by("-sum")
    for pk, tokens_used in period.read("consolidating-owners", "created_at", by_owner, _MAX_GROUPS):
        consolidated[pk] += tokens_used
    all_tokens = turns + reviewed + consolidated
    chosen = [pk for pk, _ in sorted(all_tokens.items(), key=lambda item: (-item[1], item[0]))[:MAX_OWNERS]]
    owners = Owner.objects.select_related("user").in_bulk(chosen)
    today = _today(chosen, now)
    table = [
        OwnerUse(
            name=str(owners[pk]),
            link=viewable_url(request, Owner, "change", pk),
            turns=turns[pk],
            reviews=reviewed[pk],
            consolidation=consolidated[pk],
            spent=spent[pk],
            quotas=today[pk],
        )
        for pk in chosen
        if pk in owners  # else it was deleted just now
    ]
    others = _others(table, usage)
    return [*table, others] if others.total > 0 else table


def _others(table: list[OwnerUse], usage: Usage) -> OwnerUse:
    return OwnerUse(
        name="All others",
        turns=usage.total("Turns") - sum(use.turns for use in table),
        reviews=usage.total("Reviews") - sum(use.reviews for use in table),
        consolidation=usage.total("Consolidation") - sum(use.consolidation for use in table),
        spent=max(0.0, sum(usage.spent.values()) - sum(use.spent for use in table)),
    )


def _by_owner(
    period: Period, table: type[Run] | type[ReviewRun], column: str, money: Money, spent: dict[UUID, float]
) -> "Counter[UUID]":
    """Return the tokens by owner, and add their cost to `spent`."""
    rows: QuerySet[Any] = table._default_manager.annotate(whose=_OWNER).order_by()
    groups = rows.values_list("whose", "model").annotate(**token_sums()).filter(tokens__gt=0).order_by("-tokens")
    tokens = Counter[UUID]()
    for pk, model, total, written in period.read(f"{table.__name__}-owners", column, groups, _MAX_GROUPS):
        tokens[pk] += int(total or 0)
        spent[pk] += money.cost(model, total, written)
    return tokens


def _today(owners: list[UUID], now: datetime) -> dict[UUID, tuple[QuotaUse, ...]]:
    """Return each owner's use of the quotas on this UTC day."""
    reviewed, day = usages_today(owners, now), now.astimezone(UTC).date()
    consolidated = dict(ConsolidationDay.objects.filter(owner__in=owners, day=day).values_list("owner", "tokens"))
    daily_tokens = consolidation_settings().max_tokens_per_day
    return {
        pk: (
            QuotaUse(used=reviewed[pk].reviews, limit=settings.REVIEWS_PER_DAY),
            QuotaUse(used=reviewed[pk].tokens, limit=settings.REVIEW_TOKENS_PER_DAY),
            QuotaUse(used=consolidated.get(pk, 0), limit=daily_tokens),
        )
        for pk in owners
    }
