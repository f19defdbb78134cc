"""The days that the first page looks at. Ids are UUIDv7, so the rows made since a moment are a stretch of the primary
key: no other index is needed, and what is older is never read (PostgreSQL plans an index scan of the primary key for
each of these queries). Days are those of UTC, as quotas count them. What was counted of finished days is kept in the
process for some minutes, since it hardly changes; a warm page reads the rows of today only."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, TypeVar

from django.core.cache import cache
from django.db.models import DateField, Field, Q
from django.db.models.functions import Coalesce, TruncDate

from memories.ids import first_id
from reviews.quotas import begin_of

CHOICES = (7, 30)
KEPT_SECONDS = 600

Row = TypeVar("Row", bound=tuple[Any, ...])


@dataclass(frozen=True, slots=True)
class Period:
    """Whole days up to and with today."""

    days: tuple[date, ...]

    @classmethod
    def of(cls, chosen: str, now: datetime) -> "Period":
        """Return the last `chosen` days, if that is one of the choices."""
        length = int(chosen) if chosen in {str(choice) for choice in CHOICES} else CHOICES[0]
        today = now.astimezone(UTC).date()
        return cls(tuple(today - timedelta(days=back) for back in reversed(range(length))))

    @property
    def length(self) -> int:
        return len(self.days)

    @property
    def since(self) -> datetime:
        """When the first day began."""
        return begin_of(self.days[0])

    def read(self, name: str, column: str, groups: Callable[[Q], Iterable[Row]]) -> list[Row]:
        """Return the groups of finished days, kept from the last look at them, and those of today. `groups` makes them
        of the rows that a condition chooses; `column` holds a row's time; `name` tells one look from another."""
        today = first_id(begin_of(self.days[-1]))
        since = Q(pk__gte=first_id(self.since), **{f"{column}__gte": self.since})
        key = f"dashboard:{name}:{self.days[0]}:{self.days[-1]}"
        finished: list[Row] | None = cache.get(key)
        if finished is None:
            finished = list(groups(since & Q(pk__lt=today)))
            cache.set(key, finished, KEPT_SECONDS)
        return [*finished, *groups(since & Q(pk__gte=today))]


class _Day(TruncDate):
    """The date of a time, in UTC."""

    def as_sqlite(self, compiler: Any, connection: Any, **extra: Any) -> tuple[str, Any]:
        """Cut the date off the text: SQLite has times as texts in UTC, and Django's own way calls Python for every
        row."""
        sql, params = compiler.compile(self.lhs)
        return f"substr({sql}, 1, 10)", params


def group_of(column: str, kind: "Field[Any, Any]") -> Coalesce:
    """Return a column to group by, as an expression: to have the groups in order SQLite would walk a whole index that
    begins with the column itself."""
    return Coalesce(column, column, output_field=kind)


def day_of(column: str) -> TruncDate:
    """Return the day (UTC) of a time's column, for a query."""
    return _Day(column, output_field=DateField(), tzinfo=UTC)
