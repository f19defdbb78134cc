"""How much a page makes a browser load, whether it can be installed, and its theme."""

import pytest
from playwright.sync_api import Page, expect

from memories.services import book_get_or_create
from tests.admin_pages import list_of, page_of, rows_make
from tests.browser.conftest import NewVisitor, owner_of
from tests.browser.conversations import long_conversation
from tests.browser.page_weight import Weight, record_weight
from tests.browser.test_memories_bulk import fill
from tests.browser.test_reviews_page import saved_review
from tests.factories import owner_make

pytestmark = pytest.mark.browser

MAX_REQUESTS = 12
MAX_BYTES = 100_000  # compressed, without fonts


def load(page: Page, address: str) -> Weight:
    """Open a page and return its weight, including what it requests after loading."""
    weight = record_weight(page)
    page.goto(address)
    page.wait_for_load_state("networkidle")
    return weight


def addresses() -> list[str]:
    """Create the rows of a long-time user; return the addresses of their pages."""
    alice = owner_of("alice")
    session = long_conversation(alice, 30)
    fill(alice, 60)
    for number in range(20):
        saved_review(
            book_get_or_create(alice.pk, "main"), f"Talk {number}", f"Keeps {number} dumps.", f"Has {number} cats."
        )
    return [f"/c/{session.pk}/", "/new/", "/memories/", "/reviews/", "/account/", "/nowhere/"]


def test_a_page_needs_at_most_twelve_requests_and_100_kilobytes(visitor: NewVisitor) -> None:
    paths = addresses()
    for path in ("/login/", *paths):
        new = visitor("" if path == "/login/" else "alice", alone=True)  # with an empty cache
        if path == "/nowhere/":
            new.expect_error("404")
        cold = load(new.context.new_page(), new.address + path)
        assert len(cold.requests) <= MAX_REQUESTS, (path, cold.requests)
        assert cold.bytes_without("Font") <= MAX_BYTES, (path, cold.requests)
        warm = load(new.context.new_page(), new.address + path)
        assert [kind for kind, _, _ in warm.requests if kind in {"Script", "Stylesheet", "Font"}] == [], path


def test_admin_pages_load_their_files_once(visitor: NewVisitor) -> None:
    rows = rows_make()
    owner_make("root", is_staff=True, is_superuser=True)
    root = visitor("root", alone=True)
    (session,) = (page_of(name, row) for name, row in rows.items() if name == "gateway.session")
    cold = load(root.context.new_page(), root.address + "/admin/")
    assert cold.bytes_without("Font") <= MAX_BYTES, cold.requests
    for path in ("/admin/", list_of("memories.memory"), session):
        load(root.context.new_page(), root.address + path)
        warm = load(root.context.new_page(), root.address + path)
        assert len(warm.requests) <= MAX_REQUESTS, (path, warm.requests)
        assert warm.bytes_without("Font") <= MAX_BYTES, (path, warm.requests)


def test_browsers_can_install_the_app(visitor: NewVisitor) -> None:
    page = visitor("alice").open("/")
    session = page.context.new_cdp_session(page)
    manifest = session.send("Page.getAppManifest")
    assert manifest["errors"] == []
    assert manifest["url"].endswith("/manifest.webmanifest")
    # Playwright's windows are private, and those cannot install apps: no other error is allowed.
    errors = {error["errorId"] for error in session.send("Page.getInstallabilityErrors")["installabilityErrors"]}
    assert errors <= {"in-incognito"}


def test_the_chosen_theme_is_applied_before_the_first_paint_and_to_the_browsers_bars(visitor: NewVisitor) -> None:
    page = visitor("alice", color_scheme="light").open("/")
    colours = "() => [...document.querySelectorAll('meta[name=theme-color]')].map((bar) => bar.content)"
    light, dark = page.evaluate(colours)
    switch = page.get_by_role("button", name="Switch between light and dark")
    switch.click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert page.evaluate(colours) == [dark, dark]
    page.reload(wait_until="commit")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.wait_for_load_state()
    assert page.evaluate(colours) == [dark, dark]
    switch.click()
    assert page.evaluate(colours) == [light, light]
