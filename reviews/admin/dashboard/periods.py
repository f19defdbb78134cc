"""The period that the index page covers. Ids are UUIDv7, so the rows created since a given time are a range of the
primary key: no other index is needed, and older rows are never read (PostgreSQL plans an index scan of the primary key
for each of these queries). Days are UTC days, as for quotas. The results of finished days hardly change, so they are
cached for some minutes; with a warm cache only today's rows are read."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from django.core.cache import cache
from django.db.models import DateField, Field, Q, QuerySet
from django.db.models.functions import Coalesce, TruncDate

from memories.ids import first_id
from reviews.quotas import day_start

CHOICES = (7, 30)
CACHE_SECONDS = 600


@dataclass(frozen=True, slots=True)
class Period:
    """Whole days up to and including today."""

    days: tuple[date, ...]

    @classmethod
    def of(cls, chosen: str, now: datetime) -> "Period":
        """Return the last `chosen` days, or the first of CHOICES if `chosen` is not one of them."""
        length = int(chosen) if chosen in {str(choice) for choice in CHOICES} else CHOICES[0]
        today = now.astimezone(UTC).date()
        return cls(tuple(today - timedelta(days=back) for back in reversed(range(length))))

    @property
    def length(self) -> int:
        return len(self.days)

    @property
    def since(self) -> datetime:
        """The start of the first day."""
        return day_start(self.days[0])

    def read(self, name: str, column: str, groups: "QuerySet[Any, Any]", limit: int | None = None) -> list[Any]:
        """Return the cached groups of finished days and the groups of today, at most `limit` of each. `column` is the
        column of a row's time; `name` is the cache key."""
        today = first_id(day_start(self.days[-1]))
        since = Q(pk__gte=first_id(self.since), **{f"{column}__gte": self.since})
        key = f"dashboard:{name}:{self.days[0]}:{self.days[-1]}"
        finished: list[Any] | None = cache.get(key)
        if finished is None:
            finished = list(groups.filter(since, pk__lt=today)[:limit])
            cache.set(key, finished, CACHE_SECONDS)
        return [*finished, *groups.filter(since, pk__gte=today)[:limit]]


class _Day(TruncDate):
    """The date of a time, in UTC."""

    def as_sqlite(self, compiler: Any, connection: Any, **extra: Any) -> tuple[str, Any]:
        """Take the date from the text: SQLite stores times as text in UTC, and Django's own function calls Python for
        every row."""
        sql, params = compiler.compile(self.lhs)
        return f"substr({sql}, 1, 10)", params


def group_of(column: str, kind: "Field[Any, Any]") -> Coalesce:
    """Return a column to group by, wrapped in an expression: for the plain column, SQLite would walk a whole index that
    begins with it to get the groups in order."""
    return Coalesce(column, column, output_field=kind)


def day_of(column: str) -> TruncDate:
    """Return an expression for the UTC day of a time column."""
    return _Day(column, output_field=DateField(), tzinfo=UTC)
