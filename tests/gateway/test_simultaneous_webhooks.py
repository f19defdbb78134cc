"""Webhooks of one job are delivered independently: each in its own order, and a slow one delays only itself"""

import socket
from collections.abc import Generator, Iterable
from contextlib import closing
from datetime import datetime
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
from tests.unsliced import forget_owner

pytestmark = pytest.mark.django_db


@pytest.fixture
def receivers(settings: Any) -> Generator[tuple[Receiver, Receiver]]:
    """Yield a slow receiver, which waits until the test sets `may_answer`, and a fast one."""
    settings.WEBHOOKS_PRIVATE = True
    with closing(Receiver()) as slow, closing(Receiver()) as fast:
        slow.may_answer.clear()
        yield slow, fast


def test_a_slow_webhook_delays_only_itself(alice: Owner, charlie: Owner, receivers: tuple[Receiver, Receiver]) -> None:
    slow, fast = receivers
    for owner, receiver in ((alice, slow), (charlie, fast)):
        webhook_make(owner, receiver.url)
    rows = [notification_make(owner) for _ in range(5) for owner in (alice, charlie)]
    while_slow: list[int] = []

    def on_request() -> None:
        if len(fast.received) == 5:
            while_slow.append(len(slow.received))
            slow.may_answer.set()

    fast.on_request = on_request
    assert delivery_run() == 10
    assert while_slow == [1]  # all five arrived during the first slow delivery
    assert slow.notification_ids() == [str(row.seq) for row in rows[::2]]
    assert fast.notification_ids() == [str(row.seq) for row in rows[1::2]]


def test_new_notifications_are_delivered_during_a_slow_delivery(
    alice: Owner, charlie: Owner, receivers: tuple[Receiver, Receiver], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second notification is stored while only the slow delivery is running."""
    slow, fast = receivers
    monkeypatch.setattr(delivery, "POLL_SECONDS", 0.02)
    webhook_make(alice, slow.url)
    webhook_make(charlie, fast.url)
    notification_make(alice)
    notification_make(charlie)
    real, checks = delivery._ready, []

    def ready(*args: Any) -> Any:
        checks.append(None)
        if len(checks) == 4:
            notification_make(charlie)
        return real(*args)

    monkeypatch.setattr(delivery, "_ready", ready)
    fast.on_request = lambda: slow.may_answer.set() if len(fast.received) == 2 else None
    assert delivery_run() == 3
    assert (len(slow.received), len(fast.received)) == (1, 2)


def test_simultaneous_deliveries_are_limited(
    alice: Owner, receivers: tuple[Receiver, Receiver], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "MAX_AT_ONCE", 2)
    running, maximum = 0, 0
    real = sending.send

    async def counting_send(*args: Any) -> Any:
        nonlocal running, maximum
        running += 1
        maximum = max(maximum, running)
        try:
            return await real(*args)
        finally:
            running -= 1

    monkeypatch.setattr(delivery, "send", counting_send)
    for _ in range(5):
        webhook_make(alice, receivers[1].url)
    notification_make(alice)
    notification_make(alice)
    assert delivery_run() == 10
    assert maximum == 2


def test_slow_webhooks_of_one_owner_leave_places_for_others(
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

    def on_request() -> None:
        while_slow.append(len(slow.received))
        if len(fast.received) == 3:
            slow.may_answer.set()

    fast.on_request = on_request
    assert delivery_run() == 8
    assert max(while_slow) <= 2
    assert len(slow.received) == 5


def test_slow_name_lookups_delay_only_their_webhooks(
    alice: Owner, charlie: Owner, receivers: tuple[Receiver, Receiver], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On two cores, ten webhooks of an owner exceed the default threads of the event loop for name lookups."""
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

    def on_request() -> None:
        seen.append(len(slow.received))
        slow.may_answer.set()

    fast.on_request = on_request
    assert delivery_run() == 11
    assert seen == [0]


def test_a_job_ends_in_time_without_delaying_the_others(
    alice: Owner, charlie: Owner, receivers: tuple[Receiver, Receiver], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A webhook that was slow in this job gets no further delivery that would end after the job."""
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
    assert not lease_is_held(LEASE, seconds=60)


def test_a_failed_webhook_is_not_tried_at_the_end_of_a_job(
    alice: Owner, receivers: tuple[Receiver, Receiver], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It might use its whole time limit again, so the next job starts with it."""
    monkeypatch.setattr(delivery, "JOB_SECONDS", sending.SECONDS / 2)
    webhook_make(alice, receivers[1].url)
    notification_make(alice)
    Webhook.objects.update(failures=1)
    assert delivery_run() == 0
    monkeypatch.setattr(delivery, "JOB_SECONDS", sending.SECONDS * 2)
    assert delivery_run() == 1


def test_a_job_that_lost_its_lease_stops_and_records_what_it_sent(
    alice: Owner, receivers: tuple[Receiver, Receiver]
) -> None:
    fast = receivers[1]
    webhook, _ = webhook_make(alice, fast.url)
    first, _ = notification_make(alice), notification_make(alice)
    token = lease_take(LEASE, seconds=60)

    def lose_lease(rows: Iterable[Any]) -> Any:
        Lease.objects.filter(name=LEASE).delete()
        return real(rows)

    real = delivery._due
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(delivery, "_due", lose_lease)
        assert deliver(str(token)) == 1
    webhook.refresh_from_db()
    assert (fast.notification_ids(), webhook.delivered_seq) == ([str(first.seq)], first.seq)
    assert delivery._due(timezone.now()).exists()


def test_an_owner_who_is_deleted_meanwhile_does_not_fail_the_job(
    alice: Owner, charlie: Owner, receivers: tuple[Receiver, Receiver], monkeypatch: pytest.MonkeyPatch
) -> None:
    fast = receivers[1]
    for owner in (alice, charlie):
        webhook_make(owner, fast.url)
        notification_make(owner)
    real = delivery._next

    def after_deletion(webhook: Webhook, now: datetime) -> Any:
        if webhook.owner_id == alice.pk:
            forget_owner(alice)
        return real(webhook, now)

    monkeypatch.setattr(delivery, "_next", after_deletion)
    assert delivery_run() == 1
    assert len(fast.received) == 1
