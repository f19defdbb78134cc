"""config.processes.worker.SweepLoop and the heartbeat."""

import logging
import os
from datetime import timedelta
from typing import NoReturn

import pytest
from django.utils import timezone
from pytest_django import Settings

from config.processes import worker
from config.processes.worker import SweepLoop
from gateway import heartbeat
from gateway.models import Worker
from memories.ids import uuid7

pytestmark = pytest.mark.django_db


def test_a_failing_sweep_is_logged_and_the_next_one_runs(caplog: pytest.LogCaptureFixture) -> None:
    ran: list[str] = []

    def broken() -> NoReturn:
        raise RuntimeError("the disk is on fire")

    def working() -> None:
        ran.append("fine")

    with caplog.at_level(logging.ERROR, logger="daybook.sweep"):
        SweepLoop([broken, working]).round()
    assert ran == ["fine"]
    (record,) = caplog.records
    assert (record.name, record.exc_info is not None) == ("daybook.sweep", True)
    assert "broken failed" in record.getMessage()


def test_the_sweeps_run_if_the_heartbeat_fails_for_another_reason_than_the_database(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(worker_id: object) -> NoReturn:
        raise ValueError("a defect")

    monkeypatch.setattr(heartbeat, "beat", broken)
    ran: list[str] = []
    with caplog.at_level(logging.ERROR, logger="daybook.sweep"):
        SweepLoop([lambda: ran.append("swept")]).round()
    assert ran == ["swept"]
    (record,) = caplog.records
    assert record.exc_info is not None


def test_a_heartbeat_of_a_clock_that_was_ahead_is_not_heard() -> None:
    heartbeat.beat(uuid7())
    assert heartbeat.alive()
    Worker.objects.update(beat_at=timezone.now() + timedelta(hours=1))
    assert not heartbeat.alive()


def test_every_round_is_a_heartbeat() -> None:
    loop = SweepLoop([])
    loop.round()
    (worker,) = Worker.objects.all()
    assert (worker.pk, worker.pid) == (loop.worker_id, os.getpid())
    Worker.objects.update(beat_at=timezone.now() - timedelta(hours=1))
    assert not heartbeat.alive()
    loop.round()
    assert Worker.objects.count() == 1
    assert heartbeat.alive()


def test_rows_of_workers_gone_for_long_are_deleted() -> None:
    old = timezone.now() - timedelta(days=2)
    Worker.objects.create(host="elsewhere", pid=1, beat_at=old)
    recent = Worker.objects.create(host="elsewhere", pid=2, beat_at=timezone.now() - timedelta(hours=2))
    worker_id = uuid7()
    heartbeat.beat(worker_id)
    assert set(Worker.objects.values_list("pk", flat=True)) == {recent.pk, worker_id}


def test_a_worker_that_stops_normally_deletes_its_row() -> None:
    worker_id = uuid7()
    heartbeat.beat(worker_id)
    heartbeat.end(worker_id)
    assert not Worker.objects.exists()


def test_a_heartbeat_is_stale_after_15_seconds_or_four_sweeps(settings: Settings) -> None:
    settings.SWEEP_SECONDS = 0.2
    assert heartbeat.stale_after() == timedelta(seconds=15)
    settings.SWEEP_SECONDS = 60
    assert heartbeat.stale_after() == timedelta(seconds=240)
    Worker.objects.create(host="here", pid=1, beat_at=timezone.now() - timedelta(seconds=239))
    assert heartbeat.alive()
    settings.SWEEP_SECONDS = 50
    assert not heartbeat.alive()


def test_rows_of_this_machines_dead_processes_are_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "here")
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    Worker.objects.create(host="here", pid=child)
    living = Worker.objects.create(host="here", pid=os.getpid())
    elsewhere = Worker.objects.create(host="elsewhere", pid=child)
    heartbeat.forget_dead()
    assert set(Worker.objects.all()) == {living, elsewhere}


def test_the_worker_learns_what_other_processes_forget(monkeypatch: pytest.MonkeyPatch) -> None:
    watched: list[str] = []
    monkeypatch.setattr(worker, "watch", lambda: watched.append("sweeps"))
    loop = SweepLoop([])
    monkeypatch.setattr(loop._thread, "start", lambda: None)
    loop.start()
    assert watched == ["sweeps"]
