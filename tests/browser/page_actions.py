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


def expect_no_attachments(page: Page) -> None:
    """Expect no attachments in the composer once the browser's stored ones have been read."""
    expect(page.get_by_role("button", name="Send message")).to_be_enabled()  # the page's script has run
    drafts_with_attachments(page)
    expect(page.locator("#attached li")).to_have_count(0)


def drafts_with_attachments(page: Page) -> int:
    """Return how many drafts have attachments in the browser's storage, after what the page is doing with it."""
    count: int = page.evaluate(
        """() => new Promise((read, fail) => {
          const opened = indexedDB.open("daybook");
          opened.onerror = fail;
          opened.onsuccess = () => {
            const count = opened.result.transaction("attached").objectStore("attached").count();
            count.onsuccess = () => { opened.result.close(); setTimeout(() => read(count.result)); };
          };
        })"""
    )
    return count


def ask(page: Page, text: str) -> None:
    """Send a message and wait for the complete answer."""
    send(page, text)
    expect_status(page, "Answer complete")
    expect(page.locator(".turn").last).to_have_attribute("data-state", "completed")
