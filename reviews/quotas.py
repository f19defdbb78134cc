"""Daily quotas of reviews: the number of reviews and their tokens, per owner. The worker checks them when it claims a
review, so they never slow down or refuse a turn. A review beyond the quota waits for the next day."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from uuid import UUID

from django.conf import settings
from django.db.models import Count
from django.utils import timezone

from gateway.limits.money import token_sums
from memories.models import Owner
from reviews.models import ReviewRun


@dataclass(frozen=True, slots=True, kw_only=True)
class DailyUsage:
    """An owner's usage on one day: when the day ends, the reviews started in it, and their tokens."""

    ends: datetime
    reviews: int
    tokens: int

    @property
    def reached(self) -> str:
        """A sentence about the quota that is used up, or "" if none is."""
        for used, limit, what in (
            (self.reviews, settings.REVIEWS_PER_DAY, "reviews"),
            (self.tokens, settings.REVIEW_TOKENS_PER_DAY, "tokens for reviews"),
        ):
            if limit and used >= limit:
                return f"Today's {limit:,} {what} are used up; the next one runs tomorrow."
        return ""


def day_start(day: date) -> datetime:
    """Return midnight in UTC."""
    return datetime.combine(day, time.min, UTC)


def usage_today(owner: Owner, now: datetime | None = None) -> DailyUsage:
    """Return the owner's usage today."""
    return usages_today([owner.pk], now)[owner.pk]


def usages_today(owners: Iterable[UUID], now: datetime | None = None) -> dict[UUID, DailyUsage]:
    """Return the usage today by owner. Days are UTC, so a change of time zone does not begin a new one. One query."""
    today = (now or timezone.now()).astimezone(UTC).date()
    begins, ends = day_start(today), day_start(today + timedelta(days=1))
    usages = {owner: DailyUsage(ends=ends, reviews=0, tokens=0) for owner in owners}
    started = ReviewRun.objects.filter(owner__in=usages, started_at__gte=begins, started_at__lt=ends).order_by()
    for owner, number, tokens in started.values_list("owner").annotate(Count("pk"), tokens=token_sums()["tokens"]):
        usages[owner] = DailyUsage(ends=ends, reviews=number, tokens=int(tokens or 0))
    return usages
