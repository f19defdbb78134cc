"""What several browser tests do on the chat page."""

from playwright.sync_api import Page, expect


def send(page: Page, text: str) -> None:
    """Write a message and press Enter."""
    expect(page.get_by_role("button", name="Send message")).to_be_enabled()  # the script is there
    page.get_by_label("Message to assistant").fill(text)
    page.keyboard.press("Enter")


def status_is(page: Page, words: str) -> None:
    """Wait until the page has told screen readers so."""
    expect(page.locator("#status")).to_have_text(words, timeout=15_000)


def ask(page: Page, text: str) -> None:
    """Send a message and wait for its whole answer."""
    send(page, text)
    status_is(page, "Answer complete")
    expect(page.locator(".turn").last).to_have_attribute("data-state", "completed")
