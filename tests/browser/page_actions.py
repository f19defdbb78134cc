"""Actions on pages that several browser tests share."""

from playwright.sync_api import Page, expect

from tests.browser.conftest import Visitor


def open_memories(visitor: Visitor, path: str = "/memories/") -> Page:
    """Open the memories page."""
    page = visitor.open(path)
    expect(page.get_by_role("heading", name="Memories")).to_be_visible()
    return page


def send(page: Page, text: str) -> None:
    """Write a message and press Enter."""
    expect(page.get_by_role("button", name="Send message")).to_be_enabled()  # the page's script has run
    page.get_by_label("Message to assistant").fill(text)
    page.keyboard.press("Enter")


def expect_status(page: Page, words: str) -> None:
    """Wait until the live region for screen readers has this text."""
    expect(page.locator("#status")).to_have_text(words, timeout=15_000)


def ask(page: Page, text: str) -> None:
    """Send a message and wait for the complete answer."""
    send(page, text)
    expect_status(page, "Answer complete")
    expect(page.locator(".turn").last).to_have_attribute("data-state", "completed")
