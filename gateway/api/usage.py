"""/api/usage: the owner's model usage, in totals per UTC day."""

from datetime import date
from typing import Annotated, Any, Literal

from ninja import Query, Router, Schema
from pydantic import Field

from gateway.api import answers
from gateway.limits.spending import COLUMNS, FIGURES, MAX_DAYS, first_day, is_priced, today, totals
from gateway.models import ApiKey, UsageDay
from memories.api.answers import documented
from memories.api.operations import reading
from memories.caller import ApiRequest
from memories.errors import InvalidRequest
from memories.pagination import page_json

router = Router(tags=["Usage"])
MAX_GROUPS = 1_000
_DECIMALS = 9
_LOGIN = "login"  # the id of the usage without a key


class UsageQuery(Schema):
    first: Annotated[date | None, Field(alias="from", description="The first day (UTC); without it, 30 days.")] = None
    last: Annotated[date | None, Field(alias="to", description="The last day; without it, today.")] = None
    by: Annotated[Literal["day", "key", "agent", "model"], Field(description="What each entry is about.")] = "day"


@router.get("/usage", response=documented(answers.UsageList))
@reading
def usage(request: ApiRequest, query: Query[UsageQuery]) -> dict[str, Any]:
    """Turns, requests to models, tokens and cost, by day (newest first), or by key, agent or model (most tokens first).
    `cost` is in the currency of the prices, and null if no model of an entry has a price. A limited key sees the totals
    of its agents, and no names of other keys."""
    last = query.last or today()
    first = query.first or first_day(last)
    if first > last:
        raise InvalidRequest("`from` must not be later than `to`.", param="from")
    if (last - first).days >= MAX_DAYS:
        raise InvalidRequest(f"`from` and `to` may cover at most {MAX_DAYS} days, both included.", param="from")
    by, column, owner_id = query.by, COLUMNS[query.by], request.auth.owner_id
    rows = UsageDay.objects.filter(owner_id=owner_id, day__range=(first, last))
    groups = totals(request.auth.limits.filter(rows, agent="agent"), by, limit=MAX_GROUPS)
    keys = [group[column] for group in groups] if by == "key" else []
    if request.auth.limits:
        keys = [key for key in keys if key == request.auth.key_id]
    names = dict(ApiKey.objects.filter(owner_id=owner_id, pk__in=keys).values_list("pk", "name"))
    data = [_group_json(by, group[column], group, names) for group in groups[:MAX_GROUPS]]
    page = page_json(data, has_more=len(groups) > MAX_GROUPS)
    return {**page, "by": by, "from": first.isoformat(), "to": last.isoformat()}


def _group_json(by: str, value: Any, group: dict[str, Any], names: dict[Any, str]) -> dict[str, Any]:
    shown = None if value == UsageDay.NO_KEY else str(value)
    figures = {name: group[name] for name in FIGURES}
    figures["cost"] = round(figures["cost"], _DECIMALS) if is_priced(group) else None
    key_name = {"name": names.get(value)} if by == "key" else {}
    return {"id": _LOGIN if shown is None else shown, "object": "usage", by: shown, **key_name, **figures}
