"""Connections that PostgreSQL has ended (an idle timeout, a restart, a failover) are replaced before their next use."""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from django.conf import settings as configured
from django.db import OperationalError, connection, connections
from django_q.utils import close_old_django_connections
from pytest_django.fixtures import Settings

from config.processes.database_wait import DatabaseWait
from config.processes.worker import SweepLoop
from memories.database.access import in_read_thread, in_thread
from memories.messaging.invalidation import Watcher
from memories.models import Owner
from tests.config.test_pool import load_page, login
from tests.shutdown import close_lanes
from tests.waiting import eventually

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(
        configured.DATABASES["default"]["ENGINE"].endswith("sqlite3"), reason="SQLite has no server and no connections"
    ),
]


@pytest.fixture(autouse=True)
def own_connection_closed(db: None) -> Iterator[None]:
    """Close the test's own connection, which was ended too."""
    yield
    connection.close()


@pytest.fixture
def lanes(settings: Settings) -> Iterator[None]:
    """Use real database threads."""
    settings.DB_THREADS = settings.DB_READ_THREADS = 1
    yield
    close_lanes()


@pytest.fixture
def as_worker(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Connections of new threads are those of a worker: persistent, without a pool (memories.database.access)."""
    values = connections.settings["default"]
    options = {name: value for name, value in values["OPTIONS"].items() if name != "pool"}
    monkeypatch.setitem(connections.settings, "default", values | {"OPTIONS": options, "CONN_MAX_AGE": 300})
    yield
    connection.close()


def backend() -> int:
    """Return PostgreSQL's process of this thread's connection."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return int(cursor.fetchone()[0])


def end_connections() -> None:
    """Let PostgreSQL end every connection to the database but that of this call."""
    names = {"NAME": "dbname", "HOST": "host", "PORT": "port", "USER": "user", "PASSWORD": "password"}
    values: dict[str, Any] = {name: connections.settings["default"][key] or None for key, name in names.items()}
    with psycopg.connect(**values, autocommit=True) as other:
        other.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


async def test_pages_and_database_threads(bob: Owner, lanes: None) -> None:
    cookie = await in_thread(login, bob)
    assert await load_page("/memories/", cookie) == 200
    before = [await in_thread(backend), await in_read_thread(backend)]
    await asyncio.to_thread(end_connections)
    assert await load_page("/memories/", cookie) == 200
    assert {await in_thread(backend), await in_read_thread(backend)}.isdisjoint(before)


def test_a_page_after_many_pages_at_once(db: None) -> None:
    together = threading.Barrier(6)

    def take(_: int) -> None:
        backend()
        together.wait(20)
        connection.close()

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(take, range(6)))
    end_connections()
    connection.close()
    assert backend()


def test_a_pool_after_the_server_was_away(db: None, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pool asks the server again with the next request. Its own pauses grow with the time that it was away."""
    monkeypatch.setattr("psycopg_pool.base.AttemptWithBackoff.INITIAL_DELAY", 60.0)
    pool = connections.settings["default"]["OPTIONS"]["pool"]
    monkeypatch.setitem(connections.settings["default"]["OPTIONS"], "pool", pool | {"timeout": 0.1})
    connection.close()
    connection.close_pool()  # type: ignore[attr-defined]  # PostgreSQL only
    with monkeypatch.context() as away:
        away.setattr(psycopg.Connection, "connect", _refuse)
        with pytest.raises(OperationalError):
            backend()
    try:
        eventually(_is_answered, within=5)
    finally:
        connection.close()
        connection.close_pool()  # type: ignore[attr-defined]


def _refuse(*args: Any, **kwargs: Any) -> None:
    raise psycopg.OperationalError("connection refused")


def _is_answered() -> bool:
    try:
        return bool(backend())
    except OperationalError:
        return False


def test_the_workers_sweeps(db: None, as_worker: None, settings: Settings) -> None:
    settings.SWEEP_SECONDS = 0.05
    backends: list[int] = []
    loop = SweepLoop([lambda: backends.append(backend())])
    loop.start()
    try:
        eventually(lambda: backends, within=10)
        end_connections()
        eventually(lambda: len(set(backends)) == 2, within=10)
    finally:
        loop.stop(within=10)
    assert not loop.is_alive()


def test_a_worker_that_waits_for_the_database(db: None, as_worker: None) -> None:
    found: list[bool] = []

    def wait() -> None:
        waiting = DatabaseWait("The worker")
        found.append(waiting.check())
        end_connections()
        stopped = iter([False, False, True])
        found.append(waiting.until_usable(lambda seconds: next(stopped)))
        connection.close()

    thread = threading.Thread(target=wait)
    thread.start()
    thread.join(20)
    assert found == [True, True]


def test_a_job_of_the_queue(db: None, as_worker: None) -> None:
    backends: list[int] = []

    def two_jobs() -> None:
        for _ in range(2):
            close_old_django_connections()  # as the queue does before each job
            backends.append(backend())
            end_connections()
        connection.close()

    thread = threading.Thread(target=two_jobs)
    thread.start()
    thread.join(20)
    assert len(set(backends)) == 2


def test_the_poll_of_invalidations(db: None) -> None:
    watcher = Watcher()
    watcher.begin()
    end_connections()
    watcher._round()
    assert not watcher._is_failing


def test_a_server_that_is_gone_is_noticed(db: None) -> None:
    connection.ensure_connection()
    parameters = connection.connection.info.get_parameters()
    assert (parameters["keepalives_idle"], parameters["tcp_user_timeout"]) == ("30", "60000")
