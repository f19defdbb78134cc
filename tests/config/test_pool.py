"""Connections to PostgreSQL are limited by the pool, however many pages are requested at once."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.conf import settings as configured
from django.contrib.auth.models import User
from django.db import connection, connections, transaction
from django.test import Client
from pytest_django.fixtures import Settings

from config.serving.asgi_handler import HttpApplication
from memories.database.access import in_read_thread, in_thread
from memories.models import Owner
from tests.shutdown import close_lanes

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(
        configured.DATABASES["default"]["ENGINE"].endswith("sqlite3"), reason="SQLite has no server and no pool"
    ),
]
POOL_SIZE = 6
REQUESTS = 40


@pytest.fixture
def small_pool(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A pool of six connections, shared by pages and database threads."""
    settings.DB_THREADS = 1
    options = connections.settings["default"]["OPTIONS"]
    connection.close()
    connection.close_pool()  # type: ignore[attr-defined]  # PostgreSQL only
    monkeypatch.setitem(options, "pool", options["pool"] | {"max_size": POOL_SIZE, "timeout": 30})
    yield
    close_lanes()
    connection.close()
    connection.close_pool()  # type: ignore[attr-defined]


@pytest.mark.parametrize("is_pooled", [True, False])
def test_transactions_are_read_committed_whatever_the_default_of_the_server(
    monkeypatch: pytest.MonkeyPatch, is_pooled: bool
) -> None:
    values = connections.settings["default"]
    options = values["OPTIONS"] | {"options": "-c default_transaction_isolation=serializable"}
    if not is_pooled:
        del options["pool"]
    monkeypatch.setitem(connections.settings, "default", values | {"OPTIONS": options})
    connection.close()
    connection.close_pool()  # type: ignore[attr-defined]
    with ThreadPoolExecutor(1) as thread:  # whose connection is new
        assert thread.submit(isolation_levels).result() == ["read committed"] * 2
    connection.close_pool()  # type: ignore[attr-defined]


def isolation_levels() -> list[str]:
    """Return the level of a single statement, and that of a transaction."""
    try:
        with connection.cursor() as cursor:
            levels = [cursor.execute("SHOW transaction_isolation").fetchone()[0]]
            with transaction.atomic():
                levels.append(cursor.execute("SHOW transaction_isolation").fetchone()[0])
        return levels
    finally:
        connection.close()


async def load_page(path: str, cookie: str) -> int:
    statuses: list[int] = []

    async def receive() -> dict[str, Any]:
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "server": ("testserver", 80),
        "client": ("127.0.0.1", 1),
        "headers": [(b"host", b"testserver"), (b"cookie", cookie.encode())],
    }
    pending = {"first": True}

    async def receive_once() -> dict[str, Any]:
        if pending.pop("first", False):
            return {"type": "http.request", "body": b"", "more_body": False}
        return await receive()

    await HttpApplication()(scope, receive_once, send)
    return statuses[0]


def login(owner: Owner) -> str:
    browser = Client()
    browser.force_login(User.objects.get(pk=owner.user_id))
    return f"daybook_session={browser.cookies['daybook_session'].value}"


def _server_connections() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")
        return int(cursor.fetchone()[0])


async def test_many_concurrent_pages_use_no_more_connections_than_the_pool_has(bob: Owner, small_pool: None) -> None:
    cookie = await in_thread(login, bob)
    loading = [asyncio.create_task(load_page("/memories/", cookie)) for _ in range(REQUESTS)]
    seen = [await in_read_thread(_server_connections)]
    while not all(task.done() for task in loading):
        await asyncio.wait(loading, timeout=0.05, return_when=asyncio.ALL_COMPLETED)
        seen.append(await in_read_thread(_server_connections))
    assert [task.result() for task in loading] == [200] * REQUESTS
    assert max(seen) <= POOL_SIZE
