"""Totals of model usage from the daily rows, for GET /api/usage and the admin's usage page."""

from datetime import date, timedelta
from typing import Any

from django.db.models import QuerySet, Sum

from gateway.limits.spending import FIGURES
from gateway.models import UsageDay

COLUMNS = {"day": "day", "person": "owner_id", "key": "key_id", "agent": "agent", "model": "model"}
"""The groupings of totals, with their columns."""
DEFAULT_DAYS = 30
MAX_DAYS = 400
"""Maximum number of days in one request for totals."""


def first_day(last: date) -> date:
    """Return the first day for a request that names only the last one."""
    return last - timedelta(days=min(DEFAULT_DAYS - 1, last.toordinal() - 1))


def totals(rows: "QuerySet[UsageDay]", by: str, *, limit: int, order: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """Return the sums of rows grouped by one of COLUMNS, each as a dictionary of that column and FIGURES. Returns at
    most `limit` + 1 groups: the extra one shows that there are more. They are sorted by `order`, then days newest first
    and everything else by tokens. One query."""
    column = COLUMNS[by]
    sums = {f"all_{name}": Sum(name) for name in FIGURES}
    groups = rows.order_by().values(column).annotate(**sums)
    default = ("-day",) if by == "day" else ("-all_input_tokens", "-all_output_tokens", column)
    found = groups.order_by(*order, *default)[: limit + 1]
    return [{column: group[column], **{name: group[f"all_{name}"] for name in FIGURES}} for group in found]


def is_priced(group: dict[str, Any]) -> bool:
    """Return True if any request in a total had a price."""
    return bool(group["requests"] > group["unpriced_requests"])
