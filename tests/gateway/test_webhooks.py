"""Webhooks: creation and deletion, signatures, ordered delivery, retries, and forbidden addresses"""

import json
import socket
from collections.abc import Generator
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.contrib.auth.models import User
from django.db import connection
from django.urls import reverse
from django.utils import timezone
from standardwebhooks import Webhook as StandardWebhook

from gateway.jobs import lease_is_held
from gateway.keys import key_facts
from gateway.models import Agent, Webhook
from gateway.webhooks import addresses, delivery, sending
from gateway.webhooks.addresses import may_be_reached
from gateway.webhooks.delivery import LEASE, MAX_ATTEMPTS, deliver, pause_after, webhooks_sweep
from gateway.webhooks.services import KINDS, MAX_WEBHOOKS, webhook_disable
from memories.audit.log import SYSTEM
from memories.database.access import in_thread
from memories.errors import InvalidRequest
from memories.messaging.outbox import notifications_after
from memories.models import AuditEntry, Book, Owner
from tests.admin_rows import staff_client
from tests.conftest import Api
from tests.factories import key_make, memory_make
from tests.gateway.receivers import Receiver, delivery_run, notification_make, webhook_make

pytestmark = pytest.mark.django_db
URL = "https://example.org/hook"


@pytest.fixture
def receiver(settings: Any) -> Generator[Receiver]:
    settings.WEBHOOKS_PRIVATE = True
    found = Receiver()
    yield found
    found.close()


def refused(alice: Owner, url: str) -> Webhook:
    """Return a webhook after an attempt to deliver a notification that failed."""
    webhook, _ = webhook_make(alice, url)
    notification_make(alice)
    assert delivery_run() == 0
    webhook.refresh_from_db()
    return webhook


# ---- /api/webhooks ---------------------------------------------------------------------------------------------------


async def test_a_webhook_is_created_listed_and_deleted(alice: Owner, alice_api: Api) -> None:
    status, created = await alice_api.post("/api/webhooks", {"url": URL, "kinds": ["memory.changed"]})
    assert (status, created["object"], created["url"], created["kinds"]) == (201, "webhook", URL, ["memory.changed"])
    assert created["secret"].startswith("whsec_")
    status, listed = await alice_api.get("/api/webhooks")
    assert (status, listed["object"], [row["id"] for row in listed["data"]]) == (200, "list", [created["id"]])
    assert listed["data"][0]["state"] == "active"
    assert "secret" not in listed["data"][0]
    address = f"/api/webhooks/{created['id']}"
    assert (await alice_api.call("DELETE", address))[0] == 204
    assert (await alice_api.call("DELETE", address))[0] == 404
    actions = await in_thread(lambda: list(AuditEntry.objects.filter(kind="webhook").values_list("action", flat=True)))
    assert sorted(actions) == ["add", "delete"]
    row = await in_thread(AuditEntry.objects.filter(kind="webhook").first)
    assert row is not None
    assert "example.org" not in str(vars(row))


async def test_the_secret_is_not_stored_in_plain_text(alice: Owner, alice_api: Api) -> None:
    _, created = await alice_api.post("/api/webhooks", {"url": URL})
    row = await in_thread(Webhook.objects.get)
    assert row.kinds == list(KINDS)
    assert created["secret"].removeprefix("whsec_") not in str(vars(row))


@pytest.mark.parametrize(
    "body",
    [
        {"url": "ftp://example.org/"}, {"url": "example.org"}, {"url": "https://"}, {"url": "https:///x"},
        {"url": "https://user:secret@example.org/"}, {"url": "http://[::1"}, {"url": "http://a b/"}, {"url": ""},
        {"url": "https://example.org:99999/"}, {"url": f"https://example.org/{'x' * 2_000}"}, {"url": 5}, {},
        {"url": URL, "kinds": ["resync"]}, {"url": URL, "kinds": []}, {"url": URL, "kinds": "memory.changed"},
        {"url": "http://127.0.0.1/"}, {"url": "http://localhost:8000/"}, {"url": "http://10.1.2.3/"},
        {"url": "http://169.254.169.254/latest/"}, {"url": "http://[::1]/"}, {"url": "http://[::ffff:127.0.0.1]/"},
        {"url": "http://2130706433/"}, {"url": "http://0x7f.1/"}, {"url": "http://0/"}, {"url": "http://[fe80::1]/"},
        {"url": "http://localhost./"}, {"url": "http://127.0.0.1./"},
    ],
)  # fmt: skip
async def test_forbidden_addresses_and_unknown_kinds_are_refused(alice_api: Api, body: Any) -> None:
    status, answer = await alice_api.post("/api/webhooks", body)
    assert (status, answer["error"]["code"]) == (400, "invalid_request")
    assert not await in_thread(Webhook.objects.exists)


async def test_the_number_of_webhooks_is_limited(alice: Owner, alice_api: Api, charlie_api: Api) -> None:
    await in_thread(lambda: [webhook_make(alice, URL) for _ in range(MAX_WEBHOOKS)])
    status, answer = await alice_api.post("/api/webhooks", {"url": URL})
    assert (status, answer["error"]["code"], answer["error"]["details"]["limit"]) == (409, "conflict", 10)
    assert (await charlie_api.post("/api/webhooks", {"url": URL}))[0] == 201


async def test_keys_limited_to_agents_cannot_use_webhooks(alice: Owner, agent: Agent) -> None:
    _, plain = await in_thread(lambda: key_make(alice, agents=["assistant"]))
    for method, path, body in (("GET", "", None), ("POST", "", {"url": URL}), ("DELETE", "/0", None)):
        assert (await Api(plain).call(method, f"/api/webhooks{path}", body))[0] == 403


# ---- Deliveries ------------------------------------------------------------------------------------------------------


def test_a_change_is_delivered_and_signed(alice: Owner, receiver: Receiver) -> None:
    memory_make(alice, "Likes milk.")
    webhook, secret = webhook_make(alice, receiver.url)
    memory = memory_make(alice, "Likes tea.")
    assert delivery_run() == 1
    ((headers, body),) = receiver.received
    assert StandardWebhook(secret).verify(body, headers)
    sent = json.loads(body)
    (shown,) = notifications_after(alice.pk, webhook.delivered_seq)
    assert sent == {"type": "memory.changed", "timestamp": shown["created_at"], "data": shown}
    assert sent["data"]["memory_ids"] == [str(memory.number)]
    assert "Likes tea" not in body.decode()
    assert headers["content-type"] == "application/json"
    webhook.refresh_from_db()
    assert (webhook.failures, webhook.delivered_at is not None) == (0, True)
    assert delivery_run() == 0


def test_only_selected_kinds_are_delivered_in_order(alice: Owner, receiver: Receiver) -> None:
    webhook_make(alice, receiver.url, "review.saved", "consolidation.finished")
    kinds = ("memory.changed", "review.saved", "memory.changed", "consolidation.finished", "review.saved")
    rows = [notification_make(alice, kind) for kind in (*kinds, "memory.changed")]
    assert delivery_run() == 3
    assert receiver.notification_ids() == [str(rows[place].seq) for place in (1, 3, 4)]
    assert not delivery._due(timezone.now()).exists()


def test_a_failed_delivery_delays_later_ones_and_keeps_its_id(alice: Owner, receiver: Receiver) -> None:
    webhook, secret = webhook_make(alice, receiver.url)
    first, second = notification_make(alice), notification_make(alice)
    receiver.answers = [(500, {})]
    assert delivery_run() == 0
    webhook.refresh_from_db()
    assert (webhook.failures, webhook.failure) == (1, "It answered 500.")
    assert delivery_run() == 0
    assert len(receiver.received) == 1
    with time_machine.travel(timezone.now() + timedelta(minutes=1)):
        assert delivery_run() == 2
        assert StandardWebhook(secret).verify(receiver.received[1][1], receiver.received[1][0])
    assert receiver.notification_ids() == [str(first.seq), str(first.seq), str(second.seq)]
    ids = [headers["webhook-id"] for headers, _ in receiver.received]
    assert ids[0] == ids[1] != ids[2]
    assert receiver.received[0][0]["webhook-timestamp"] != receiver.received[1][0]["webhook-timestamp"]
    webhook.refresh_from_db()
    assert (webhook.failures, webhook.failure, webhook.next_attempt_at) == (0, "", None)


def test_a_webhook_is_disabled_after_about_a_day_of_failures(alice: Owner, receiver: Receiver) -> None:
    webhook, _ = webhook_make(alice, receiver.url)
    notification_make(alice)
    receiver.answers = [(503, {})] * MAX_ATTEMPTS
    now = timezone.now()
    for _ in range(MAX_ATTEMPTS):
        with time_machine.travel(now):
            assert delivery_run() == 0
        webhook.refresh_from_db()
        now = webhook.next_attempt_at + timedelta(seconds=1)
    assert webhook.disabled_at is not None
    assert webhook.note == "14 deliveries failed, over about a day. It answered 503."
    with time_machine.travel(now + timedelta(days=1)):
        assert delivery_run() == 0
    assert len(receiver.received) == MAX_ATTEMPTS


def test_pauses_grow_and_add_up_to_about_a_day() -> None:
    pauses = [pause_after(failures) for failures in range(1, MAX_ATTEMPTS)]
    assert pauses == sorted(pauses)
    assert (pauses[0], pauses[-1]) == (timedelta(seconds=30), timedelta(hours=6))
    assert timedelta(hours=18) < sum(pauses, timedelta()) < timedelta(hours=30)


def test_status_410_disables_at_once_and_warns_the_owner(alice: Owner, receiver: Receiver) -> None:
    webhook, _ = webhook_make(alice, receiver.url)
    memory_make(alice)
    receiver.answers = [(410, {})]
    assert delivery_run() == 0
    webhook.refresh_from_db()
    assert (webhook.disabled_at is not None, webhook.failures) == (True, 1)
    (facts,) = key_facts([Book.objects.get()], timezone.now()).values()
    assert "A webhook is disabled: It answered 410" in str(facts.figures["warnings"])


@pytest.mark.parametrize(("retry_after", "seconds"), [("120", 120), ("99999", 3600), ("1", 24), ("soon", 24)])
def test_a_longer_retry_after_is_respected(alice: Owner, receiver: Receiver, retry_after: str, seconds: int) -> None:
    receiver.answers = [(429, {"Retry-After": retry_after})]
    before = timezone.now()
    webhook = refused(alice, receiver.url)
    assert webhook.next_attempt_at is not None
    assert timedelta(seconds=seconds) <= webhook.next_attempt_at - before <= timedelta(seconds=seconds + 20)


def test_a_redirect_is_not_followed(alice: Owner, receiver: Receiver) -> None:
    receiver.answers = [(302, {"location": receiver.url.replace("/hook", "/elsewhere")})]
    assert refused(alice, receiver.url).failure == "It answered 302."
    assert len(receiver.received) == 1


def test_a_delivery_has_a_time_limit(alice: Owner, receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "SECONDS", 0.2)
    receiver.may_answer.clear()
    assert refused(alice, receiver.url).failure.startswith("There was no answer within")


def test_an_unreachable_server_is_a_failure(alice: Owner, receiver: Receiver, caplog: Any) -> None:
    webhook, secret = webhook_make(alice, receiver.url)
    notification_make(alice)
    receiver.close()
    with caplog.at_level("INFO"):
        assert delivery_run() == 0
    webhook.refresh_from_db()
    assert "could not be reached" in webhook.failure
    assert str(webhook.pk) in caplog.text
    assert "token=hidden" not in caplog.text
    assert secret not in caplog.text


@pytest.mark.parametrize("known", [True, False])
def test_a_name_that_resolves_to_no_public_address_is_not_connected_to(
    alice: Owner, receiver: Receiver, settings: Any, monkeypatch: pytest.MonkeyPatch, known: bool
) -> None:
    """The name is public when the webhook is created, and is resolved again on delivery. The failure is the same for a
    name that is not known, so that nobody finds out with webhooks which names a private network has."""
    settings.WEBHOOKS_PRIVATE = False
    port = receiver.url.split(":")[2].split("/")[0]

    async def getaddrinfo(self: Any, host: str, port: int, **more: Any) -> list[Any]:
        assert host == "rebinding.example"
        if not known:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [(2, 1, 6, "", ("127.0.0.1", port)), (10, 1, 6, "", ("::ffff:10.0.0.1", port, 0, 0))]

    monkeypatch.setattr("asyncio.base_events.BaseEventLoop.getaddrinfo", getaddrinfo)
    webhook = refused(alice, f"http://rebinding.example:{port}/hook")
    assert webhook.failure == "Its name has no address that webhooks may be sent to."
    assert receiver.received == []


def test_an_address_that_became_forbidden_is_not_connected_to(alice: Owner, receiver: Receiver, settings: Any) -> None:
    webhook, _ = webhook_make(alice, receiver.url)
    notification_make(alice)
    settings.WEBHOOKS_PRIVATE = False
    assert delivery_run() == 0
    webhook.refresh_from_db()
    assert (webhook.failure, receiver.received) == ("Webhooks may not be sent to this address.", [])


@pytest.mark.parametrize(
    ("address", "reached"),
    [
        ("93.184.216.34", True), ("2606:4700::1111", True), ("127.0.0.1", False), ("10.0.0.1", False),
        ("172.16.0.1", False), ("192.168.1.1", False), ("169.254.169.254", False), ("100.64.0.1", False),
        ("0.0.0.0", False), ("224.0.0.1", False), ("255.255.255.255", False), ("::1", False), ("::", False),
        ("fe80::1%eth0", False), ("fd00::1", False), ("::ffff:10.0.0.1", False), ("64:ff9b::a00:1", False),
        ("2002:a00:1::", False), ("ff02::1", False), ("64:ff9b::5db8:d822", True), ("64:ff9b:1::a00:1", False),
        ("fec0::1", False), ("::10.0.0.1", False), ("::ffff:0:10.0.0.1", False), ("192.0.0.192", False),
    ],
)  # fmt: skip
def test_only_public_addresses_are_reachable(address: str, reached: bool, settings: Any) -> None:
    assert may_be_reached(address) is reached
    settings.WEBHOOKS_PRIVATE = True
    assert may_be_reached(address)


def test_no_transaction_is_open_during_a_delivery(
    alice: Owner, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    webhook_make(alice, receiver.url)
    notification_make(alice)
    depth, seen = len(connection.savepoint_ids), []
    real = sending.send

    async def checking_send(*args: Any) -> Any:
        seen.append(len(connection.savepoint_ids) - depth)
        return await real(*args)

    monkeypatch.setattr(delivery, "send", checking_send)
    assert delivery_run() == 1
    assert seen == [0]


def test_the_sweep_queues_one_job_if_something_is_due(
    alice: Owner, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    queued: list[Any] = []
    monkeypatch.setattr(delivery, "enqueue", lambda task, token: queued.append((task, str(token))))
    webhook_make(alice, receiver.url)
    webhooks_sweep()
    assert queued == []
    notification_make(alice)
    webhooks_sweep()
    webhooks_sweep()
    ((task, token),) = queued
    assert task == "gateway.webhooks.delivery.deliver"
    assert deliver(token) == 1
    assert not lease_is_held(LEASE, seconds=60)
    assert deliver(token) == 0  # the queue may deliver a job twice


def test_the_outcome_for_a_webhook_disabled_meanwhile_is_dropped(alice: Owner, receiver: Receiver) -> None:
    webhook, _ = webhook_make(alice, receiver.url)
    notification_make(alice)
    found = delivery._next(Webhook.objects.get(), timezone.now())
    assert found is not None
    assert webhook_disable(webhook, by=SYSTEM)
    assert not webhook_disable(webhook, by=SYSTEM)
    delivery._store_outcome(found, sending.DeliveryOutcome("It answered 500."))
    webhook.refresh_from_db()
    assert (webhook.failures, webhook.note) == (0, "An administrator disabled it.")


def test_deactivated_owners_receive_nothing(alice: Owner, receiver: Receiver) -> None:
    webhook_make(alice, receiver.url)
    notification_make(alice)
    User.objects.filter(pk=alice.user_id).update(is_active=False)
    assert delivery_run() == 0
    assert receiver.received == []


def test_a_secret_stays_valid_with_the_old_signing_key_as_fallback(
    alice: Owner, receiver: Receiver, settings: Any
) -> None:
    webhook, secret = webhook_make(alice, receiver.url)
    notification_make(alice)
    settings.SECRET_KEY_FALLBACKS, settings.SECRET_KEY = [settings.SECRET_KEY], "another one " * 4
    assert delivery_run() == 1
    assert StandardWebhook(secret).verify(receiver.received[0][1], receiver.received[0][0])
    notification_make(alice)
    settings.SECRET_KEY_FALLBACKS = []
    assert delivery_run() == 0
    webhook.refresh_from_db()
    assert "signing key" in webhook.note


def test_the_admin_shows_the_host_only_and_disables_webhooks(alice: Owner) -> None:
    webhook, _ = webhook_make(alice, "https://example.org/hook?token=hidden")
    Webhook.objects.update(failures=2, failure="It answered 500.", failed_at=timezone.now())
    root = staff_client(superuser=True)
    page = reverse("admin:gateway_webhook_change", args=[webhook.pk])
    for shown in (root.get("/admin/gateway/webhook/"), root.get(page)):
        html = shown.content.decode()
        assert "example.org" in html
        assert "Failing" in html
        assert "token=hidden" not in html
    root.post(reverse("admin:gateway_webhook_object_action", args=[webhook.pk]), {"verb": "disable"})
    webhook.refresh_from_db()
    assert webhook.note == "An administrator disabled it."
    assert AuditEntry.objects.filter(kind="webhook", action="change", object_id=webhook.pk).count() == 1


def test_names_of_this_machine_are_refused(settings: Any) -> None:
    with pytest.raises(InvalidRequest):
        addresses.checked_url("https://daybook.localhost/")
    settings.WEBHOOKS_PRIVATE = True
    assert addresses.checked_url("https://daybook.localhost/#part") == "https://daybook.localhost/"


@pytest.mark.parametrize("host", ["[::1%25lo]", "[fe80::1%25]", "[fe80::1%25lo]", "[::ffff:127.0.0.1%25lo]"])
def test_a_zone_index_does_not_make_an_address_public(host: str, settings: Any) -> None:
    settings.WEBHOOKS_PRIVATE = False
    assert addresses.literal_refused(host[1:-1].replace("%25", "%"))  # as the HTTP client parses it
    with pytest.raises(InvalidRequest):
        addresses.checked_url(f"http://{host}/")
