"""The days that the first page looks at. Ids are UUIDv7, so the rows made since a moment are a stretch of the primary
key: no other index is needed, and what is older is never read. Days are those of UTC, as ceilings count them."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from uuid import UUID

from django.db.models import DateField
from django.db.models.functions import TruncDate

CHOICES = (7, 30)


@dataclass(frozen=True, slots=True)
class Period:
    """Whole days up to and with today."""

    days: tuple[date, ...]

    @classmethod
    def of(cls, chosen: str, now: datetime) -> "Period":
        """The last `chosen` days, if that is one of the choices."""
        length = int(chosen) if chosen in {str(choice) for choice in CHOICES} else CHOICES[0]
        today = now.astimezone(UTC).date()
        return cls(tuple(today - timedelta(days=back) for back in reversed(range(length))))

    @property
    def length(self) -> int:
        """How many days."""
        return len(self.days)

    @property
    def since(self) -> datetime:
        """When the first day began."""
        return begin_of(self.days[0])

    @property
    def first_id(self) -> UUID:
        """The smallest key of the first day."""
        return first_id(self.since)


def first_id(moment: datetime) -> UUID:
    """The smallest UUIDv7 of that millisecond."""
    return UUID(int=(int(moment.timestamp() * 1000) << 80) | (7 << 76) | (2 << 62))


def begin_of(day: date) -> datetime:
    """Midnight of UTC."""
    return datetime.combine(day, time.min, UTC)


def day_of(column: str) -> TruncDate:
    """The day (UTC) of a time's column, for a query."""
    return TruncDate(column, output_field=DateField(), tzinfo=UTC)
