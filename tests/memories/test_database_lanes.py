"""Database threads: reads during writes, timeouts, and responses when the database is busy or full."""

import asyncio
import gc
import sqlite3
import threading
import weakref
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from typing import Any
from uuid import UUID

import psycopg
import pytest
from django.conf import settings as configured
from django.contrib.auth.models import User
from django.db import OperationalError, ProgrammingError, connection, connections
from django.test import AsyncClient, Client
from psycopg_pool import PoolTimeout
from pytest_django.fixtures import Settings

from gateway.jobs import Throttle
from gateway.models import ApiKey
from memories.api.export import LONG, download
from memories.database import access
from memories.database.access import in_read_thread, in_shared_thread, in_thread, overloaded, working_for
from memories.database.batches import in_slices
from memories.database.lanes import DatabaseBusy
from memories.errors import NotFound
from memories.models import Memory, Owner
from tests.conftest import Api
from tests.factories import key_make, memory_make
from tests.memories.busy_threads import busy_thread
from tests.memories.sqlite_lock import SQLITE, write_lock
from tests.pages import client_of
from tests.shutdown import close_lanes
from tests.waiting import eventually_async

pytestmark = pytest.mark.django_db(transaction=True)
only_sqlite = pytest.mark.skipif(not SQLITE, reason="PostgreSQL has no lock of the whole database")
only_postgresql = pytest.mark.skipif(SQLITE, reason="SQLite has no connections that a server could end")
FREE_TO_READ = (
    "/api/memories",
    "/api/memories/1",
    "/api/memories/1/revisions",
    "/api/memories/health",
    "/api/sessions",
    "/api/reviews",
    "/api/consolidations",
    "/api/notifications?after=0",
    "/api/books/main/artifacts",
    "/v1/models",
)


@pytest.fixture(autouse=True)
def lanes(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Use real database threads that wait for at most a second."""
    settings.DB_THREADS = 1
    settings.DB_BUSY_SECONDS = 1.0
    monkeypatch.setattr("memories.database.access._full_at", -1000.0)
    # Whatever an earlier test scheduled ended with its event loop and threads.
    monkeypatch.setattr("gateway.limits.key_uses._writes", Throttle())
    monkeypatch.setattr("memories.database.access._next_checkpoint", 0.0)
    yield
    close_lanes()


def refusal(status: int, body: Any) -> tuple[int, str]:
    return status, body["error"]["code"]


async def test_reads_do_not_wait_for_a_write(alice: Owner, alice_api: Api) -> None:
    await in_thread(memory_make, alice, "Likes tea.")
    async with busy_thread() as [writing]:
        statuses = {path: (await alice_api.get(path))[0] for path in FREE_TO_READ}
        found, _ = await alice_api.post("/api/memories/search", {"query": "tea"})
        assert not writing.done()
    assert (found, statuses) == (200, dict.fromkeys(FREE_TO_READ, 200))


@only_sqlite
async def test_the_wal_is_checkpointed_soon_after_a_write(alice: Owner) -> None:
    def contents() -> set[str]:
        # An immutable database is read without its WAL.
        with closing(sqlite3.connect(f"file:{connections.settings['default']['NAME']}?immutable=1", uri=True)) as alone:
            return {content for (content,) in alone.execute("SELECT content FROM memories_memory")}

    await in_thread(memory_make, alice, "Likes tea.")
    assert await eventually_async(contents, within=10) == {"Likes tea."}


def terminate(backend: int) -> bool:
    """Let PostgreSQL terminate another connection."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [backend])
        return bool(cursor.fetchone()[0])


@only_postgresql
async def test_a_terminated_connection_is_replaced(alice: Owner, settings: Settings) -> None:
    backend = await in_thread(lambda: connection.connection.info.backend_pid)
    assert await in_read_thread(terminate, backend)
    settings.DB_BUSY_SECONDS = 3.0  # the new timeout is the first statement sent to the server
    assert await in_thread(Owner.objects.count) == 1


@only_postgresql
async def test_the_first_write_on_a_terminated_connection_is_stored(alice: Owner) -> None:
    await in_thread(memory_make, alice, "Likes tea.")
    backend = await in_thread(lambda: connection.connection.info.backend_pid)
    assert await in_read_thread(terminate, backend)
    await in_thread(memory_make, alice, "Likes coffee.")
    assert await in_thread(Memory.objects.count) == 2


@only_postgresql
async def test_a_read_on_a_terminated_connection_uses_a_new_one(alice: Owner, settings: Settings) -> None:
    settings.DB_READ_THREADS = 1
    backend = await in_read_thread(lambda: connection.connection.info.backend_pid)
    assert await in_thread(terminate, backend)
    assert await in_read_thread(Owner.objects.count) == 1


def test_a_worker_runs_deferred_writes_without_a_lane(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> None:
    monkeypatch.setattr(access, "_is_worker", True)
    monkeypatch.setattr(access, "LATER_SECONDS", 0)
    settings.DB_THREADS = 1
    done = threading.Event()
    access.write_later(done.set)
    assert done.wait(10)


async def test_waiting_work_is_dropped_when_its_client_disconnects() -> None:
    done: list[str] = []
    async with busy_thread():
        second = asyncio.create_task(in_thread(done.append, "second"))
        await asyncio.sleep(0)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
    await in_thread(done.append, "third")
    assert done == ["third"]


class Text:
    """What a refused function holds, such as an unpacked file."""


@pytest.mark.parametrize("owner_id", [None, UUID(int=1)])
@pytest.mark.parametrize("lane", [in_thread, in_read_thread, None])
async def test_a_refusal_frees_what_its_function_holds_without_the_collector(lane: Any, owner_id: UUID | None) -> None:
    working_for.set(owner_id)
    held: list[weakref.ref[Text]] = []

    def refused() -> Iterator[None]:
        text = Text()
        held.append(weakref.ref(text))
        yield
        raise NotFound("There is no such row.")

    gc.disable()
    try:
        try:
            await (lane(list, refused()) if lane else in_slices(refused()))  # type: ignore[arg-type]
        except NotFound:
            pass
        else:
            pytest.fail("it was not refused")
        assert await eventually_async(lambda: held[0]() is None, within=10)  # the thread may still hold it
    finally:
        gc.enable()


async def test_the_reads_of_one_owner_leave_a_thread_to_others(
    alice: Owner, alice_api: Api, charlie_api: Api, settings: Settings
) -> None:
    settings.DB_READ_THREADS = 2
    async with busy_thread(in_read_thread, owner=alice, calls=3) as slow:
        assert (await charlie_api.get("/api/memories"))[0] == 200
        assert (await alice_api.get("/api/memories"))[0] == 503
    first, *others = (task.exception() for task in slow)
    assert first is None
    assert [type(error) for error in others] == [DatabaseBusy, DatabaseBusy]
    assert (await alice_api.get("/api/memories"))[0] == 200


async def test_a_read_that_its_client_left_still_occupies_a_thread(
    alice: Owner, charlie_api: Api, settings: Settings
) -> None:
    settings.DB_READ_THREADS = 2
    async with busy_thread(in_read_thread, owner=alice) as [left]:
        left.cancel()
        with pytest.raises(asyncio.CancelledError):
            await left
        before = working_for.set(alice.pk)
        again = asyncio.create_task(in_read_thread(list))
        working_for.reset(before)
        await asyncio.sleep(0)
        assert (await charlie_api.get("/api/memories"))[0] == 200
        assert not again.done()
    assert await again == []


async def test_a_long_read_of_an_owner_leaves_a_thread_to_the_same_owner(alice: Owner, alice_api: Api) -> None:
    async with busy_thread(in_read_thread, owner=alice):
        assert (await alice_api.get("/api/memories"))[0] == 200


async def test_owners_take_turns_to_write(alice: Owner, bob: Owner, charlie: Owner) -> None:
    done: list[str] = []
    owners = (alice, bob, charlie)

    def queued(owner: Owner, *names: str, lane: Any = in_thread) -> "list[asyncio.Task[None]]":
        before = working_for.set(owner.pk)
        tasks = [asyncio.create_task(lane(done.append, name)) for name in names]
        working_for.reset(before)
        return tasks

    async with busy_thread():
        waiting = [
            *queued(alice, "alice 1", "alice 2", "alice 3"),
            *queued(bob, "bob 1", lane=in_shared_thread),
            *queued(charlie, "charlie 1", "charlie 2"),
            *queued(bob, "bob 2", lane=in_shared_thread),
            *queued(alice, "alice 4", lane=in_shared_thread),
        ]
        queues = access._write_lane._waiting  # that of None may have work which an earlier test left for later
        await eventually_async(lambda: sum(len(queues.get(each.pk, ())) for each in owners) == len(waiting), within=10)
    await asyncio.gather(*waiting)
    # On SQLite, Bob's second write follows his first, which may share its transaction.
    shared = ["bob 1", "bob 2", "charlie 1", "alice 2", "charlie 2"]
    in_turn = ["bob 1", "charlie 1", "alice 2", "bob 2", "charlie 2"]
    assert done == ["alice 1", *(shared if SQLITE else in_turn), "alice 3", "alice 4"]
    assert queues.keys() <= {None}


async def test_a_download_that_has_begun_waits_longer_for_a_thread_than_a_request(
    settings: Settings,
) -> None:
    settings.DB_READ_THREADS = 1
    chunks = aiter(download(iter(["first\n" * LONG, "second\n"]), "lines.jsonl"))
    assert (await anext(chunks)).startswith(b"first")
    async with busy_thread(in_read_thread):
        second = asyncio.create_task(anext(chunks))
        with pytest.raises(DatabaseBusy):
            await in_read_thread(Memory.objects.count)
    assert await second == b"second\n"


async def test_a_request_that_waits_too_long_for_a_thread_gets_retry_after(alice_api: Api) -> None:
    async with busy_thread() as [writing]:
        response = await alice_api.raw("POST", "/api/memories", {"content": "Likes tea."})
        assert not writing.done()
    assert refusal(response.status_code, response.json()) == (503, "overloaded")
    assert int(response["Retry-After"]) >= 1
    assert not await in_thread(Memory.objects.exists)


@only_sqlite
async def test_while_the_database_is_locked_writes_are_refused_and_reads_succeed(alice: Owner, alice_api: Api) -> None:
    await in_thread(memory_make, alice, "Likes tea.")
    with write_lock():
        writes = await asyncio.gather(
            *(alice_api.post("/api/memories", {"content": f"Likes {what}."}) for what in ("rain", "snow", "fog", "ice"))
        )
        assert [refusal(*answer) for answer in writes] == [(503, "overloaded")] * 4
        assert [(await alice_api.get(path))[0] for path in ("/api/memories", "/api/sessions")] == [200, 200]
    assert (await alice_api.post("/api/memories", {"content": "Likes rain."}))[0] == 201


@only_sqlite
async def test_a_new_owners_first_request_on_a_locked_database_delays_nobody(
    alice: Owner, alice_api: Api, settings: Settings
) -> None:
    settings.DB_READ_THREADS = 1
    settings.DB_BUSY_SECONDS = 3.0  # the read must finish before the others time out
    _, trusted = await in_thread(partial(key_make, alice, trusted=True))
    _, shared = await in_thread(partial(key_make, alice))
    newcomer = await in_thread(partial(User.objects.create_user, "newcomer"))
    browser = AsyncClient()
    await in_thread(browser.force_login, newcomer)
    with write_lock():
        first = [
            asyncio.create_task(Api(trusted).raw("GET", "/api/memories", x_daybook_user="u1")),
            asyncio.create_task(Api(shared).raw("GET", "/api/memories", x_openwebui_user_id="u1")),
            asyncio.create_task(browser.get("/api/memories")),
        ]
        await asyncio.sleep(0)
        assert (await alice_api.get("/api/memories"))[0] == 200
        assert not any(task.done() for task in first)
        for answer in await asyncio.gather(*first):
            assert refusal(answer.status_code, answer.json()) == (503, "overloaded")
            assert int(answer["Retry-After"]) >= 1
    assert (await Api(trusted).call("GET", "/api/memories", x_daybook_user="u1"))[0] == 200


@only_sqlite
def test_a_new_users_page_is_busy_while_the_database_is_locked(db: None) -> None:
    connection.close()
    connection.settings_dict["OPTIONS"]["timeout"] = 0.1
    browser = Client(raise_request_exception=False)
    browser.force_login(User.objects.create_user("newcomer"))
    with write_lock():
        answer = browser.get("/memories/")
    connection.settings_dict["OPTIONS"]["timeout"] = configured.DB_BUSY_SECONDS
    connection.close()
    assert (answer.status_code, answer["Retry-After"]) == (503, "2")


@only_sqlite
@pytest.mark.parametrize("path", ["/", "/memories/", "/reviews/", "/account/", "/admin/"])
def test_pages_can_be_read_while_the_database_is_locked(bob: Owner, path: str) -> None:
    browser = client_of(bob)
    browser.get(path)
    with write_lock():
        assert browser.get(path).status_code == 200


@only_sqlite
def test_a_page_that_cannot_write_says_that_the_database_is_busy(
    alice: Owner, caplog: pytest.LogCaptureFixture
) -> None:
    connection.close()
    connection.settings_dict["OPTIONS"]["timeout"] = 0.1
    User.objects.filter(pk=alice.user_id).update(password="md5$a$a")
    browser = Client(raise_request_exception=False)
    browser.force_login(User.objects.get(pk=alice.user_id))
    with write_lock():
        answer = browser.post("/account/time-zone/", {"time_zone": "Europe/Lisbon"})
    connection.settings_dict["OPTIONS"]["timeout"] = configured.DB_BUSY_SECONDS
    connection.close()
    assert (answer.status_code, answer["Retry-After"]) == (503, "2")
    assert "The database is busy" in answer.content.decode()
    [record] = caplog.records
    assert "The database is busy" in record.getMessage()
    assert record.exc_info is None  # everybody's pages are refused at such a moment


async def test_the_last_use_of_a_key_is_stored_in_the_background(alice: Owner) -> None:
    def used(key_id: UUID) -> bool:
        return ApiKey.objects.get(pk=key_id).last_used_at is not None

    key, plain = await in_thread(key_make, alice)
    assert (await Api(plain).get("/api/sessions"))[0] == 200
    await eventually_async(lambda: in_read_thread(used, key.pk), within=15)


def _wrapped(cause: Exception) -> OperationalError:
    error = OperationalError("…")
    error.__cause__ = cause
    return error


class _Sqlite(sqlite3.OperationalError):
    def __init__(self, code: int) -> None:
        super().__init__("…")
        self.sqlite_errorcode = code


@pytest.mark.parametrize(
    "cause",
    [
        _Sqlite(sqlite3.SQLITE_BUSY),
        _Sqlite(sqlite3.SQLITE_BUSY_SNAPSHOT),
        _Sqlite(sqlite3.SQLITE_FULL),
        psycopg.errors.LockNotAvailable(),
        psycopg.errors.QueryCanceled(),
        psycopg.errors.TooManyConnections(),
        psycopg.errors.DiskFull(),
        PoolTimeout(),
    ],
)
def test_a_busy_or_full_database_is_reported_as_overloaded(cause: Exception) -> None:
    found = overloaded(_wrapped(cause))
    assert found is not None
    assert (found.http_status, found.code) == (503, "overloaded")


def test_tables_that_are_missing_while_a_backup_is_restored_are_an_overload() -> None:
    error = ProgrammingError("…")
    error.__cause__ = psycopg.errors.UndefinedTable()
    assert overloaded(error) is not None
    error.__cause__ = psycopg.errors.UndefinedColumn()
    assert overloaded(error) is None


@pytest.mark.parametrize("cause", [_Sqlite(sqlite3.SQLITE_ERROR), psycopg.errors.UndefinedColumn()])
def test_other_database_errors_are_not_reported_as_overloaded(cause: Exception) -> None:
    assert overloaded(_wrapped(cause)) is None


@only_sqlite
async def test_a_full_disk_is_reported_as_overloaded(alice_api: Api) -> None:
    def fill() -> None:
        with connections["default"].cursor() as cursor:
            cursor.execute("VACUUM")  # frees the pages that other tests left unused
            cursor.execute("PRAGMA page_count")
            cursor.execute(f"PRAGMA max_page_count = {cursor.fetchone()[0]}")

    await in_thread(fill)
    for number in range(50):
        text = f"Likes {number}. " + "Rain. " * 200
        status, body = await alice_api.post("/api/memories", {"content": text, "book": f"book-{number}"})
        if status != 201:
            break
    assert refusal(status, body) == (503, "overloaded")
    assert "disk" in body["error"]["message"]
