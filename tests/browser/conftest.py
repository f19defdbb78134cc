"""Fixtures for the browser tests: a live server in a thread, Chromium, signed-in pages, and a model controlled by the
test.

A page that logs an error, violates the Content Security Policy or sends a request to another host fails its test."""

import shutil
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.db import connections
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, expect, sync_playwright

from gateway import upstream
from memories.models import Book, Owner
from memories.services import book_get_or_create
from tests.browser.puppet_model import PuppetModel
from tests.factories import owner_make
from tests.live_server import LiveServer, serving

expect.set_options(timeout=15_000)  # for a busy machine
# The headless shell comes first: the same engine without a browser's interface takes a third of the time.
_BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
_CHROMIUM = next((path for name in _BROWSERS if (path := shutil.which(name))), "")
_ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # One process for all pages: starting one and compiling the scripts in it takes longer than most pages.
    "--renderer-process-limit=1",
    "--disable-site-isolation-trials",
    "--in-process-gpu",
]
# Without motion the browser computes and paints a third less. Tests about motion ask for it.
_DEFAULT_OPTIONS: Any = {
    "viewport": {"width": 1440, "height": 900},
    "reduced_motion": "reduce",
    "timezone_id": "UTC",
}
_STORAGE_TYPES = "local_storage,indexeddb,cache_storage,service_workers"


@pytest.fixture(autouse=True)
def no_turn_left_running() -> None:
    """Override the suite's fixture: here, turns run in the server's loop and end with it."""


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    """One browser for all files of a test process. Its scope is not the session, since Playwright keeps an event loop
    in this thread."""
    if not _CHROMIUM:
        pytest.skip("no Chromium on this machine: install it (apt-get install chromium) to run the browser tests")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=_CHROMIUM, args=_ARGUMENTS)
        yield browser
        browser.close()


class Profile:
    """A browser context that tests share one after another, so that cached files are not fetched and compiled again.

    Everything else that a test leaves behind is removed after it. A test that adds scripts to the context, installs a
    clock, or goes offline needs its own context, since that cannot be undone."""

    def __init__(self, browser: Browser) -> None:
        self.context = browser.new_context(**_DEFAULT_OPTIONS)
        self._blank_page = self.context.new_page()  # keeps the renderer process alive
        self._session = self.context.new_cdp_session(self._blank_page)
        self.taken = False

    def give_back(self, address: str) -> None:
        """Close all pages and clear all cookies, permissions and storage."""
        for page in self.context.pages:
            if page != self._blank_page:
                page.close()
        self.context.clear_cookies()
        self.context.clear_permissions()
        self._session.send("Storage.clearDataForOrigin", {"origin": address, "storageTypes": _STORAGE_TYPES})
        self.taken = False


@pytest.fixture(scope="package")
def profile(chromium: Browser) -> Profile:
    """The shared context."""
    return Profile(chromium)


@pytest.fixture(scope="package")
def port() -> Iterator[socket.socket]:
    """The port of every test's server. With another port nothing would be in the browser's cache."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener


@pytest.fixture
def server(
    transactional_db: None, monkeypatch: pytest.MonkeyPatch, settings: Any, port: socket.socket
) -> Iterator[LiveServer]:
    """The application with the packaged agents and the demo model, on the test database."""
    with serving(monkeypatch, settings, port) as live_server:
        yield live_server


@pytest.fixture
def puppet(server: LiveServer) -> PuppetModel:
    """Replace the demo model by one that the test controls."""
    model = PuppetModel(server.loop)
    upstream.install(model)
    return model


@dataclass  # no slots: Playwright stores its listeners on the object
class Visitor:
    """A person's browser: a context with cookies, whose pages are checked for errors."""

    context: BrowserContext
    address: str
    errors: list[str] = field(default_factory=list)
    expected_errors: list[str] = field(default_factory=list)

    def open(self, path: str = "/") -> Page:
        """Open a path in a new tab."""
        page = self.context.new_page()
        page.on("console", self._check_console)
        page.on("pageerror", lambda error: self.errors.append(f"page error: {error}"))
        page.on("request", self._check_request)
        page.goto(self.address + path)
        return page

    def expect_error(self, part: str) -> None:
        """Ignore errors that contain `part`, since the test causes them itself."""
        self.expected_errors.append(part)

    def _check_console(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.errors.append(f"console: {message.text}")

    def _check_request(self, request: Request) -> None:
        host = urlsplit(request.url).netloc
        if host and host != urlsplit(self.address).netloc:
            self.errors.append(f"request to another host: {request.url}")

    def unexpected_errors(self) -> list[str]:
        """Return the errors that the test does not expect."""
        return [error for error in self.errors if not any(part in error for part in self.expected_errors)]


NewVisitor = Callable[..., Visitor]


def sign_in(visitor: Visitor, name: str) -> None:
    """Sign a person in, in place of whoever was signed in."""
    client = Client()
    user = owner_of(name).user
    assert user is not None
    client.force_login(user)
    cookie = client.cookies["daybook_session"].value
    visitor.context.add_cookies([{"name": "daybook_session", "value": cookie, "url": visitor.address}])


@pytest.fixture
def visitor(chromium: Browser, profile: Profile, server: LiveServer) -> Iterator[NewVisitor]:
    """Create visitors: `visitor("alice")` is signed in, `visitor()` is not; `options` are those of the browser context.

    The first visitor without options uses the shared context, unless `alone` is set."""
    visitors: list[Visitor] = []

    def make(name: str = "", *, alone: bool = False, **options: Any) -> Visitor:
        alone = alone or bool(options) or profile.taken
        context = chromium.new_context(**(_DEFAULT_OPTIONS | options)) if alone else profile.context
        profile.taken = profile.taken or not alone
        visitors.append(Visitor(context, server.address))
        if name:
            sign_in(visitors[-1], name)
        return visitors[-1]

    yield make
    for visitor in visitors:
        if visitor.context == profile.context:
            profile.give_back(server.address)
        else:
            visitor.context.close()
    assert [error for visitor in visitors for error in visitor.unexpected_errors()] == []


@pytest.fixture
def alices(visitor: NewVisitor) -> Visitor:
    """Alice's browser, signed in."""
    return visitor("alice")


@pytest.fixture
def chat(alices: Visitor) -> Page:
    """Alice's chat page before any conversation."""
    return alices.open("/")


@pytest.fixture
def root(visitor: NewVisitor) -> Visitor:
    """An administrator's browser, signed in."""
    owner_make("root", is_staff=True, is_superuser=True)
    return visitor("root")


@pytest.fixture
def paused(visitor: NewVisitor, server: LiveServer) -> Page:
    """Alice's chat page, with a clock that only the test advances."""
    alices = visitor("alice", alone=True)
    alices.context.clock.install(time="2026-01-01T08:00:00Z")
    page = alices.open("/")
    expect(page.get_by_role("button", name="Send message")).to_be_enabled()
    page.clock.pause_at("2026-01-01T08:10:00Z")
    return page


@pytest.fixture
def book(server: LiveServer) -> Book:
    """Alice's main book."""
    return book_get_or_create(owner_of("alice").pk, "main")


def run_in_thread(function: Callable[..., Any], *args: Any) -> None:
    """Call a function in a thread without Playwright's event loop, as another process would, and wait for it."""

    def work() -> Any:
        try:
            return function(*args)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(max_workers=1) as worker:
        worker.submit(work).result(timeout=30)


def owner_of(name: str) -> Owner:
    """Return the owner of that name; create it at first use."""
    return Owner.objects.filter(user__username=name).first() or owner_make(name)
