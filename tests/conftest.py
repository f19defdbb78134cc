"""Alice owns the data, Bob is staff and may review it, Charlie may see nothing."""

import functools
import gc
import inspect
import math
import os
import shutil
import socket
import ssl
from collections.abc import AsyncGenerator, Generator
from copy import copy
from typing import Any
from urllib.parse import urlsplit

import httpcore2
import hypothesis
import pytest
import pytest_asyncio
from django.conf import settings
from django.db import connection
from django.test import AsyncClient, Client, TransactionTestCase
from pytest_django.plugin import DjangoDbBlocker
from pytest_rerunfailures import ClientStatusDB, StatusDB

from config.serving.assets import prepare_assets
from gateway import authentication, upstream
from gateway.accounts import logins, openid
from gateway.models import Agent, Session
from gateway.upstream import reasoning, wire
from gateway.upstream.cache import upstream_cache
from gateway.upstream.client import UpstreamClient
from memories import clocks, counters
from memories.audit.triggers import triggers_drop
from memories.models import Book, Owner
from memories.recall.snapshot import snapshots
from memories.recall.threads import thread_cache
from memories.services import book_get_or_create
from tests.admin_rows import staff_client
from tests.empty_tables import empty_tables
from tests.factories import agent_make, key_make, owner_make, session_make
from tests.migrated import database_from, migrated_database, migrated_file
from tests.one_writer import WriteWatch
from tests.pages import client_of
from tests.scripted_model import ScriptedModel
from tests.shutdown import stop_all_turns
from tests.sweeps import forget_sweep_state

# How fast examples are generated depends on the machine only.
hypothesis.settings.register_profile(
    "suite", max_examples=50, deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow], print_blob=True
)
hypothesis.settings.load_profile("suite")

# Files that take more than ten seconds. xdist gives each file to one process (`loadfile`).
_SLOW_FILES = {
    "test_admin_roles.py",
    "test_conversations.py",
    "test_documented_answers.py",
    "test_matrix.py",
    "test_service_machine.py",
}

gc.disable()  # the objects created while collecting tests are all kept


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Fail if REQUIRE_SERVICES is set without a server, rather than run on SQLite."""
    _count_reruns_locally(config)
    if os.environ.get("REQUIRE_SERVICES") and settings.DATABASES["default"]["ENGINE"].endswith("sqlite3"):
        raise pytest.UsageError("REQUIRE_SERVICES is set, but DATABASE_URL is not.")
    prepare_assets()


def _count_reruns_locally(config: pytest.Config) -> None:
    """Keep the counters of pytest-rerunfailures in this process.

    By default a worker asks the main process over a socket, once per test, which takes as long as a small test. That
    only matters if another worker takes over a crashed test, which `loadfile` rules out."""
    remote = getattr(config, "failures_db", None)
    if isinstance(remote, ClientStatusDB):
        remote.sock.close()
        config.failures_db = StatusDB()  # type: ignore[attr-defined]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run slow tests first, so that no process is left with one at the end.

    With REQUIRE_SERVICES run only tests that reach the servers, and only the first and the last case of a parametrized
    one (docs/decisions/0058). In continuous integration a test may be retried once; the report names those that
    were."""
    items.sort(key=lambda item: 0 if _starts_real_servers(item) else 1 if item.path.name in _SLOW_FILES else 2)
    if os.environ.get("REQUIRE_SERVICES"):
        selected = _first_and_last_cases([item for item in items if _reaches_servers(item)])
        kept = set(selected)
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = selected
    if os.environ.get("CI"):
        for item in items:
            item.add_marker(pytest.mark.flaky(reruns=1))


def _starts_real_servers(item: pytest.Item) -> bool:
    return item.path.parent.name in {"e2e", "browser"}


def _reaches_servers(item: pytest.Item) -> bool:
    """Return True if a test uses a database, or starts processes that do."""
    fixtures = set(getattr(item, "fixturenames", ()))
    return _starts_real_servers(item) or bool(
        fixtures & {"db", "transactional_db"} or item.get_closest_marker("django_db")
    )


def _first_and_last_cases(items: list[pytest.Item]) -> list[pytest.Item]:
    """Return the first and the last case of each test, or every case of one with real transactions, real processes or
    the marker `every_case`."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    ends = {id(item) for found in cases.values() for item in (found[0], found[-1])}
    return [item for item in items if id(item) in ends or _every_case(item)]


def _every_case(item: pytest.Item) -> bool:
    database = item.get_closest_marker("django_db")
    transactions = "transactional_db" in getattr(item, "fixturenames", ()) or (
        database is not None and bool(database.kwargs.get("transaction"))
    )
    return transactions or _starts_real_servers(item) or item.get_closest_marker("every_case") is not None


def pytest_collection_finish() -> None:
    """Make the garbage collector skip imported and collected objects and run less often: it took a fifth of the
    time."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


@pytest.fixture(scope="session")
def monkeypatch_session() -> Generator[pytest.MonkeyPatch]:
    """A MonkeyPatch for the whole run."""
    with pytest.MonkeyPatch.context() as patch:
        yield patch


@pytest.fixture(scope="session", autouse=True)
def page_context_only(monkeypatch_session: pytest.MonkeyPatch) -> None:
    """Keep the context of a page only, in `response.context`. Django's test client also copies those of all templates
    and widgets in it, some hundred on a page of the admin."""

    def store(stored: dict[str, Any], signal: object, sender: object, context: Any, **_: Any) -> None:
        if "context" not in stored:
            stored["context"] = [copy(context)]

    monkeypatch_session.setattr("django.test.client.store_rendered_templates", store)


@pytest.fixture(scope="session", autouse=True)
def certificates_read_once(monkeypatch_session: pytest.MonkeyPatch) -> None:
    """Share one TLS context between all HTTP clients with the same authorities: reading those takes longer than most
    tests, and each test with a model server makes a client."""
    read = httpcore2.default_ssl_context

    @functools.cache
    def context(*authorities: str | None) -> ssl.SSLContext:
        return read()

    monkeypatch_session.setattr(
        httpcore2,
        "default_ssl_context",
        lambda **_: context(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")),
    )


@pytest.fixture(scope="session")
def django_db_keepdb(django_db_modify_db_settings: None) -> Generator[bool]:
    """Copy a migrated database, so that Django finds nothing to migrate."""
    database = settings.DATABASES["default"]
    if database["ENGINE"].endswith("sqlite3"):
        shutil.copyfile(migrated_file(), database["TEST"]["NAME"])
        yield True
        return
    test = database.setdefault("TEST", {})
    name = test["NAME"] = test.get("NAME") or f"test_{database['NAME']}"  # xdist sets a name
    url = os.environ["DATABASE_URL"]
    with database_from(url, name, migrated_database(url)):
        yield True


@pytest.fixture(scope="session")
def django_db_setup(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker, monkeypatch_session: pytest.MonkeyPatch
) -> None:
    """Drop the audit log's triggers, since tests with real transactions empty every table, including that one.

    tests/memories/test_audit.py creates the triggers again for itself."""
    with django_db_blocker.unblock(), connection.schema_editor() as editor:
        triggers_drop(editor)
    monkeypatch_session.setattr(TransactionTestCase, "_fixture_teardown", lambda case: empty_tables())


@pytest.fixture(autouse=True)
def fresh_process() -> Generator[None]:
    """Clear between tests what a process keeps between requests, and restore the model that it asks."""
    model = upstream.model()
    yield
    upstream.install(model)
    upstream_cache.forget()
    reasoning._unopened.clear()
    snapshots.clear()
    authentication.forget_keys()
    thread_cache.clear()
    counters.unstored_take()
    forget_sweep_state()
    clocks._set_forward_at = -math.inf
    logins._recent.clear()
    openid._clients.clear()


@pytest.fixture(scope="session", autouse=True)
def loopback_only(monkeypatch_session: pytest.MonkeyPatch) -> None:
    """Refuse model calls to other machines."""
    make = wire._make_client

    def checked(upstream_name: str) -> UpstreamClient:
        url = settings.DAYBOOK_UPSTREAMS.get(upstream_name, {}).get("url", "")
        if url and not (urlsplit(url).hostname or "").startswith(("localhost", "127.", "::1")):
            raise RuntimeError("A test called a model server that is not on this machine.")
        return make(upstream_name)

    monkeypatch_session.setattr(wire, "_make_client", checked)


@pytest.fixture(autouse=True)
def one_writer() -> Generator[None]:
    """Fail if anything but memories/services/ writes memories, revisions or books."""
    watch = WriteWatch()
    with connection.execute_wrapper(watch):
        yield
    assert watch.violations == []


@pytest_asyncio.fixture
async def turns_ended() -> AsyncGenerator[None]:
    """End native turns with the test."""
    yield
    await stop_all_turns()


@pytest.fixture(autouse=True)
def no_turn_left_running(request: pytest.FixtureRequest) -> None:
    """End native turns, which outlive their request, with their test. A test without an event loop has none, and
    creating a loop takes as long as a small test."""
    if _has_loop(request.node):
        request.getfixturevalue("turns_ended")


def _has_loop(item: pytest.Function) -> bool:
    """Return True if the test or one of its fixtures is a coroutine."""
    fixtures = [found[-1].func for found in item._fixtureinfo.name2fixturedefs.values()]
    return any(map(inspect.iscoroutinefunction, [item.function, *fixtures])) or any(
        map(inspect.isasyncgenfunction, fixtures)
    )


@pytest.fixture
def whole_deletions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let deletions from the account page end within their request: the first one of a process prepares its statements
    for seconds, and would be left to the sweep on a busy machine."""
    monkeypatch.setattr("gateway.chat.account.DELETE_SECONDS", math.inf)


@pytest.fixture
def alice(db: None) -> Owner:
    return owner_make("alice")


@pytest.fixture
def bob(db: None) -> Owner:
    return owner_make("bob", is_staff=True, is_superuser=True)


@pytest.fixture
def charlie(db: None) -> Owner:
    return owner_make("charlie")


@pytest.fixture
def agent(db: None) -> Agent:
    return agent_make()


@pytest.fixture
def session(alice: Owner, agent: Agent) -> Session:
    return session_make(alice, agent)


@pytest.fixture
def book(alice: Owner) -> Book:
    return book_get_or_create(alice.pk, "main")


@pytest.fixture
def page(alice: Owner) -> Client:
    """A client of Alice, for the pages of the product."""
    return client_of(alice)


@pytest.fixture
def root(db: None) -> Client:
    """A client of a superuser."""
    return staff_client(superuser=True)


@pytest.fixture
def model() -> Generator[ScriptedModel]:
    """The model's double. An unexpected call or an unused step fails the test."""
    scripted = ScriptedModel()
    upstream.install(scripted)
    yield scripted
    scripted.assert_complete()


class Api:
    """An owner's API client: JSON in, (status, JSON) out."""

    def __init__(self, plain: str) -> None:
        self.headers = {"authorization": f"Bearer {plain}"}
        self.client = AsyncClient()

    async def call(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        response = await self.raw(method, path, body, **headers)
        return response.status_code, (response.json() if response.content else None)

    async def raw(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        given = {"headers": {**self.headers, **{name.replace("_", "-"): value for name, value in headers.items()}}}
        if body is not None:
            given |= {"data": body, "content_type": "application/json"}
        return await getattr(self.client, method.lower())(path, **given)

    async def get(self, path: str) -> tuple[int, Any]:
        return await self.call("GET", path)

    async def post(self, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        return await self.call("POST", path, {} if body is None else body, **headers)

    async def stream(self, path: str, body: Any, **headers: str) -> tuple[int, str]:
        response = await self.raw("POST", path, body, **headers)
        if not response.streaming:
            return response.status_code, response.content.decode()
        pieces = [piece async for piece in response.streaming_content]
        return response.status_code, b"".join(pieces).decode()


@pytest.fixture
def alice_api(alice: Owner) -> Api:
    return Api(key_make(alice)[1])


@pytest.fixture
def charlie_api(charlie: Owner) -> Api:
    return Api(key_make(charlie)[1])


def free_port() -> int:
    """Return a port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
