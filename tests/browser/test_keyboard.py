"""Keyboard shortcuts and keyboard navigation."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import NewVisitor, Visitor, owner_of, run_in_thread
from tests.browser.conversations import conversation_make
from tests.factories import memory_make

pytestmark = pytest.mark.browser

PHONE = {"width": 390, "height": 844}
FOCUSED = "() => document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent.trim()"


def test_shortcuts_work_as_listed_and_a_letter_alone_does_nothing(chat: Page) -> None:
    run_in_thread(lambda: memory_make(owner_of("alice"), "Likes tea."))
    chat.locator("#log").focus()
    for key in ("k", "o", "m", "/", "Shift+O", "Shift+M", "Alt+k"):
        chat.keyboard.press(key)
    expect(chat.locator("#log")).to_be_focused()
    expect(chat.get_by_role("dialog")).to_have_count(0)
    assert chat.url.endswith("/")
    for key in ("Control", "Meta"):
        chat.keyboard.press(f"{key}+/")
        shortcuts = chat.get_by_role("dialog", name="Commands and shortcuts")
        expect(shortcuts).to_contain_text("New session")
        chat.keyboard.press("Escape")
        expect(shortcuts).to_be_hidden()
        chat.keyboard.press(f"{key}+k")
        expect(chat.get_by_label("Search sessions")).to_be_focused()
        chat.keyboard.press(f"{key}+Shift+M")
        chat.wait_for_url("**/memories/")
        chat.get_by_role("heading", name="Memories").click()
        chat.keyboard.press(f"{key}+k")
        expect(chat.get_by_label("Search memories")).to_be_focused()
        chat.keyboard.press(f"{key}+Shift+O")
        chat.wait_for_url("**/new/")
        expect(chat.get_by_role("button", name="Send message")).to_be_enabled()


def test_on_a_phone_the_search_shortcut_opens_the_drawer(visitor: NewVisitor) -> None:
    page = visitor("alice", viewport=PHONE).open("/")
    expect(page.get_by_role("button", name="Send message")).to_be_enabled()
    page.keyboard.press("Control+k")
    expect(page.get_by_label("Search sessions")).to_be_focused()


def test_keys_are_named_as_on_the_users_keyboard(visitor: NewVisitor) -> None:
    alices = visitor("alice", alone=True)
    alices.context.add_init_script("Object.defineProperty(navigator, 'userAgentData', {value: {platform: 'macOS'}})")
    page = alices.open("/memories/")
    expect(page.locator(".searchfield kbd")).to_have_text("⌘ K")
    page.keyboard.press("Meta+/")
    expect(page.locator("#help")).not_to_contain_text("Ctrl")


def test_the_tab_order_is_skip_link_bar_sessions_conversation_composer(alices: Visitor) -> None:
    session = conversation_make(owner_of("alice"), ("hello", "Hello."), title="hello")
    chat = alices.open(f"/c/{session.pk}/")
    expect(chat.get_by_role("button", name="Send message")).to_be_enabled()
    skip = chat.locator("a").first
    expect(skip).not_to_be_in_viewport()
    skip.focus()
    expect(skip).to_be_in_viewport()
    visited = [chat.evaluate(FOCUSED)]
    for _ in range(40):
        chat.keyboard.press("Tab")
        visited.append(chat.evaluate(FOCUSED))
        if visited[-1] == "Message to assistant":
            break
    named = ["Skip to content", "Chat", "New session", "Search sessions", "hello", "Conversation", "Copy answer"]
    named.append("Message to assistant")
    positions = [next(at for at, words in enumerate(visited) if words.endswith(name)) for name in named]
    assert positions == sorted(positions), visited
    skip.focus()
    chat.keyboard.press("Enter")
    chat.keyboard.press("Tab")
    assert chat.evaluate("() => document.getElementById('main').contains(document.activeElement)")
