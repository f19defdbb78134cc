"""The figures at the head of the first page, each with the list that it is about. All are bounded: the newest runs of
today are looked at by their keys, and other rows are counted up to a number."""

import math
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.contrib.auth.models import User
from django.db.models import Count, Model, Q, QuerySet, Sum
from django.http import HttpRequest
from django.urls import reverse

from gateway.limits.money import Money, Tokens, dollars, token_sums
from gateway.models import Run, Session, UsageDay
from memories.admin.badges import memory_state_query
from memories.ids import first_id
from memories.models import Memory
from reviews.models import ReviewRun
from reviews.quotas import begin_of

COUNTED = 10_000
TIMED = 1_000
"""So many of today's newest answers are looked at for the time that an answer takes."""
_SHARE = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """A figure with its word. `link` is empty for those who may not open the list; `bad`: worth a look."""

    word: str
    value: str
    note: str = ""
    link: str = ""
    bad: bool = False


def headlines(request: HttpRequest, money: Money, now: datetime) -> list[Headline]:
    """Return the figures of this UTC day, for those who may see runs. Seven queries."""
    day = now.astimezone(UTC).date()
    runs = Run.objects.filter(pk__gte=first_id(begin_of(day)), started_at__gte=begin_of(day)).order_by("-pk")
    facts = runs[:COUNTED].aggregate(
        turns=Count("pk"),
        people=Count("owner_id", distinct=True),
        sessions=Count("session_id", distinct=True),
        failed=Count("pk", filter=Q(state=Run.State.FAILED)),
    )
    asked = "nobody asked today" if not facts["people"] else f"{facts['people']:,} asked today"
    live = Memory.objects.filter(memory_state_query("live", now))
    new = Memory.objects.filter(pk__gte=first_id(begin_of(day)))
    runs_of_day = _list(request, Run, started_at_from=day)
    time, of_answers = _time(runs)
    cost, of_what = _cost(money, day)
    return [
        Headline(
            word="People",
            value=_bounded(User.objects.filter(is_active=True)),
            note=asked,
            link=_list(request, User, is_active__exact="1"),
        ),
        Headline(
            word="Conversations today",
            value=_many(facts["sessions"], facts["turns"]),
            note=f"{_many(facts['turns'], facts['turns'])} turn{'' if facts['turns'] == 1 else 's'}",
            link=_list(request, Session, last_active_at_from=day),
        ),
        Headline(word="Memories", value=_bounded(live), note=f"{_bounded(new)} new today", link=_list(request, Memory)),
        Headline(
            word="Failed turns today",
            value=_many(facts["failed"], facts["turns"]),
            link=_list(request, Run, state=Run.State.FAILED.value, started_at_from=day),
            bad=bool(facts["failed"]),
        ),
        Headline(word="95 % of answers within", value=time, note=of_answers, link=runs_of_day),
        Headline(word="Cost today", value=cost, note=of_what, link=runs_of_day),
    ]


def _time(runs: "QuerySet[Run]") -> tuple[str, str]:
    """Return how long 95 of 100 of today's newest answers took at most, and how many answers these are. One query."""
    over = runs.filter(state=Run.State.COMPLETED, finished_at__isnull=False)
    times = over.values_list("started_at", "finished_at")[:TIMED]
    took = sorted((end - began).total_seconds() for began, end in times if end)
    if not took:
        return "–", "no answer today"
    longest = took[math.ceil(_SHARE * len(took)) - 1]
    return f"{longest:,.1f} s", f"of {'the newest ' if len(took) == TIMED else ''}{len(took):,} answers"


def _cost(money: Money, day: date) -> tuple[str, str]:
    """Return the money spent today and what it is for; reviews count by the present prices. Two queries, none without
    prices."""
    if not money.known:
        return "–", "no price is set"
    # Totals of a day are made on that day: its rows are the newest.
    newest = UsageDay.objects.order_by("-pk").values("pk")[:COUNTED]
    cost = UsageDay.objects.filter(pk__in=newest, day=day).aggregate(cost=Sum("cost"))["cost"] or 0.0
    reviews = ReviewRun.objects.filter(pk__gte=first_id(begin_of(day))).order_by()
    for model, total, written in reviews.values_list("model").annotate(**token_sums()):
        cost += money.cost(model, Tokens.of(total, written))
    return dollars(cost), "turns and reviews"


def _bounded(rows: "QuerySet[Any]") -> str:
    return _many(number := rows.order_by("-pk")[: COUNTED + 1].count(), number)


def _many(number: int, seen: int) -> str:
    """Return a number of the rows that were seen; where there may be more, it is a lower bound."""
    return f"{min(number, COUNTED):,}{'+' if seen > COUNTED or number >= COUNTED else ''}"


def _list(request: HttpRequest, model: type[Model], **filters: object) -> str:
    if not admin.site.get_model_admin(model).has_view_permission(request):
        return ""
    address = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
    return f"{address}?{urlencode(filters)}" if filters else address
