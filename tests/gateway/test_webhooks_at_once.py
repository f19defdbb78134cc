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
from tests.gateway.receivers import Receiver, delivery_run, notification_make, webhook_make

pytestmark = pytest.mark.django_db


@pytest.fixture
def receivers(settings: Any) -> Generator[tuple[Receiver, Receiver]]:
    """A slow one, held until the test sets `held`, and a fast one."""
    settings.WEBHOOKS_PRIVATE = True
    with closing(Receiver()) as slow, closing(Receiver()) as fast:
        slow.may_answer.clear()
        yield slow, fast


def test_a_slow_one_holds_up_only_itself(alice: Owner, charlie: Owner, receivers: tuple[Receiver, Receiver]) -> None:
    slow, fast = receivers
    for owner, receiver in ((alice, slow), (charlie, fast)):
        webhook_make(owner, receiver.url)
    rows = [notification_make(owner) for _ in range(5) for owner in (alice, charlie)]
    while_slow: list[int] = []

    def asked() -> None:
        if len(fast.received) == 5:
            while_slow.append(len(slow.received))
            slow.may_answer.set()

    fast.on_request = asked
    assert delivery_run() == 10
    assert while_slow == [1]  # all five came while the first one of the other was being answered
    assert slow.notification_ids() == [str(row.seq) for row in rows[::2]]
    assert fast.notification_ids() == [str(row.seq) for row in rows[1::2]]


def test_what_is_new_is_delivered_while_a_slow_one_is_under_way(
    alice: Owner, charlie: Owner, receivers: tuple[Receiver, Receiver], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second notification is stored while nothing but the slow delivery is under way."""
    slow, fast = receivers
    monkeypatch.setattr(delivery, "POLL_SECONDS", 0.02)
    webhook_make(alice, slow.url)
    webhook_make(charlie, fast.url)
    notification_make(alice)
    notification_make(charlie)
    real, looks = delivery._ready, []

    def ready(*args: Any) -> Any:
        looks.append(None)
        if len(looks) == 4:
            notification_make(charlie)
        return real(*args)

    monkeypatch.setattr(delivery, "_ready", ready)
    fast.on_request = lambda: slow.may_answer.set() if len(fast.received) == 2 else None
    assert delivery_run() == 3
    assert (len(slow.received), len(fast.received)) == (1, 2)


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
        webhook_make(alice, receivers[1].url)
    notification_make(alice)
    notification_make(alice)
    assert delivery_run() == 10
    assert most == 2


def test_slow_ones_of_an_owner_leave_places_for_others(
    alice: Owner, charlie: Owner, receivers: tuple[Receiver, Receiver], monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, fast = receivers
    monkeypatch.setattr(delivery, "MAX_AT_ONCE", 4)
    monkeypatch.setattr(delivery, "MAX_PER_OWNER", 2)
    for _ in range(5):
        webhook_make(alice, slow.url)
    webhook_make(charlie, fast.url)
    notification_make(alice)
    for _ in range(3):
        notification_make(charlie)
    while_slow: list[int] = []

    def asked() -> None:
        while_slow.append(len(slow.received))
        if len(fast.received) == 3:
            slow.may_answer.set()

    fast.on_request = asked
    assert delivery_run() == 8
    assert max(while_slow) <= 2
    assert len(slow.received) == 5


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
            slow.may_answer.wait(5)
        return real("127.0.0.1", *args, **more)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    for _ in range(10):
        webhook_make(alice, f"http://slow.example:{urlsplit(slow.url).port}/")
    webhook_make(charlie, f"http://fast.example:{urlsplit(fast.url).port}/")
    notification_make(alice)
    notification_make(charlie)
    seen: list[int] = []

    def asked() -> None:
        seen.append(len(slow.received))
        slow.may_answer.set()

    fast.on_request = asked
    assert delivery_run() == 11
    assert seen == [0]


def test_a_job_ends_in_time_without_holding_up_the_others(
    alice: Owner, charlie: Owner, receivers: tuple[Receiver, Receiver], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that was slow in this job is not begun again where its answer would come after the end of the job."""
    slow, fast = receivers
    monkeypatch.setattr(delivery, "JOB_SECONDS", 0.6)
    slow.may_answer.set()
    slow.on_request = lambda: bool(Event().wait(0.4))
    webhook_make(alice, slow.url)
    webhook_make(charlie, fast.url)
    for owner in (alice, charlie):
        for _ in range(3):
            notification_make(owner)
    assert delivery_run() == 4
    assert (len(slow.received), len(fast.received)) == (1, 3)
    assert not lease_is_held(LEASE)


def test_one_that_failed_is_not_begun_at_the_end_of_a_job(
    alice: Owner, receivers: tuple[Receiver, Receiver], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may take its whole time again, and the next job begins with it."""
    monkeypatch.setattr(delivery, "JOB_SECONDS", sending.SECONDS / 2)
    webhook_make(alice, receivers[1].url)
    notification_make(alice)
    Webhook.objects.update(failures=1)
    assert delivery_run() == 0
    monkeypatch.setattr(delivery, "JOB_SECONDS", sending.SECONDS * 2)
    assert delivery_run() == 1


def test_a_job_that_lost_its_lease_begins_nothing_more_and_notes_what_it_sent(
    alice: Owner, receivers: tuple[Receiver, Receiver]
) -> None:
    fast = receivers[1]
    webhook, _ = webhook_make(alice, fast.url)
    first, _ = notification_make(alice), notification_make(alice)
    token = lease_take(LEASE, seconds=60)

    def lost(rows: Iterable[Any]) -> Any:
        Lease.objects.filter(name=LEASE).delete()
        return real(rows)

    real = delivery._due
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(delivery, "_due", lost)
        assert deliver(str(token)) == 1
    webhook.refresh_from_db()
    assert (fast.notification_ids(), webhook.delivered_seq) == ([str(first.seq)], first.seq)
    assert delivery._due(timezone.now()).exists()
