"""Leases: one holder, an expiry time, and a token per holder."""

from datetime import timedelta

import pytest
import time_machine
from django.utils import timezone

from gateway import jobs
from gateway.jobs import LeaseLost

pytestmark = pytest.mark.django_db


def test_a_lease_has_one_holder() -> None:
    taken = [jobs.lease_take("book", seconds=60) for _ in range(5)]
    assert [token is not None for token in taken] == [True, False, False, False, False]


def test_an_expired_lease_can_be_taken_and_the_first_holder_loses_it() -> None:
    first = jobs.lease_take("book", seconds=60)
    assert first is not None
    with time_machine.travel(timezone.now() + timedelta(seconds=61), tick=False):
        assert not jobs.lease_extend("book", first, seconds=60), "it is too late, although nobody has taken it"
        second = jobs.lease_take("book", seconds=60)
        assert second is not None
        assert second != first
        with pytest.raises(LeaseLost):
            jobs.lease_require("book", first)
        jobs.lease_release("book", first)
        jobs.lease_require("book", second)


def test_a_heartbeat_extends_a_lease() -> None:
    token = jobs.lease_take("book", seconds=60)
    assert token is not None
    with time_machine.travel(timezone.now() + timedelta(seconds=50), tick=False):
        assert jobs.lease_extend("book", token, seconds=60)
    with time_machine.travel(timezone.now() + timedelta(seconds=100), tick=False):
        assert jobs.lease_is_held("book", seconds=60)
        assert jobs.lease_take("book", seconds=60) is None


def test_a_released_lease_can_be_taken() -> None:
    token = jobs.lease_take("book", seconds=60)
    assert token is not None
    jobs.lease_release("book", token)
    assert not jobs.lease_is_held("book", seconds=60)
    assert jobs.lease_take("book", seconds=60)
