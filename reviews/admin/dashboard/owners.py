"""Tokens by owner: who used most in the period, what it cost, and how far today's ceilings are."""

from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib import admin
from django.db.models import Count, F, QuerySet, Sum
from django.db.models.functions import Coalesce
from django.http import HttpRequest
from django.urls import reverse

from gateway.agents.configuration import memory_settings
from gateway.models import Run
from memories.models import Owner
from reviews.admin.dashboard.figures import Used
from reviews.admin.dashboard.money import Money, Tokens, dollars, token_sums
from reviews.admin.dashboard.periods import Period, begin_of
from reviews.models import ConsolidationDay, ConsolidationRun, ReviewRun

SHOWN = 20
# Of each kind of use so many owners are looked at before the ones with most of all kinds are chosen.
_CANDIDATES = 200
_NEARLY = 90  # percent


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceiling:
    """Today's use beside its ceiling; `most` 0: there is none."""

    used: int
    most: int

    @property
    def percent(self) -> int:
        """How much of it is used."""
        return min(100, 100 * self.used // self.most) if self.most else 0

    @property
    def is_near(self) -> bool:
        """Nearly reached, or reached."""
        return self.percent >= _NEARLY


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerUse:
    """One owner's tokens in the period, and today's use beside the ceilings."""

    name: str
    link: str = ""
    turns: int
    reviews: int
    consolidation: int
    spent: float
    ceilings: tuple[Ceiling, ...] = ()  # reviews, their tokens, tokens of consolidation

    @property
    def total(self) -> int:
        """All tokens."""
        return self.turns + self.reviews + self.consolidation

    @property
    def cost(self) -> str:
        """Money, as it is shown."""
        return dollars(self.spent)


def owners_table(request: HttpRequest, period: Period, money: Money, used: Used, now: datetime) -> list[OwnerUse]:
    """At most twenty owners, most tokens first, and last the rest of what was `used`, as a row. Ten queries."""
    runs = Run.objects.filter(pk__gte=period.first_id, started_at__gte=period.since)
    reviews = ReviewRun.objects.filter(pk__gte=period.first_id, created_at__gte=period.since)
    passes = ConsolidationRun.objects.filter(pk__gte=period.first_id, created_at__gte=period.since, tokens__gt=0)
    some = {*_most(runs, "usage"), *_most(reviews, "usage"), *_most(passes, "tokens")}
    turns, spent = _by_owner(runs.filter(owner__in=some), money)
    reviewed, spent_too = _by_owner(reviews.filter(owner__in=some), money)
    consolidated = Counter[UUID](
        dict(passes.filter(owner__in=some).order_by().values_list("owner").annotate(Sum("tokens")))
    )
    all_tokens = turns + reviewed + consolidated
    chosen = [pk for pk, _ in sorted(all_tokens.items(), key=lambda item: (-item[1], item[0]))[:SHOWN]]
    owners = Owner.objects.select_related("user").in_bulk(chosen)
    today = _today(chosen, now)
    may_open = request.user.has_perm("memories.view_owner") and admin.site.is_registered(Owner)
    table = [
        OwnerUse(
            name=str(owners[pk]),
            link=reverse("admin:memories_owner_change", args=[pk]) if may_open else "",
            turns=turns[pk],
            reviews=reviewed[pk],
            consolidation=consolidated[pk],
            spent=spent[pk] + spent_too[pk],
            ceilings=today[pk],
        )
        for pk in chosen
        if pk in owners  # else it was forgotten this very moment
    ]
    others = _others(table, used)
    return [*table, others] if others.total > 0 else table


def _others(table: list[OwnerUse], used: Used) -> OwnerUse:
    return OwnerUse(
        name="All others",
        turns=used.total("Turns") - sum(use.turns for use in table),
        reviews=used.total("Reviews") - sum(use.reviews for use in table),
        consolidation=used.total("Consolidation") - sum(use.consolidation for use in table),
        spent=max(0.0, sum(used.spent.values()) - sum(use.spent for use in table)),
    )


def _most(rows: "QuerySet[Any]", column: str) -> list[UUID]:
    """Those with the most tokens of one kind."""
    amount = token_sums()["tokens"] if column == "usage" else Sum("tokens")
    ordered = rows.order_by().values_list("owner").annotate(amount=Coalesce(amount, 0.0 if column == "usage" else 0))
    return [pk for pk, _ in ordered.filter(amount__gt=0).order_by(F("amount").desc(), "owner")[:_CANDIDATES]]


def _by_owner(rows: "QuerySet[Any]", money: Money) -> "tuple[Counter[UUID], dict[UUID, float]]":
    """Tokens and money."""
    tokens, spent = Counter[UUID](), defaultdict[UUID, float](float)
    for row in rows.order_by().values("owner", "model").annotate(**token_sums()):
        taken = Tokens.of(row)
        tokens[row["owner"]] += taken.total
        spent[row["owner"]] += money.cost(row["model"], taken)
    return tokens, spent


def _today(owners: list[UUID], now: datetime) -> dict[UUID, tuple[Ceiling, ...]]:
    """What each used of the ceilings of this UTC day, as reviews.ceilings and reviews.consolidation.ceilings count."""
    day = now.astimezone(UTC).date()
    started = ReviewRun.objects.filter(owner__in=owners, started_at__gte=begin_of(day)).order_by()
    numbers, tokens = Counter[UUID](), Counter[UUID]()
    for pk, number, taken in started.values_list("owner").annotate(Count("pk"), tokens=token_sums()["tokens"]):
        numbers[pk], tokens[pk] = number, int(taken or 0)
    consolidated = dict(ConsolidationDay.objects.filter(owner__in=owners, day=day).values_list("owner", "tokens"))
    most = memory_settings().max_tokens_per_day
    return {
        pk: (
            Ceiling(used=numbers[pk], most=settings.REVIEWS_PER_DAY),
            Ceiling(used=tokens[pk], most=settings.REVIEW_TOKENS_PER_DAY),
            Ceiling(used=consolidated.get(pk, 0), most=most),
        )
        for pk in owners
    }
