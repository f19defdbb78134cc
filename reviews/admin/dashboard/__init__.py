"""The first page of the admin: what is going on now, how the last days went, and what they cost. Numbers of all owners,
for those who may see runs; every look is bounded by a stretch of keys or by a partial index (see `periods`)."""

from typing import Any

from django.http import HttpRequest
from django.utils import timezone

from gateway.agents.configuration import prices
from reviews.admin.dashboard.figures import day_charts
from reviews.admin.dashboard.money import Money
from reviews.admin.dashboard.now import now_facts
from reviews.admin.dashboard.owners import owners_table
from reviews.admin.dashboard.periods import CHOICES, Period


def dashboard(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Fill the index page's context, for those who may see runs; the others keep the theme's list of pages. `?days=`
    chooses the period; any other value stands for the first one."""
    if not request.user.has_perm("gateway.view_run"):
        return context
    now = timezone.now()
    period = Period.of(request.GET.get("days", ""), now)
    money = Money(prices())
    charts, used = day_charts(period, money)
    return context | {
        "title": "Daybook",
        "period": period,
        "choices": CHOICES,
        "now_facts": now_facts(request, now),
        "charts": charts,
        "owners": owners_table(request, period, money, used, now),
        "unpriced": money.unpriced,
        "shows_money": money.known,
    }
