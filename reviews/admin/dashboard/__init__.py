"""The index page of the admin: what is going on now, the last days in charts, and their cost, over all owners. For
users who may view runs. Every query is bounded by a range of keys or a partial index (see `periods`)."""

from datetime import datetime
from typing import Any

from django.http import HttpRequest
from django.utils import timezone

from gateway.agents.configuration import prices
from gateway.limits.money import Money
from reviews.admin.dashboard.figures import day_charts
from reviews.admin.dashboard.now import now_facts
from reviews.admin.dashboard.owners import owners_table
from reviews.admin.dashboard.periods import CHOICES, Period
from reviews.admin.dashboard.today import headlines


def dashboard(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Extend the context of the index page. Users who may not view runs get the theme's own page.

    The page has today's figures and what is going on now. `?part=charts` adds the charts and the owners, which take
    longer; htmx requests that part alone. `?days=` chooses the period; an invalid value means the first choice."""
    if not request.user.has_perm("gateway.view_run"):
        return context
    now = timezone.now()
    period = Period.of(request.GET.get("days", ""), now)
    money = Money(prices())
    page = context | {"title": "Daybook", "period": period, "choices": CHOICES}
    asks_for_charts = request.GET.get("part") == "charts"
    bare = asks_for_charts and request.headers.get("HX-Request") == "true"
    if not bare:
        page |= {"headlines": headlines(request, money, now), "now_facts": now_facts(request, now)}
    return page | {"bare": bare, **_charts(request, period, money, now)} if asks_for_charts else page


def _charts(request: HttpRequest, period: Period, money: Money, now: datetime) -> dict[str, Any]:
    charts, usage = day_charts(period, money)
    return {
        "charts": charts,
        "owners": owners_table(request, period, money, usage, now),
        "unpriced": money.unpriced,
        "shows_money": money.known,
    }
