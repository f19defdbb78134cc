"""memories.loop_writes: a short write is done on the event loop, where nothing is to be waited for."""

import asyncio
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.conf import settings as configured
from django.db import OperationalError, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from pytest_django.fixtures import Settings

from memories import database
from memories import loop_writes as rules
from memories.database import in_read_thread, on_loop, patiently_on_loop
from memories.errors import Conflict
from memories.ids import uuid7
from memories.models import Owner, ThreadRecord
from memories.shared import shareable
from tests.endings import close_lanes
from tests.waiting import eventually_async

pytestmark = pytest.mark.django_db(transaction=True)
SQLITE = configured.DATABASES["default"]["ENGINE"].endswith("sqlite3")
only_sqlite = pytest.mark.skipif(not SQLITE, reason="nothing is done on the event loop on PostgreSQL")
LOOP, THREAD = "MainThread", "daybook-db_0"


@pytest.fixture(autouse=True)
def lanes(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Real database threads, which wait a second at most, and no write that took long before."""
    settings.DB_THREADS = 1
    settings.DB_BUSY_SECONDS = 1.0
    monkeypatch.setattr(database, "_loop_writes", rules.LoopWrites(database._write_lane))
    yield
    close_lanes()


@pytest.fixture
def commits(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The threads in which something was committed."""
    seen: list[str] = []
    commit = BaseDatabaseWrapper._commit

    def watched(self: BaseDatabaseWrapper) -> None:
        seen.append(threading.current_thread().name)
        commit(self)

    monkeypatch.setattr(BaseDatabaseWrapper, "_commit", watched)
    return seen


@shareable
def record(owner: Owner, *, seconds: float = 0.0, fail: Exception | None = None) -> None:
    """Store a row, and take some time over it."""
    ThreadRecord(owner_id=owner.pk, session_id=uuid7(), run_id=uuid7()).save(force_insert=True)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        pass  # a disk that takes its time
    if fail:
        raise fail


@contextmanager
def write_lock() -> Iterator[None]:
    """SQLite's write lock, held as another process would."""
    other = sqlite3.connect(connections.settings["default"]["NAME"], isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.execute("ROLLBACK")
        other.close()


async def stored() -> int:
    return await in_read_thread(ThreadRecord.objects.count)


async def test_a_write_is_stored_by_the_event_loop(alice: Owner, commits: list[str]) -> None:
    await on_loop(record, alice)
    await patiently_on_loop(record, alice)
    assert await stored() == 2
    assert commits == [LOOP if SQLITE else THREAD] * 2
    assert asyncio.get_running_loop() is asyncio.get_event_loop()


async def test_who_is_refused_stores_nothing(alice: Owner) -> None:
    with pytest.raises(Conflict):
        await on_loop(record, alice, fail=Conflict("no"))
    assert await stored() == 0


@only_sqlite
async def test_a_thread_waits_for_a_lock_that_is_held(alice: Owner, commits: list[str]) -> None:
    with write_lock():
        began = time.monotonic()
        writing = asyncio.create_task(on_loop(record, alice))
        await eventually_async(lambda: bool(database._write_lane._shared) or database._write_lane._pool, within=10)
        assert time.monotonic() - began < 0.5  # the loop went on
        assert not writing.done()
    await writing
    assert (await stored(), commits) == (1, [THREAD])


@only_sqlite
async def test_a_lock_that_stays_is_told_after_the_usual_time(alice: Owner) -> None:
    with write_lock(), pytest.raises(OperationalError):
        await on_loop(record, alice)
    assert await stored() == 0


@only_sqlite
async def test_after_writes_that_took_long_threads_write_for_a_while(
    alice: Owner, commits: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rules, "LONG_SECONDS", 0.05)
    monkeypatch.setattr(rules, "VERY_LONG_SECONDS", 10.0)
    await on_loop(record, alice)
    await on_loop(record, alice, seconds=0.06)
    await on_loop(record, alice)  # one of them may have waited for a core
    await on_loop(record, alice, seconds=0.06)
    await on_loop(record, alice, seconds=0.06)
    assert commits == [LOOP] * 5
    await on_loop(record, alice)
    monkeypatch.setattr(database._loop_writes, "_not_before", time.monotonic())
    await on_loop(record, alice)
    assert commits[5:] == [THREAD, LOOP]


@only_sqlite
async def test_one_write_that_took_very_long_is_enough(
    alice: Owner, commits: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rules, "VERY_LONG_SECONDS", 0.06)
    await on_loop(record, alice, seconds=0.07)
    await on_loop(record, alice)
    assert commits == [LOOP, THREAD]
