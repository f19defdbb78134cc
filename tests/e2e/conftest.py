"""Fixtures for the end-to-end tests: a home, a scripted upstream, a separate storage or the test database, and running
Daybooks."""

import os
import secrets
import shutil
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import pytest
import redis
from django.conf import settings
from django.db import connection

from tests.e2e.running import RunningDaybook, processes_of, running_daybook
from tests.migrated import database_from, migrated_database, migrated_file
from tests.upstream_server import UpstreamServer, serving_upstream

StartDaybook = Callable[..., RunningDaybook]
_QUEUE = "django_q:daybook:q"


@pytest.fixture(autouse=True)
def _needs_linux() -> None:
    if sys.platform != "linux":
        pytest.skip("end-to-end tests read /proc, which only Linux has")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The path of a DAYBOOK_HOME. Without `storage`, which creates a migrated database there, it does not exist yet."""
    return tmp_path / "home"


@pytest.fixture
def upstream() -> Iterator[UpstreamServer]:
    """A model server scripted by the test."""
    with serving_upstream() as server:
        yield server


@pytest.fixture
def shared(home: Path, upstream: UpstreamServer) -> Iterator[dict[str, str]]:
    """Environment variables for processes that share this test's database and queue. Processes of that home that are
    still running after the test are killed."""
    home.mkdir()
    # The key signs the jobs.
    env = {"OPENAI_BASE_URL": upstream.url, "OPENAI_API_KEY": "x", "DAYBOOK_WORKERS": "2"}
    env |= {"DAYBOOK_SECRET_KEY": settings.SECRET_KEY}
    name = str(connection.settings_dict["NAME"])
    if connection.vendor == "sqlite":
        (home / "daybook.sqlite3").symlink_to(name)
    else:
        url = urlsplit(os.environ["DATABASE_URL"])
        env |= {"DATABASE_URL": urlunsplit(url._replace(path=f"/{name}"))}
        env |= {"REDIS_URL": settings.REDIS_URL} if settings.REDIS_URL else {}
    _empty_queue(settings.REDIS_URL)
    yield env
    for pid in processes_of(home):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    _empty_queue(settings.REDIS_URL)


@contextmanager
def migrated_storage(home: Path) -> Iterator[dict[str, str]]:
    """Create a migrated, empty storage for that home; yield its environment variables."""
    url = os.environ.get("DATABASE_URL", "")
    if not url:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        shutil.copyfile(migrated_file(), home / "daybook.sqlite3")
    with new_storage(url and migrated_database(url)) as variables:
        yield variables


@pytest.fixture
def storage(home: Path) -> Iterator[dict[str, str]]:
    """The environment variables of this test's storage, which is migrated and empty."""
    with migrated_storage(home) as variables:
        yield variables


@pytest.fixture
def unmigrated(home: Path) -> Iterator[dict[str, str]]:
    """The environment variables of a storage without tables; the database from `storage` is removed."""
    (home / "daybook.sqlite3").unlink(missing_ok=True)
    with new_storage() as variables:
        yield variables


@contextmanager
def new_storage(template: str = "") -> Iterator[dict[str, str]]:
    """Create a storage; yield its environment variables: none for SQLite, else a new PostgreSQL database and Redis."""
    url = os.environ.get("DATABASE_URL", "")
    if not url:
        yield {}
        return
    name = f"daybook_e2e_{secrets.token_hex(6)}"
    redis_url = _redis_database()
    with database_from(url, name, template or "template1"):
        try:
            yield {
                "DATABASE_URL": urlunsplit(urlsplit(url)._replace(path=f"/{name}")),
                "DAYBOOK_SECRET_KEY": secrets.token_urlsafe(32),
                "REDIS_URL": redis_url,
            }
        finally:
            _empty_queue(redis_url)


def _empty_queue(redis_url: str) -> None:
    if redis_url:
        with redis.Redis.from_url(redis_url) as client:
            client.delete(_QUEUE)


def _redis_database() -> str:
    """Return this test process's own Redis database, so that no other worker takes its jobs; "" without Redis."""
    url = os.environ.get("REDIS_URL", "")
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    return url and urlunsplit(urlsplit(url)._replace(path=f"/{8 + worker % 4}"))


@pytest.fixture
def start_daybook(home: Path, storage: dict[str, str]) -> Iterator[StartDaybook]:
    """Start a Daybook on this test's home and storage: `start_daybook(env=None, *arguments, home=…, umask=…,
    own_interpreter=False)`."""
    with ExitStack() as started:

        def start(
            env: Mapping[str, str] | None = None, *arguments: str, home: Path = home, **options: Any
        ) -> RunningDaybook:
            return started.enter_context(running_daybook(home, storage | dict(env or {}), *arguments, **options))

        yield start
