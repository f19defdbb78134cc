"""The figures at the top of the index page, each with a link to its list. All queries are bounded: today's newest runs
are found by a range of keys, and other rows are counted up to MAX_COUNTED."""

import math
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.models import User
from django.db.models import Count, Model, Q, QuerySet, Sum
from django.http import HttpRequest

from gateway.limits.money import Money, dollars, token_sums
from gateway.models import Run, Session, UsageDay
from memories.admin.badges import memory_state_query
from memories.admin.columns import viewable_url
from memories.ids import first_id
from memories.models import Memory
from memories.number_words import counted
from reviews.models import ReviewRun
from reviews.quotas import day_start

MAX_COUNTED = 10_000
MAX_TIMED = 1_000
"""The number of today's newest answers that the response time is computed from."""
_PERCENTILE = 0.95


@dataclass(frozen=True, slots=True)
class Headline:
    """A figure with its label. `link` is empty if the user may not open the list; `bad` highlights a problem."""

    word: str
    value: str
    note: str = ""
    link: str = ""
    bad: bool = False


def headlines(request: HttpRequest, money: Money, now: datetime) -> list[Headline]:
    """Return the figures of this UTC day. Seven queries."""
    day = now.astimezone(UTC).date()
    runs = Run.objects.filter(pk__gte=first_id(day_start(day)), started_at__gte=day_start(day)).order_by("-pk")
    facts = runs[:MAX_COUNTED].aggregate(
        turns=Count("pk"),
        people=Count("owner_id", distinct=True),
        sessions=Count("session_id", distinct=True),
        failed=Count("pk", filter=Q(state=Run.State.FAILED)),
    )
    sessions, turns, failed = (_format_count(facts[name], facts["turns"]) for name in ("sessions", "turns", "failed"))
    people = _bounded_count(User.objects.filter(is_active=True))
    asked = "nobody asked today" if not facts["people"] else f"{facts['people']:,} asked today"
    live = Memory.objects.filter(memory_state_query("live", now))
    new = Memory.objects.filter(pk__gte=first_id(day_start(day)))
    sessions_of_day = _list_url(request, Session, last_active_at_from=day)
    runs_of_day = _list_url(request, Run, started_at_from=day)
    live_memories = _list_url(request, Memory, state="live")
    failed_of_day = _list_url(request, Run, state=Run.State.FAILED.value, started_at_from=day)
    time, of_answers = _answer_time(runs)
    cost, of_what = _cost_today(money, day)
    return [
        Headline("People", people, asked, _list_url(request, User, is_active__exact="1")),
        Headline("Conversations today", sessions, f"{turns} turn{'' if facts['turns'] == 1 else 's'}", sessions_of_day),
        Headline("Memories", _bounded_count(live), f"{_bounded_count(new)} new today", live_memories),
        Headline("Failed turns today", failed, link=failed_of_day, bad=bool(facts["failed"])),
        Headline("95 % of answers within", time, of_answers, runs_of_day),
        Headline("Cost today", cost, of_what, runs_of_day),
    ]


def _answer_time(runs: "QuerySet[Run]") -> tuple[str, str]:
    """Return the 95th percentile of the duration of today's newest answers, and their number, as text. One query."""
    over = runs.filter(state=Run.State.COMPLETED, finished_at__isnull=False)
    times = over.values_list("started_at", "finished_at")[:MAX_TIMED]
    took = sorted((end - began).total_seconds() for began, end in times if end)
    if not took:
        return "–", "no answer today"
    longest = took[math.ceil(_PERCENTILE * len(took)) - 1]
    return f"{longest:,.1f} s", f"of {'the newest ' if len(took) == MAX_TIMED else ''}{counted(len(took), 'answer')}"


def _cost_today(money: Money, day: date) -> tuple[str, str]:
    """Return today's cost and what it covers. Reviews are counted at present prices. Two queries, none without
    prices."""
    if not money.known:
        return "–", "no price is set"
    # The rows of today's totals were created today, so they are the newest.
    newest = UsageDay.objects.order_by("-pk").values("pk")[:MAX_COUNTED]
    cost = UsageDay.objects.filter(pk__in=newest, day=day).aggregate(cost=Sum("cost"))["cost"] or 0.0
    reviews = ReviewRun.objects.filter(pk__gte=first_id(day_start(day))).order_by()
    for model, total, written in reviews.values_list("model").annotate(**token_sums()):
        cost += money.cost(model, total, written)
    return dollars(cost), "turns and reviews"


def _bounded_count(rows: "QuerySet[Any]") -> str:
    return _format_count(number := rows.order_by("-pk")[: MAX_COUNTED + 1].count(), number)


def _format_count(number: int, seen: int) -> str:
    """Return a number as text, with a plus if not all rows were counted (`seen` is the number of rows read)."""
    return f"{min(number, MAX_COUNTED):,}{'+' if seen > MAX_COUNTED or number >= MAX_COUNTED else ''}"


def _list_url(request: HttpRequest, model: type[Model], **filters: object) -> str:
    address = viewable_url(request, model, "changelist")
    return f"{address}?{urlencode(filters)}" if address and filters else address
