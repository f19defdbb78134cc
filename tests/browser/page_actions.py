"""Actions on pages that several browser tests share."""

from playwright.sync_api import Locator, Page, Route, expect

from memories.models import Memory
from tests.browser.conftest import Visitor, owner_of
from tests.browser.conversations import conversation_make


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


def open_conversation(visitor: Visitor, *turns: tuple[str, str], title: str = "Tea") -> Page:
    """Create a session of Alice's with these turns, and open it."""
    return visitor.open(f"/c/{conversation_make(owner_of('alice'), *turns, title=title).pk}/")


def sign_in_with(page: Page, name: str, password: str) -> None:
    """Fill in the sign-in page and submit it."""
    page.get_by_label("User name").fill(name)
    page.get_by_label("Password", exact=True).fill(password)
    page.get_by_role("button", name="Sign in").click()


def open_import(page: Page) -> Locator:
    """Open the import dialog of the memories page."""
    page.get_by_role("button", name="Export, import, delete everything").click()
    page.get_by_role("button", name="Import…").click()
    return page.get_by_role("dialog", name="Import memories")


def hold_back(page: Page, pattern: str) -> list[Route]:
    """Hold back requests to matching addresses; return the list to which they are added."""
    held_back: list[Route] = []
    page.route(pattern, lambda route: held_back.append(route))
    return held_back


def contents() -> list[str]:
    """Return the texts of the live memories, by number."""
    return list(Memory.objects.filter(deleted_at=None).order_by("number").values_list("content", flat=True))
