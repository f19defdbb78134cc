"""Fixtures of the browser tests: a live server in a thread, Chromium, signed-in pages, and a model that says what the
test tells it. A page that logs an error, breaks the content security policy or asks another host fails its test."""

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
from memories.models import Owner
from tests.browser.told_model import ToldModel
from tests.factories import owner_make
from tests.live_server import LiveServer, serving

expect.set_options(timeout=15_000)  # a machine that does other things as well
# The headless shell comes first: the same engine without the browser around it takes a third of the time.
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
    # One process for all pages: to start one, and to compile the scripts there, takes longer than most pages.
    "--renderer-process-limit=1",
    "--disable-site-isolation-trials",
    "--in-process-gpu",
]
# Without motion a third less is computed and painted. What is about motion asks for it.
_USUAL: Any = {"viewport": {"width": 1440, "height": 900}, "reduced_motion": "reduce"}
_STORED = "local_storage,indexeddb,cache_storage,service_workers"


@pytest.fixture(autouse=True)
def no_turn_left_running() -> None:
    """Instead of the suite's own: turns live in the server's loop here, and end with it."""


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    """One browser for all files of a test process; not for longer, since Playwright keeps an event loop in this
    thread."""
    if not _CHROMIUM:
        pytest.skip("no Chromium on this machine: install it (apt-get install chromium) to run the browser tests")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=_CHROMIUM, args=_ARGUMENTS)
        yield browser
        browser.close()


class Profile:
    """A context that many tests use one after another: what it has in its cache needs not be fetched and compiled
    again. All else that a test leaves there is gone afterwards; what cannot be undone (scripts of the context, its
    clock), and a network that is cut off, are for a visitor with a context of its own."""

    def __init__(self, browser: Browser) -> None:
        self.context = browser.new_context(**_USUAL)
        self._kept = self.context.new_page()  # so that the process of the pages lives on
        self._session = self.context.new_cdp_session(self._kept)
        self.taken = False

    def give_back(self, address: str) -> None:
        """Make it a newcomer's again, of the server at that address."""
        for page in self.context.pages:
            if page != self._kept:
                page.close()
        self.context.clear_cookies()
        self.context.clear_permissions()
        self._session.send("Storage.clearDataForOrigin", {"origin": address, "storageTypes": _STORED})
        self.taken = False


@pytest.fixture(scope="package")
def profile(chromium: Browser) -> Profile:
    """The context that is shared."""
    return Profile(chromium)


@pytest.fixture(scope="package")
def port() -> Iterator[socket.socket]:
    """The port of every test's server: another one would be another site, with nothing in the cache."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener


@pytest.fixture
def server(
    transactional_db: None, monkeypatch: pytest.MonkeyPatch, settings: Any, port: socket.socket
) -> Iterator[LiveServer]:
    """The application with the packaged agents and the demo model, on the test's database."""
    with serving(monkeypatch, settings, port) as live_server:
        yield live_server


@pytest.fixture
def told(server: LiveServer) -> Iterator[ToldModel]:
    """Instead of the demo model: says what the test tells it, when the test tells it."""
    model = ToldModel(server.loop)
    before = upstream.install(model)
    yield model
    upstream.install(before)


@dataclass  # no slots: Playwright notes its listeners on their object
class Visitor:
    """Somebody's browser: a context with its cookies, whose pages are watched."""

    context: BrowserContext
    address: str
    troubles: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)

    def open(self, path: str = "/") -> Page:
        """A new tab on that path."""
        page = self.context.new_page()
        page.on("console", self._listen)
        page.on("pageerror", lambda error: self.troubles.append(f"page error: {error}"))
        page.on("request", self._see)
        page.goto(self.address + path)
        return page

    def expect_trouble(self, part: str) -> None:
        """The test itself makes the browser log this."""
        self.expected.append(part)

    def _listen(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.troubles.append(f"console: {message.text}")

    def _see(self, request: Request) -> None:
        host = urlsplit(request.url).netloc
        if host and host != urlsplit(self.address).netloc:
            self.troubles.append(f"asked another host: {request.url}")

    def unexpected(self) -> list[str]:
        """What went wrong in its pages, and no test asked for."""
        return [said for said in self.troubles if not any(part in said for part in self.expected)]


NewVisitor = Callable[..., Visitor]


@pytest.fixture
def visitor(chromium: Browser, profile: Profile, server: LiveServer) -> Iterator[NewVisitor]:
    """Make a visitor: `visitor("alice")` is signed in, `visitor()` is a stranger; more options are the context's. The
    first without any has the shared context, if not `alone`."""
    visitors: list[Visitor] = []

    def make(name: str = "", *, alone: bool = False, **options: Any) -> Visitor:
        alone = alone or bool(options) or profile.taken
        context = chromium.new_context(**(_USUAL | options)) if alone else profile.context
        profile.taken = profile.taken or not alone
        if name:
            client = Client()
            user = owner_of(name).user
            assert user is not None
            client.force_login(user)
            cookie = client.cookies["daybook_session"].value
            context.add_cookies([{"name": "daybook_session", "value": cookie, "url": server.address}])
        visitors.append(Visitor(context, server.address))
        return visitors[-1]

    yield make
    for made in visitors:
        if made.context == profile.context:
            profile.give_back(server.address)
        else:
            made.context.close()
    assert [trouble for made in visitors for trouble in made.unexpected()] == []


@pytest.fixture
def alices(visitor: NewVisitor) -> Visitor:
    """Alice's browser, signed in."""
    return visitor("alice")


@pytest.fixture
def chat(alices: Visitor) -> Page:
    """Alice's chat page, at its first start."""
    return alices.open("/")


def in_a_worker(job: Callable[..., Any], *given: Any) -> None:
    """Do something where no loop of Playwright's runs, as another process would, and wait for it."""

    def work() -> Any:
        try:
            return job(*given)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(max_workers=1) as worker:
        worker.submit(work).result(timeout=30)


def owner_of(name: str) -> Owner:
    """The owner of that name, made at first use."""
    return Owner.objects.filter(user__username=name).first() or owner_make(name)
