"""Leases: one holder, an end, and a token that tells them apart."""

from datetime import timedelta

import pytest
import time_machine
from django.utils import timezone

from memories import leases
from memories.leases import LeaseLost

pytestmark = pytest.mark.django_db


def test_one_of_many_takes_it() -> None:
    taken = [leases.take("book", holder="w", seconds=60) for _ in range(5)]
    assert [token is not None for token in taken] == [True, False, False, False, False]


def test_it_can_be_taken_when_it_ran_out_and_the_first_holder_is_told() -> None:
    first = leases.take("book", holder="a", seconds=60)
    assert first is not None
    with time_machine.travel(timezone.now() + timedelta(seconds=61), tick=False):
        assert not leases.extend("book", first, seconds=60), "too late, although nobody took it"
        second = leases.take("book", holder="b", seconds=60)
        assert second is not None
        assert second != first
        with pytest.raises(LeaseLost):
            leases.require("book", first)
        leases.release("book", first)
        leases.require("book", second)


def test_a_heartbeat_makes_it_last() -> None:
    token = leases.take("book", holder="a", seconds=60)
    assert token is not None
    with time_machine.travel(timezone.now() + timedelta(seconds=50), tick=False):
        assert leases.extend("book", token, seconds=60)
    with time_machine.travel(timezone.now() + timedelta(seconds=100), tick=False):
        assert leases.is_held("book")
        assert leases.take("book", holder="b", seconds=60) is None


def test_a_released_one_is_free() -> None:
    token = leases.take("book", holder="a", seconds=60)
    assert token is not None
    leases.release("book", token)
    assert not leases.is_held("book")
    assert leases.take("book", holder="b", seconds=60)
