"""GET /healthz and GET /readyz."""

import asyncio
import json
import threading
import time
from typing import Any

import pytest
from django.db import InterfaceError, OperationalError
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, JsonResponse
from django.test import AsyncClient, RequestFactory
from pytest_django import Settings

from config import health
from gateway import heartbeat
from memories.database import access
from memories.ids import uuid7
from tests.shutdown import close_lanes
from tests.waiting import eventually_async


@pytest.fixture(autouse=True)
def _inline(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.DB_THREADS = 0
    settings.DAYBOOK_UPSTREAMS = {}
    monkeypatch.setattr(health, "_migrated", False)


@pytest.fixture
def request_to(rf: RequestFactory) -> HttpRequest:
    return rf.get("/readyz")


@pytest.fixture
def worker() -> None:
    heartbeat.beat(uuid7())


def _status_and_body(response: JsonResponse) -> tuple[int, Any]:
    assert response["Cache-Control"] == "no-store"
    return response.status_code, json.loads(response.content)


async def test_healthz_is_ok(request_to: HttpRequest) -> None:
    assert _status_and_body(await health.healthz(request_to)) == (200, {"status": "ok"})


@pytest.mark.django_db
async def test_readyz_is_ready_with_database_and_worker(worker: None, request_to: HttpRequest) -> None:
    assert _status_and_body(await health.readyz(request_to)) == (
        200,
        {"status": "ready", "model": "demo", "reasons": []},
    )


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["default", "local"])
async def test_readyz_reports_a_configured_upstream(
    worker: None, request_to: HttpRequest, settings: Settings, name: str
) -> None:
    settings.DAYBOOK_UPSTREAMS = {name: {"url": "http://127.0.0.1:1/v1", "key": ""}}
    status, body = _status_and_body(await health.readyz(request_to))
    assert (status, body["model"]) == (200, "upstream")


@pytest.mark.django_db
async def test_readyz_is_unready_without_a_worker(request_to: HttpRequest, settings: Settings) -> None:
    settings.SWEEP_SECONDS = 0.2
    expected = {"status": "unready", "model": "demo", "reasons": ["no heartbeat of a worker for 15 s"]}
    assert _status_and_body(await health.readyz(request_to)) == (503, expected)


@pytest.mark.django_db
async def test_readyz_is_unready_with_a_nearly_full_disk(
    worker: None, request_to: HttpRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "MIN_FREE_BYTES", 10**18)
    status, body = _status_and_body(await health.readyz(request_to))
    assert status == 503
    assert "the disk of DAYBOOK_HOME has" in body["reasons"][0]


@pytest.mark.django_db
async def test_readyz_is_unready_after_a_write_failed_for_lack_of_space(
    worker: None, request_to: HttpRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memories.database.access._full_at", time.monotonic())
    status, body = _status_and_body(await health.readyz(request_to))
    assert (status, body["reasons"]) == (
        503,
        ["the disk of the database is full: a write failed within the last minute"],
    )


@pytest.mark.django_db(transaction=True)
async def test_healthz_answers_while_every_database_thread_is_busy(settings: Settings) -> None:
    settings.DB_THREADS = 1
    release, occupied = threading.Event(), threading.Event()
    writing = asyncio.create_task(access.in_thread(lambda: occupied.set() or release.wait(30)))
    reading = [asyncio.create_task(access.in_read_thread(release.wait, 30)) for _ in range(settings.DB_READ_THREADS)]
    await eventually_async(occupied.is_set, within=10)
    answer = await AsyncClient().get("/healthz")
    assert not writing.done()
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})
    release.set()
    await asyncio.gather(writing, *reading)
    await asyncio.to_thread(close_lanes)


@pytest.mark.django_db
async def test_readyz_is_unready_with_pending_migrations(
    worker: None, request_to: HttpRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "pending_migrations", lambda: ["gateway.0002_more"])
    status, body = _status_and_body(await health.readyz(request_to))
    assert (status, body["reasons"]) == (503, ["migrations are pending"])


@pytest.mark.django_db
def test_pending_migrations_are_queried_until_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    class Executor(MigrationExecutor):
        calls = 0

        def migration_plan(self, *args: object, **kwargs: object) -> list[tuple[object, bool]]:
            Executor.calls += 1
            plan = super().migration_plan(self.loader.graph.leaf_nodes(), clean_start=True)
            return plan[:1] if Executor.calls == 1 else []

    monkeypatch.setattr(health, "MigrationExecutor", Executor)
    assert [len(health.pending_migrations()) for _ in range(3)] == [1, 0, 0]
    assert Executor.calls == 2


@pytest.mark.django_db
@pytest.mark.parametrize("kind", [OperationalError, InterfaceError])
async def test_a_failing_database_is_reported_without_details(
    request_to: HttpRequest, monkeypatch: pytest.MonkeyPatch, kind: type[Exception]
) -> None:
    def away() -> bool:
        raise kind("connection to server at 10.1.2.3 failed: password authentication failed")

    monkeypatch.setattr(heartbeat, "alive", away)
    status, body = _status_and_body(await health.readyz(request_to))
    assert (status, body["reasons"]) == (503, ["the database does not answer"])
