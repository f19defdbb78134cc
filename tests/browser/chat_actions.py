"""Actions on the chat page that several browser tests share."""

from playwright.sync_api import Page, expect


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
