"""Shortcuts and the way through the pages with the keyboard."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.asking import ask
from tests.browser.conftest import NewVisitor, in_a_worker, owner_of
from tests.browser.told_model import ToldModel
from tests.factories import memory_make

pytestmark = pytest.mark.browser

PHONE = {"width": 390, "height": 844}
FOCUSED = "() => document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent.trim()"


@pytest.mark.parametrize("key", ["Control", "Meta"])
def test_the_shortcuts_go_where_the_list_says(chat: Page, key: str) -> None:
    in_a_worker(lambda: memory_make(owner_of("alice"), "Likes tea."))
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


def test_a_letter_alone_is_no_shortcut(chat: Page) -> None:
    chat.locator("#log").focus()
    for key in ("k", "o", "m", "/", "Shift+O", "Shift+M", "Alt+k"):
        chat.keyboard.press(key)
    expect(chat.locator("#log")).to_be_focused()
    expect(chat.get_by_role("dialog")).to_have_count(0)
    expect(chat).to_have_url(chat.url)


def test_on_a_phone_the_search_shortcut_opens_the_drawer_it_is_in(visitor: NewVisitor) -> None:
    page = visitor("alice", viewport=PHONE).open("/")
    expect(page.get_by_role("button", name="Send message")).to_be_enabled()
    page.keyboard.press("Control+k")
    expect(page.get_by_label("Search sessions")).to_be_focused()


def test_keys_are_named_as_on_the_keyboard_at_hand(visitor: NewVisitor) -> None:
    alices = visitor("alice", alone=True)
    alices.context.add_init_script("Object.defineProperty(navigator, 'userAgentData', {value: {platform: 'macOS'}})")
    page = alices.open("/memories/")
    expect(page.locator(".searchfield kbd")).to_have_text("⌘ K")
    page.keyboard.press("Meta+/")
    expect(page.locator("#help")).not_to_contain_text("Ctrl")


def test_up_edits_the_last_message_only_where_nothing_is_written(chat: Page, told: ToldModel) -> None:
    told.answer("Fine.")
    ask(chat, "first")
    box = chat.get_by_label("Message to assistant")
    box.fill("half a thou")
    box.press("ArrowUp")
    expect(chat.get_by_role("textbox", name="Edit your message")).to_have_count(0)
    box.fill("")
    box.press("ArrowUp")
    expect(chat.get_by_role("textbox", name="Edit your message")).to_be_focused()


def test_the_way_with_tab_is_skip_link_bar_sessions_conversation_composer(chat: Page) -> None:
    ask(chat, "hello")
    chat.reload()
    expect(chat.get_by_role("button", name="Send message")).to_be_enabled()
    chat.locator("a").first.focus()
    passed = [chat.evaluate(FOCUSED)]
    for _ in range(40):
        chat.keyboard.press("Tab")
        passed.append(chat.evaluate(FOCUSED))
        if passed[-1] == "Message to assistant":
            break
    named = ["Skip to content", "Chat", "New session", "Search sessions", "hello", "Conversation", "Copy answer"]
    named.append("Message to assistant")
    places = [next(at for at, words in enumerate(passed) if words.endswith(name)) for name in named]
    assert places == sorted(places), passed


def test_the_skip_link_leads_past_the_bar(chat: Page) -> None:
    skip = chat.get_by_role("link", name="Skip to content")
    expect(skip).not_to_be_in_viewport()
    skip.focus()
    expect(skip).to_be_in_viewport()
    chat.keyboard.press("Enter")
    chat.keyboard.press("Tab")
    assert chat.evaluate("() => document.getElementById('main').contains(document.activeElement)")
