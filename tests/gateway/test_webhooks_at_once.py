"""Webhooks of one job go on independently: each in its own order, and a slow one holds up only itself."""

import socket
from collections.abc import Generator, Iterable
from contextlib import closing
from threading import Event
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.utils import timezone

from gateway.jobs import lease_is_held, lease_take
from gateway.models import Webhook
from gateway.webhooks import delivery, sending
from gateway.webhooks.delivery import LEASE, deliver
from memories.models import Lease, Owner
from tests.gateway.receivers import Receiver, hook, told, work

pytestmark = pytest.mark.django_db


@pytest.fixture
def receivers(settings: Any) -> Generator[tuple[Receiver, Receiver]]:
    """A slow one, held until the test sets `held`, and a fast one."""
    settings.WEBHOOKS_PRIVATE = True
    with closing(Receiver()) as slow, closing(Receiver()) as fast:
        slow.held.clear()
        yield slow, fast


def test_a_slow_one_holds_up_only_itself(alice: Owner, charlie: Owner, receivers: tuple[Receiver, Receiver]) -> None:
    slow, fast = receivers
    for owner, receiver in ((alice, slow), (charlie, fast)):
        hook(owner, receiver.url)
    rows = [told(owner) for _ in range(5) for owner in (alice, charlie)]
    while_slow: list[int] = []

    def asked() -> None:
        if len(fast.got) == 5:
            while_slow.append(len(slow.got))
            slow.held.set()

    fast.asked = asked
    assert work() == 10
    assert while_slow == [1]  # all five came while the first one of the other was being answered
    assert slow.numbers() == [str(row.seq) for row in rows[::2]]
    assert fast.numbers() == [str(row.seq) for row in rows[1::2]]


def test_what_is_new_is_delivered_while_a_slow_one_is_under_way(
    alice: Owner, charlie: Owner, receivers: tuple[Receiver, Receiver], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second notification is stored while nothing but the slow delivery is under way."""
    slow, fast = receivers
    monkeypatch.setattr(delivery, "POLL_SECONDS", 0.02)
    hook(alice, slow.url)
    hook(charlie, fast.url)
    told(alice)
    told(charlie)
    real, looks = delivery._ready, []

    def ready(*args: Any) -> Any:
        looks.append(None)
        if len(looks) == 4:
            told(charlie)
        return real(*args)

    monkeypatch.setattr(delivery, "_ready", ready)
    fast.asked = lambda: slow.held.set() if len(fast.got) == 2 else None
    assert work() == 3
    assert (len(slow.got), len(fast.got)) == (1, 2)


def test_no_more_than_the_limit_are_sent_at_once(
    alice: Owner, receivers: tuple[Receiver, Receiver], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "MAX_AT_ONCE", 2)
    under_way, most = 0, 0
    real = sending.send

    async def counts(*args: Any) -> Any:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        try:
            return await real(*args)
        finally:
            under_way -= 1

    monkeypatch.setattr(delivery, "send", counts)
    for _ in range(5):
        hook(alice, receivers[1].url)
    told(alice)
    told(alice)
    assert work() == 10
    assert most == 2


def test_slow_ones_of_an_owner_leave_places_for_others(
    alice: Owner, charlie: Owner, receivers: tuple[Receiver, Receiver], monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, fast = receivers
    monkeypatch.setattr(delivery, "MAX_AT_ONCE", 4)
    monkeypatch.setattr(delivery, "MAX_PER_OWNER", 2)
    for _ in range(5):
        hook(alice, slow.url)
    hook(charlie, fast.url)
    told(alice)
    for _ in range(3):
        told(charlie)
    while_slow: list[int] = []

    def asked() -> None:
        while_slow.append(len(slow.got))
        if len(fast.got) == 3:
            slow.held.set()

    fast.asked = asked
    assert work() == 8
    assert max(while_slow) <= 2
    assert len(slow.got) == 5


def test_names_that_are_looked_up_slowly_hold_up_only_themselves(
    alice: Owner, charlie: Owner, receivers: tuple[Receiver, Receiver], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An owner's ten webhooks are more than the threads in which a loop looks names up by default, on two cores."""
    slow, fast = receivers
    real = socket.getaddrinfo

    def getaddrinfo(host: str, *args: Any, **more: Any) -> Any:
        if not host.endswith(".example") or more.get("flags", 0) & socket.AI_NUMERICHOST:
            return real(host, *args, **more)
        if host == "slow.example":
            slow.held.wait(5)
        return real("127.0.0.1", *args, **more)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    for _ in range(10):
        hook(alice, f"http://slow.example:{urlsplit(slow.url).port}/")
    hook(charlie, f"http://fast.example:{urlsplit(fast.url).port}/")
    told(alice)
    told(charlie)
    seen: list[int] = []

    def asked() -> None:
        seen.append(len(slow.got))
        slow.held.set()

    fast.asked = asked
    assert work() == 11
    assert seen == [0]


def test_a_job_ends_in_time_without_holding_up_the_others(
    alice: Owner, charlie: Owner, receivers: tuple[Receiver, Receiver], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that was slow in this job is not begun again where its answer would come after the end of the job."""
    slow, fast = receivers
    monkeypatch.setattr(delivery, "JOB_SECONDS", 0.6)
    slow.held.set()
    slow.asked = lambda: bool(Event().wait(0.4))
    hook(alice, slow.url)
    hook(charlie, fast.url)
    for owner in (alice, charlie):
        for _ in range(3):
            told(owner)
    assert work() == 4
    assert (len(slow.got), len(fast.got)) == (1, 3)
    assert not lease_is_held(LEASE)


def test_one_that_failed_is_not_begun_at_the_end_of_a_job(
    alice: Owner, receivers: tuple[Receiver, Receiver], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may take its whole time again, and the next job begins with it."""
    monkeypatch.setattr(delivery, "JOB_SECONDS", sending.SECONDS / 2)
    hook(alice, receivers[1].url)
    told(alice)
    Webhook.objects.update(failures=1)
    assert work() == 0
    monkeypatch.setattr(delivery, "JOB_SECONDS", sending.SECONDS * 2)
    assert work() == 1


def test_a_job_that_lost_its_lease_begins_nothing_more_and_notes_what_it_sent(
    alice: Owner, receivers: tuple[Receiver, Receiver]
) -> None:
    fast = receivers[1]
    webhook, _ = hook(alice, fast.url)
    first, _ = told(alice), told(alice)
    token = lease_take(LEASE, seconds=60)

    def lost(rows: Iterable[Any]) -> Any:
        Lease.objects.filter(name=LEASE).delete()
        return real(rows)

    real = delivery._due
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(delivery, "_due", lost)
        assert deliver(str(token)) == 1
    webhook.refresh_from_db()
    assert (fast.numbers(), webhook.delivered_seq) == ([str(first.seq)], first.seq)
    assert delivery._due(timezone.now()).exists()
