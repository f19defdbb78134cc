"""What processes say and do while the database cannot be used."""

import logging
from types import SimpleNamespace
from typing import NoReturn

import pytest
from django.db import OperationalError, connection
from django.db.migrations.recorder import MigrationRecorder

from config import health
from config.databases import unusable_database
from config.processes import database_wait
from config.processes.database_wait import DatabaseWait
from config.processes.worker import SweepLoop

EMPTY = "this database is still empty. Run `python manage.py up` (or `prepare`) first."


@pytest.fixture(autouse=True)
def _records(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="daybook.database")


@pytest.mark.django_db
def test_a_process_says_once_a_minute_what_it_waits_for(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    reasons = iter([EMPTY] * 150 + [""])
    monkeypatch.setattr(database_wait, "unusable_reason", lambda: next(reasons))
    seconds = [0.0]
    monkeypatch.setattr("gateway.jobs.time.monotonic", lambda: seconds[0])

    def pause(pause: float) -> bool:
        seconds[0] += pause
        return False

    assert DatabaseWait("The worker").until_usable(pause)
    waiting = f"The worker waits for the database: {EMPTY}"
    assert caplog.messages == [waiting] * 3 + ["The worker waits no longer: the database can be used."]


def test_a_process_that_never_waited_says_nothing(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_wait, "unusable_reason", lambda: "")
    assert DatabaseWait("The worker").until_usable(lambda seconds: pytest.fail("there was nothing to wait for"))
    assert caplog.messages == []


def test_a_waiting_process_can_be_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database_wait, "unusable_reason", lambda: EMPTY)
    assert not DatabaseWait("The worker").until_usable(lambda seconds: True)


@pytest.mark.django_db
def test_a_migrated_database_is_usable() -> None:
    MigrationRecorder(connection).record_applied("gateway", "0001_squashed")  # of an earlier version
    assert health.unusable_reason() == ""


@pytest.mark.django_db
def test_a_database_of_a_newer_version_is_not_usable() -> None:
    MigrationRecorder(connection).record_applied("gateway", "9999_of_tomorrow")
    assert "Start that version" in health.unusable_reason()


@pytest.mark.django_db
def test_without_the_database_a_round_is_one_line_and_no_sweep_runs(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def beat(worker_id: object) -> NoReturn:
        raise OperationalError("connection refused")

    ran: list[str] = []
    loop = SweepLoop([lambda: ran.append("swept")])
    with monkeypatch.context() as away:
        away.setattr("gateway.heartbeat.beat", beat)
        for _ in range(3):
            loop.round()
    assert ran == []
    (line,) = caplog.messages
    assert line.startswith("The worker waits for the database: ")
    assert line.endswith("can't be used: connection refused.")
    assert all(record.exc_info is None for record in caplog.records)
    loop.round()
    assert ran == ["swept"]
    assert caplog.messages[1:] == ["The worker waits no longer: the database can be used."]


@pytest.mark.django_db
@pytest.mark.parametrize(("reason", "lines"), [("it is away.", 1), ("", 2)])
def test_a_lost_connection_is_one_line_and_another_error_a_traceback_each(
    reason: str, lines: int, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sweep() -> NoReturn:
        raise OperationalError("terminating connection due to administrator command")

    monkeypatch.setattr(database_wait, "unusable_reason", lambda: reason)
    SweepLoop([sweep, sweep]).round()
    assert len(caplog.records) == lines
    assert all((record.exc_info is None) is bool(reason) for record in caplog.records)


def test_a_full_disk_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    if connection.vendor != "sqlite":
        pytest.skip("PostgreSQL names it itself")
    monkeypatch.setattr("config.databases.shutil.disk_usage", lambda folder: SimpleNamespace(free=0))
    line = unusable_database(OperationalError("disk I/O error"))  # SQLite could not create the file for shared memory
    assert line.endswith("can't be used: disk I/O error. Its disk has 0 MB left.")
