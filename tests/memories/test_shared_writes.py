"""memories.database.shared: writes that wait at the same time share one commit, or are stored separately."""

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from django.db import IntegrityError, OperationalError, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from pytest_django.fixtures import Settings

from memories.database import access
from memories.database.access import in_patient_shared_thread, in_shared_thread, in_thread
from memories.database.shared import after_commit, is_shared, shareable
from memories.errors import Conflict
from memories.ids import uuid7
from memories.models import Owner, ThreadRecord
from tests.memories.busy_threads import busy_thread
from tests.memories.sqlite_lock import SQLITE, write_lock
from tests.overlapping import only_postgresql
from tests.shutdown import close_lanes
from tests.waiting import eventually_async

pytestmark = pytest.mark.django_db(transaction=True)
only_sqlite = pytest.mark.skipif(not SQLITE, reason="nothing is shared on PostgreSQL")


@pytest.fixture(autouse=True)
def lanes(settings: Settings) -> Iterator[None]:
    """Use real database threads that wait for at most a second."""
    settings.DB_THREADS = 1
    settings.DB_BUSY_SECONDS = 1.0
    yield
    close_lanes()


@pytest.fixture
def commits(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the threads that committed, one per commit."""
    seen: list[str] = []
    commit = BaseDatabaseWrapper._commit  # type: ignore[attr-defined]

    def watched(self: BaseDatabaseWrapper) -> None:
        seen.append(threading.current_thread().name)
        commit(self)

    monkeypatch.setattr(BaseDatabaseWrapper, "_commit", watched)
    return seen


@shareable
def record(owner: Owner, number: int, *, fail: Exception | None = None, first: bool = False) -> int:
    """Store a row, and optionally fail before (`first`) or after it."""
    if fail and first:
        raise fail
    ThreadRecord(owner_id=owner.pk, session_id=uuid7(), run_id=uuid7()).save(force_insert=True)
    if fail:
        raise fail
    return number


def waiting_jobs() -> int:
    jobs = [job for queue in list(access._write_lane._waiting.values()) for job in list(queue)]
    return sum(isinstance(job.function, partial) for job in jobs)  # without what an earlier test left for later


async def run_together(*calls: Callable[[], Any]) -> list[Any]:
    """Run the calls in the write thread after all of them have waited for it. Return results and errors."""
    async with busy_thread():
        waiting = [asyncio.create_task(in_shared_thread(call)) for call in calls]
        await eventually_async(lambda: waiting_jobs() == len(calls), within=10)
    return await asyncio.gather(*waiting, return_exceptions=True)


async def stored() -> int:
    return await in_thread(ThreadRecord.objects.count)


@only_sqlite
async def test_waiting_writes_share_a_commit(alice: Owner, commits: list[str]) -> None:
    assert await run_together(*(lambda n=n: record(alice, n) for n in range(4))) == [0, 1, 2, 3]  # type: ignore[misc]
    assert (len(commits), await stored()) == (1, 4)


@only_postgresql
async def test_on_postgresql_waiting_writes_use_all_threads(settings: Settings) -> None:
    settings.DB_THREADS = 2
    met = threading.Barrier(2)
    async with busy_thread(), busy_thread():
        waiting = [asyncio.create_task(in_shared_thread(met.wait, 10)) for _ in range(2)]
        await eventually_async(lambda: waiting_jobs() == 2, within=10)
    assert sorted(await asyncio.gather(*waiting)) == [0, 1]


async def test_a_write_alone_is_an_ordinary_transaction(alice: Owner, commits: list[str]) -> None:
    assert await in_patient_shared_thread(record, alice, 7) == 7
    assert (len(commits), await stored()) == (1, 1)


@pytest.mark.parametrize("first", [True, False])
async def test_a_refused_write_does_not_affect_the_others(alice: Owner, commits: list[str], first: bool) -> None:
    refusal = Conflict("no")
    calls = [lambda: record(alice, 1), lambda: record(alice, 2, fail=refusal, first=first), lambda: record(alice, 3)]
    assert await run_together(*calls) == [1, refusal, 3]
    assert await stored() == 2
    if SQLITE:  # after a partial write, the others are rolled back and repeated separately
        assert len(commits) == (1 if first else 2)


async def test_a_failed_commit_affects_only_its_own_write(alice: Owner) -> None:
    nobody = Owner(pk=uuid7())  # the foreign key is checked at the commit
    first, broken, last = await run_together(
        lambda: record(alice, 1), lambda: record(nobody, 2), lambda: record(alice, 3)
    )
    assert (first, last, await stored()) == (1, 3, 2)
    assert isinstance(broken, IntegrityError)


@only_sqlite
async def test_after_commit_functions_run_after_the_shared_commit(alice: Owner) -> None:
    seen: list[int] = []

    def look() -> None:
        other = sqlite3.connect(connections.settings["default"]["NAME"])
        seen.append(other.execute(f"SELECT count(*) FROM {ThreadRecord._meta.db_table}").fetchone()[0])  # noqa: S608
        other.close()

    def write() -> bool:
        record(alice, 1)
        after_commit(look)
        return is_shared()

    assert await run_together(write, write) == [True, True]
    assert await in_shared_thread(write) is False
    assert seen == [2, 2, 3]


@only_sqlite
async def test_each_write_is_refused_while_the_database_is_locked(alice: Owner) -> None:
    with write_lock():
        refused = await run_together(lambda: record(alice, 1), lambda: record(alice, 2))
    assert all(isinstance(error, OperationalError) for error in refused)
    assert await run_together(lambda: record(alice, 1), lambda: record(alice, 2)) == [1, 2]
    assert await stored() == 2


async def test_a_cancelled_write_is_not_run(alice: Owner) -> None:
    async with busy_thread():
        cancelled, waiting = (asyncio.create_task(in_shared_thread(record, alice, number)) for number in (1, 2))
        await eventually_async(lambda: waiting_jobs() == 2, within=10)
        cancelled.cancel()
        await asyncio.gather(cancelled, return_exceptions=True)
    assert (await waiting, await stored()) == (2, 1)
