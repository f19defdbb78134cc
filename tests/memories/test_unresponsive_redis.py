"""A stopped or frozen Redis delays no request: hints and jobs are sent in the background, and the database has the
rows."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from asgiref.sync import sync_to_async
from channels.layers import channel_layers
from channels.testing import WebsocketCommunicator
from channels_redis.core import RedisChannelLayer
from django.db import connections
from django.test import RequestFactory
from django_q.conf import Conf
from pytest_django.fixtures import Settings
from redis import Redis
from redis.exceptions import RedisError

from config import health
from gateway.limits import rates
from gateway.models import Session
from gateway.routing import websocket_application
from memories.database.access import in_thread
from memories.messaging import redis_clients
from memories.messaging.background import Background, redis_calls
from memories.messaging.outbox import notify
from memories.messaging.redis_clients import HintLayer, QueueBroker, url_problem
from memories.models import Memory, Notification, Owner
from reviews.models import ReviewRun
from tests.conftest import Api, free_port
from tests.factories import key_make
from tests.reviews.talk import say
from tests.shutdown import close_lanes
from tests.waiting import eventually

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(not shutil.which("redis-server"), reason="there is no redis-server on this machine"),
]
# Seconds; far more than a request takes, but far less than it would take if it waited for Redis.
DEADLINE = 15


class OwnRedis:
    """A Redis server for one test that can be stopped and frozen."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        options = ("--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no")
        self.process = subprocess.Popen(
            [shutil.which("redis-server") or "", *options], cwd=folder, stdout=subprocess.DEVNULL
        )
        self.client = Redis.from_url(self.url, socket_timeout=1)
        eventually(self._is_up, within=20, description="Redis")

    def _is_up(self) -> bool:
        try:
            return bool(self.client.ping())
        except RedisError:
            return False

    def freeze(self) -> None:
        os.kill(self.process.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        os.kill(self.process.pid, signal.SIGCONT)

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(10)


@pytest.fixture
def redis(tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[OwnRedis]:
    server = OwnRedis(tmp_path)
    settings.REDIS_URL = server.url
    settings.DB_THREADS = 1
    hosts = [{"address": server.url, "socket_timeout": 8, "socket_connect_timeout": 1}]
    before = channel_layers.set("default", HintLayer(hosts=hosts))
    monkeypatch.setattr(Conf, "BROKER_CLASS", "memories.messaging.redis_clients.QueueBroker")
    monkeypatch.setattr(Conf, "ORM", None)
    monkeypatch.setattr(rates, "_backoff_until", 0.0)
    rates._limiters.clear()
    yield server
    server.stop()
    redis_calls.drain(10)
    rates._limiters.clear()
    channel_layers.set("default", before)
    close_lanes()


@pytest.fixture(params=["frozen", "stopped"])
def unresponsive_redis(request: pytest.FixtureRequest, redis: OwnRedis) -> OwnRedis:
    """A Redis that does not answer."""
    if request.param == "frozen":
        redis.freeze()
    else:
        redis.stop()
    return redis


async def test_writes_do_not_wait_for_a_hint(alice_api: Api, unresponsive_redis: OwnRedis) -> None:
    async with asyncio.timeout(DEADLINE):
        writes = await asyncio.gather(
            *(alice_api.post("/api/memories", {"content": f"Likes number {number}."}) for number in range(8))
        )
        read, _ = await alice_api.get("/api/memories")
    assert [status for status, _ in writes] == [201] * 8
    assert read == 200
    assert await in_thread(Memory.objects.count) == await in_thread(Notification.objects.count) == 8


async def test_a_review_is_scheduled_for_the_sweep(
    alice_api: Api, session: Session, unresponsive_redis: OwnRedis
) -> None:
    await in_thread(say, session)
    async with asyncio.timeout(DEADLINE):
        status, body = await alice_api.post(f"/api/sessions/{session.pk}/review")
    assert (status, body["state"]) == (202, "scheduled")
    assert await in_thread(ReviewRun.objects.count) == 1


async def test_a_job_reaches_a_responsive_redis(alice_api: Api, session: Session, redis: OwnRedis) -> None:
    await in_thread(say, session)
    assert (await alice_api.post(f"/api/sessions/{session.pk}/review"))[0] == 202
    assert await asyncio.to_thread(redis_calls.drain, 10)
    assert QueueBroker().queue_size() == 1


async def test_requests_are_counted_by_each_process_rather_than_refused(
    alice: Owner, unresponsive_redis: OwnRedis
) -> None:
    api = Api((await in_thread(lambda: key_make(alice, requests_per_minute=3)))[1])
    async with asyncio.timeout(DEADLINE):
        statuses = [(await api.get("/api/memories"))[0] for _ in range(5)]
    assert statuses == [200] * 3 + [429] * 2


async def test_readyz_reports_redis_and_stays_ready(
    unresponsive_redis: OwnRedis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "unready_reasons", lambda: [])
    response = await health.readyz(RequestFactory().get("/readyz"))
    assert (response.status_code, json.loads(response.content)["reasons"]) == (200, [health._NO_REDIS])


async def test_a_websocket_gets_notifications_by_polling(
    alice: Owner, settings: Settings, unresponsive_redis: OwnRedis
) -> None:
    settings.PUSH_POLL_SECONDS = 0.2
    plain = (await in_thread(key_make, alice))[1]
    headers = [(b"host", b"testserver"), (b"authorization", f"Bearer {plain}".encode())]
    browser = WebsocketCommunicator(websocket_application, "/ws/notifications/", headers=headers)  # type: ignore[arg-type]
    connected, _ = await browser.connect(timeout=DEADLINE)
    assert connected
    await in_thread(notify, owner_id=alice.pk, kind=Notification.Kind.MEMORY_CHANGED, text="one")
    while (await browser.receive_json_from(timeout=DEADLINE))["text"] != "one":
        continue  # the notification about the new key
    unresponsive_redis.thaw() if unresponsive_redis.process.poll() is None else None
    await browser.disconnect(timeout=DEADLINE)
    await sync_to_async(connections.close_all)()


def test_waiting_calls_with_the_same_key_are_merged(settings: Settings) -> None:
    settings.DB_THREADS = 1
    gate, sent = threading.Event(), []
    calls = Background("test")
    calls.submit("first", lambda: gate.wait(30))
    for number in range(100):
        calls.submit(("owner", number % 2), lambda number=number: sent.append(number))
    gate.set()
    assert calls.drain(10)
    assert sorted(sent) in ([0, 1], [1, 2])


async def test_a_worker_waits_for_a_job_and_gets_it(redis: OwnRedis) -> None:
    broker = QueueBroker()
    assert await asyncio.to_thread(broker.dequeue) is None  # after a second, without an error
    await asyncio.to_thread(broker.enqueue, b"job")
    assert await asyncio.to_thread(broker.dequeue) == [(None, b"job")]


async def test_a_worker_waits_while_redis_does_not_answer(
    unresponsive_redis: OwnRedis, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_clients, "_DEQUEUE_SECONDS", 0.2)
    monkeypatch.setattr(redis_clients, "ANSWER_SECONDS", 0.2)
    broker = QueueBroker()
    async with asyncio.timeout(DEADLINE):
        assert [await asyncio.to_thread(broker.dequeue) for _ in range(2)] == [None, None]
    await asyncio.to_thread(broker.set_stat, "key", "value", 3)  # would be logged twice a second
    assert [record.message.partition(" (")[0] for record in caplog.records] == ["Redis delivers no jobs"]


async def test_a_listener_ends_even_if_its_connection_swallows_a_cancellation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def receive(layer: RedisChannelLayer, channel: str) -> None:
        for _ in range(2):
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(3600)

    monkeypatch.setattr(RedisChannelLayer, "receive", receive)
    listening = asyncio.create_task(HintLayer(hosts=["redis://127.0.0.1:1/0"]).receive("one"))
    await asyncio.sleep(0.05)
    listening.cancel()
    done, _ = await asyncio.wait([listening], timeout=DEADLINE)
    assert done
    assert listening.cancelled()


@pytest.mark.parametrize(
    ("options", "fine"),
    [("", True), ("?socket_timeout=2", True), ("?socket_timeout=two", False), ("?nonsense=1", False)],
)
def test_options_of_an_address_that_redis_does_not_know_are_found(options: str, fine: bool) -> None:
    assert (url_problem(f"redis://127.0.0.1:6379/0{options}") == "") is fine
