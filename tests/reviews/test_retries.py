"""Retry-After is respected equally by reviews and by consolidation."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from gateway.errors import UpstreamRefused
from gateway.jobs import retry_pause
from memories.errors import RateLimited
from reviews.services import RETRY_SECONDS, retry_delay


def limited(header: str) -> RateLimited:
    return RateLimited("Too much at once.", status=429, retry_after=header)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("40", 40), ("0.5", 5), ("", 5), ("soon", 5), ("-3", 5), ("inf", 5), ("nan", 5), ("86400", 3600)],
)
def test_a_number_of_seconds_is_respected(header: str, seconds: float) -> None:
    assert retry_delay(limited(header), 1) == seconds
    assert retry_pause(limited(header), least=5) == seconds


def test_a_date_is_respected() -> None:
    header = format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True)
    assert 80 <= (retry_delay(limited(header), 1) or 0) <= 91
    assert 80 <= retry_pause(limited(header), least=5) <= 91
    past = "Wed, 21 Oct 2015 07:28:00 GMT"
    assert (retry_delay(limited(past), 1), retry_pause(limited(past), least=5)) == (5, 5)


def test_only_temporary_errors_are_retried() -> None:
    assert retry_delay(UpstreamRefused("No.", status=401), 1) is None
    assert retry_delay(UpstreamRefused("Down.", status=503), 1) == RETRY_SECONDS[0]
