"""Fixtures of the end-to-end tests: a home, a database of its own at scale, and Daybooks that run on them."""

import os
import secrets
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
import redis
from psycopg import sql

from tests.e2e.running import RunningDaybook, running_daybook

StartDaybook = Callable[..., RunningDaybook]


@pytest.fixture(autouse=True)
def _needs_linux() -> None:
    if sys.platform != "linux":
        pytest.skip("end-to-end tests read /proc, which only Linux has")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A DAYBOOK_HOME that does not exist yet."""
    return tmp_path / "home"


@pytest.fixture
def storage() -> Iterator[dict[str, str]]:
    """Variables of the storage of this test."""
    with new_storage() as variables:
        yield variables


@contextmanager
def new_storage() -> Iterator[dict[str, str]]:
    """Variables of the storage of this test run: none (SQLite), or a new PostgreSQL database, and Redis."""
    url = os.environ.get("DATABASE_URL", "")
    if not url:
        yield {}
        return
    name = f"daybook_e2e_{secrets.token_hex(6)}"
    parts = urlsplit(url)
    maintenance = urlunsplit(parts._replace(path="/postgres"))
    with psycopg.connect(maintenance, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        redis_url = _redis_database()
        try:
            yield {
                "DATABASE_URL": urlunsplit(parts._replace(path=f"/{name}")),
                "DAYBOOK_SECRET_KEY": secrets.token_urlsafe(32),
                "REDIS_URL": redis_url,
            }
        finally:
            if redis_url:
                with redis.Redis.from_url(redis_url) as client:
                    client.delete("django_q:daybook:q")
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def _redis_database() -> str:
    """A Redis database of this test process, so that no other worker takes its jobs; "" without Redis."""
    url = os.environ.get("REDIS_URL", "")
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    return url and urlunsplit(urlsplit(url)._replace(path=f"/{8 + worker % 6}"))


@pytest.fixture
def start_daybook(home: Path, storage: dict[str, str]) -> Iterator[StartDaybook]:
    """Start a Daybook on this test's home and storage: `start_daybook(env=None, *arguments, home=…)`."""
    with ExitStack() as started:

        def start(env: Mapping[str, str] | None = None, *arguments: str, home: Path = home) -> RunningDaybook:
            return started.enter_context(running_daybook(home, storage | dict(env or {}), *arguments))

        yield start
