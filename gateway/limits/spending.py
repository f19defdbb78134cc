"""Model usage, which is collected during an answer and added to the totals of the day in one statement; and the sums of
these totals, for GET /api/usage and the admin's usage page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import cache, partial
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import F, QuerySet, Sum
from django.utils import timezone

from gateway.agents.settings import Price
from gateway.limits.money import cost_of, figure_of
from gateway.models import UsageDay
from gateway.tokens import estimate
from memories.database.statements import RawStatement
from memories.models import Owner
from memories.tokens import text_tokens

_MODEL_CHARS = 200
FIGURES = ("turns", "requests", "input_tokens", "output_tokens", "cached_tokens", "unpriced_requests", "cost")
"""The columns of UsageDay that are added up."""
COLUMNS = {"day": "day", "person": "owner_id", "key": "key_id", "agent": "agent", "model": "model"}
"""The groupings of totals, with their columns."""
DEFAULT_DAYS = 30
MAX_DAYS = 400
"""Maximum number of days in one request for totals."""
_KEY_COLUMNS = ("owner_id", "day", "key_id", "agent", "model")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelUse:
    """One request to a model. `requested` is the model name in the request, `model` the one in the answer, which may be
    longer. If `usage` is empty, because the server sent none or the answer was cut off, tokens are estimated from the
    `messages` of the request and the `text` of the answer."""

    requested: str
    model: str = ""
    usage: Mapping[str, Any] = field(default_factory=dict)
    messages: Sequence[dict[str, Any]] = ()
    text: str = ""

    @property
    def answered_by(self) -> str:
        """The name of the model, cut to the length of the column."""
        return (self.model or self.requested)[:_MODEL_CHARS]

    def tokens(self) -> tuple[int, int, int]:
        """Return the input tokens, the output tokens, and the number of input tokens that were cached."""
        if not self.usage:
            return estimate(self.messages), text_tokens(self.text), 0
        read, written = figure_of(self.usage, "prompt_tokens"), figure_of(self.usage, "completion_tokens")
        read = read or max(0, figure_of(self.usage, "total_tokens") - written)
        return read, written, min(read, figure_of(self.usage, "prompt_tokens_details", "cached_tokens"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Spender:
    """The account of usage. `key_id` is None for a login, `agent` is "" for none, `prices` are the current ones."""

    owner_id: UUID
    key_id: UUID | None
    agent: str
    prices: Mapping[str, Price]


def spending_store(spender: Spender, uses: Sequence[ModelUse], *, turns: int = 0) -> None:
    """Add model requests to the totals of today (UTC), and `turns` to the total of the last request's model. One
    statement, or none without requests. Nothing is stored for an owner who was deleted.

    Call it last in a transaction, since all answers of a key update the same rows."""
    by_model: dict[str, dict[str, float]] = {}
    for use in uses:
        total = by_model.setdefault(use.answered_by, dict.fromkeys(FIGURES, 0))
        for name, number in _figures(use, spender.prices).items():
            total[name] += number
    if not by_model:
        return
    by_model[uses[-1].answered_by]["turns"] += turns
    place = [
        *(
            UsageDay._meta.get_field(name).get_db_prep_value(value, connection)  # type: ignore[union-attr]
            for name, value in (
                ("owner", spender.owner_id),
                ("day", today()),
                ("key_id", spender.key_id or UsageDay.NO_KEY),
            )
        ),
        spender.agent,
    ]
    # Sorted, so that concurrent transactions lock the rows in the same order.
    rows = [[*place, model, *total.values()] for model, total in sorted(by_model.items())]
    _statement(len(rows)).execute([value for row in rows for value in row])


def _figures(use: ModelUse, prices: Mapping[str, Price]) -> dict[str, float]:
    """Return what a request adds to FIGURES."""
    read, written, cached = use.tokens()
    figures = {"requests": 1, "input_tokens": read, "output_tokens": written, "cached_tokens": cached}
    price = prices.get(use.model) or prices.get(use.requested)
    return figures | ({"cost": cost_of(price, read, written)} if price else {"unpriced_requests": 1})


@cache
def _statement(rows: int) -> RawStatement:
    return RawStatement(partial(_sql, rows))


def _sql(rows: int) -> str:
    table, owners = UsageDay._meta.db_table, Owner._meta.db_table
    columns = ", ".join((*_KEY_COLUMNS, *FIGURES))
    row = f"({', '.join(['%s'] * len((*_KEY_COLUMNS, *FIGURES)))})"
    added = ", ".join(f"{name} = {table}.{name} + excluded.{name}" for name in FIGURES)
    return (
        f"WITH used({columns}) AS (VALUES {', '.join([row] * rows)}) "  # noqa: S608 - names are ours
        f"INSERT INTO {table} ({columns}) SELECT {columns} FROM used"
        f" WHERE EXISTS (SELECT 1 FROM {owners} WHERE {owners}.id = used.owner_id)"
        f" ON CONFLICT (key_id, day, owner_id, agent, model) DO UPDATE SET {added}"
    )


def today() -> date:
    """Return the current UTC day, as used by all usage and limits."""
    return timezone.now().astimezone(UTC).date()


def seconds_to_midnight() -> int:
    """Return the remaining seconds of the current UTC day, at least one."""
    now = timezone.now().astimezone(UTC)
    passed = now - datetime(now.year, now.month, now.day, tzinfo=UTC)
    return max(1, 86_400 - int(passed.total_seconds()))


def spent_today(key_id: UUID) -> tuple[int, float]:
    """Return the tokens and the money that a key has spent today, including its end users. One query."""
    found = UsageDay.objects.filter(key_id=key_id, day=today()).aggregate(
        tokens=Sum(F("input_tokens") + F("output_tokens")), cost=Sum("cost")
    )
    return int(found["tokens"] or 0), float(found["cost"] or 0.0)


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
