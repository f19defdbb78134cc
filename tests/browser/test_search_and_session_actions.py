"""Search with highlighted words, earlier turns, session actions, export, and help."""

import pytest
from playwright.sync_api import Page, expect

from gateway.models import Session
from tests.browser.axe import findings_light_and_dark
from tests.browser.conftest import NewVisitor, Visitor, owner_of
from tests.browser.conversations import conversation_make, long_conversation
from tests.browser.page_actions import ask, hold_back, send
from tests.browser.puppet_model import PuppetModel

pytestmark = pytest.mark.browser
PHONE = {"viewport": {"width": 390, "height": 844}}


def test_an_old_turn_is_found_and_opened_with_its_words_highlighted(alices: Visitor) -> None:
    session = long_conversation(owner_of("alice"), 45)
    long_conversation(owner_of("alice"), 1, title="Another", needle=9)
    page = alices.open("/")
    held_back = hold_back(page, "**/fragments/sessions/?q=&**")
    with page.expect_request("**/fragments/sessions/?q=&**"):  # another tab has changed the list
        page.evaluate("new BroadcastChannel('daybook').postMessage({ kind: 'sessions' })")
    page.keyboard.press("Control+k")
    page.keyboard.type("quince tr")
    found = page.locator(".session--found")
    expect(found).to_have_count(1)
    with page.expect_response("**/fragments/sessions/?q=&**"):
        held_back[0].continue_()
    page.wait_for_timeout(200)
    expect(found).to_have_count(1)
    expect(found.locator("mark")).to_have_text(["quince", "tree"])
    expect(found).to_contain_text("assistant, Yesterday")
    expect(page.locator("#status")).to_have_text("1 session found")
    page.keyboard.press("ArrowDown")
    expect(found.get_by_role("link", name="Long talk")).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/c/{session.pk}/?at=8&q=quince%20tr")
    mark = page.locator("mark.found").first
    expect(mark).to_have_text("quince")
    expect(mark).to_be_in_viewport()
    expect(page.locator(".entry--found")).to_be_focused()
    expect(page.locator(".entry--found")).to_contain_text("The quince tree")
    expect(page.locator("mark.found")).to_have_count(2)
    expect(page.get_by_role("button", name="Show 1 earlier turn")).to_be_attached()


def test_words_with_diacritics_are_highlighted_and_arrow_keys_move_between_search_and_hits(alices: Visitor) -> None:
    long_conversation(owner_of("alice"), 2, needle=1)
    page = alices.open("/")
    page.get_by_label("Search sessions").fill("zoë")
    hit = page.locator(".hit")
    expect(hit.locator("mark")).to_have_text("Zoë")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    expect(page.get_by_label("Search sessions")).to_be_focused()
    hit.click()
    expect(page.locator("mark.found")).to_have_text("Zoë")


def test_earlier_turns_are_loaded_without_moving_the_reader(alices: Visitor) -> None:
    session = long_conversation(owner_of("alice"), 45)
    page = alices.open(f"/c/{session.pk}/")
    button = page.get_by_role("button", name="Show 20 of 25 earlier turns")
    button.scroll_into_view_if_needed()
    first = page.locator(".turn .entry").first
    top = first.bounding_box()
    button.click()
    expect(page.locator(".turn")).to_have_count(40)
    expect(page.locator("#status")).to_have_text("20 earlier turns loaded")
    assert top is not None
    after = page.locator(".turn").nth(20).locator(".entry").first.bounding_box()
    assert after is not None
    assert abs(after["y"] - top["y"]) < 3
    expect(page.locator(".turn").first.get_by_role("button", name="Copy", exact=True)).to_be_attached()
    expect(page.locator(".dayline h2")).to_have_count(1)
    rest = page.get_by_role("button", name="Show 5 earlier turns")
    expect(rest).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator(".turn")).to_have_count(45)
    expect(page.locator("[data-earlier]")).to_have_count(0)


def choose_from_menu(page: Page, title: str, item: str) -> None:
    row = page.locator(".session", has_text=title)
    row.hover()
    row.get_by_role("button", name=f"More for {title}").click()
    page.get_by_role("menuitem", name=item, exact=True).click()


def test_sessions_can_be_exported_pinned_archived_and_restored(alices: Visitor) -> None:
    for title in ("Bread", "Trains"):
        long_conversation(owner_of("alice"), 1, title=title)
    page = alices.open("/new/")
    with page.expect_download() as download:
        choose_from_menu(page, "Bread", "Export as Markdown")
    assert download.value.suggested_filename == "bread.md"
    assert "## You" in download.value.path().read_text()
    with page.expect_download() as download:
        choose_from_menu(page, "Bread", "Export as JSON")
    assert download.value.suggested_filename == "bread.json"
    choose_from_menu(page, "Bread", "Pin")
    headings = page.locator("#session-list h2")
    expect(headings).to_have_text(["Pinned", "Today"])
    expect(page.locator(".session").first.get_by_role("link")).to_be_focused()
    choose_from_menu(page, "Bread", "Unpin")
    expect(headings).to_have_text(["Today"])
    choose_from_menu(page, "Trains", "Archive")
    expect(page.locator(".session")).to_have_count(1)
    page.get_by_role("button", name="Show archived").click()
    expect(page.locator(".session")).to_have_count(1)
    expect(page.locator(".session").get_by_role("link", name="Trains")).to_be_focused()
    page.get_by_role("button", name="Back to sessions").click()
    expect(page.locator(".session").get_by_role("link", name="Bread")).to_be_visible()
    page.get_by_role("button", name="Undo").last.click()
    expect(page.locator(".session")).to_have_count(2)


def test_on_a_phone_a_deletion_can_be_undone(visitor: NewVisitor) -> None:
    alice = visitor("alice", **PHONE)
    long_conversation(owner_of("alice"), 1, title="Bread")
    page = alice.open("/new/")
    page.get_by_role("button", name="Open sessions").click()
    choose_from_menu(page, "Bread", "Delete")
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("Restored “Bread”.")).to_be_visible()
    expect(page.locator(".toast__acts")).to_be_hidden()
    assert Session.objects.count() == 1


def test_the_open_session_can_be_deleted_and_restored(alices: Visitor) -> None:
    session = conversation_make(owner_of("alice"), ("Why is the oven cold?", "Fine."), title="Why is the oven cold?")
    chat = alices.open(f"/c/{session.pk}/")
    address = chat.url
    choose_from_menu(chat, "Why is the oven cold?", "Delete")
    expect(chat.get_by_text("Deleted “Why is the oven cold?”.")).to_be_visible()
    expect(chat.locator(".session")).to_have_count(0)
    chat.get_by_role("button", name="Undo").click()
    chat.wait_for_url(address)
    expect(chat.get_by_text("Fine.")).to_be_visible()


def test_help_is_a_dialog_without_a_model_call(chat: Page, puppet: PuppetModel) -> None:
    dialog = chat.get_by_role("dialog", name="Commands and shortcuts")
    send(chat, "/help")
    expect(dialog).to_contain_text("/memory view")
    expect(chat.locator(".turn")).to_have_count(0)
    chat.keyboard.press("Escape")
    expect(chat.get_by_label("Message to assistant")).to_have_value("")
    chat.get_by_label("Message to assistant").press("?")
    expect(dialog).to_be_hidden()
    chat.locator("#log").focus()
    chat.keyboard.press("?")
    expect(dialog).to_be_visible()
    dialog.get_by_role("checkbox").uncheck()
    chat.keyboard.press("Escape")
    chat.locator("#log").focus()
    chat.keyboard.press("?")
    expect(dialog).to_be_hidden()
    chat.get_by_label("Message to assistant").fill("")
    ask(chat, "/memory bogus")
    expect(chat.get_by_text("There is no such command.")).to_be_visible()


@pytest.mark.parametrize("options", [{}, PHONE], ids=["wide", "phone"])
def test_axe_finds_nothing_serious_in_the_search(visitor: NewVisitor, options: dict[str, object]) -> None:
    alice = visitor("alice", **options)
    session = long_conversation(owner_of("alice"), 45)
    page = alice.open("/new/")
    found = {}
    page.keyboard.press("Control+k")
    page.keyboard.type("quince")
    expect(page.locator(".hit")).to_be_visible()
    found["search"] = findings_light_and_dark(page)
    page.get_by_label("Search sessions").fill("")
    expect(page.locator(".hit")).to_have_count(0)
    row = page.locator(".session").first
    row.hover()
    row.get_by_role("button").click()
    expect(page.get_by_role("menuitem", name="Archive")).to_be_visible()
    found["menu"] = findings_light_and_dark(page)
    page.get_by_role("menuitem", name="Archive").click()
    expect(page.get_by_text("Archived. Searches still find it.")).to_be_visible()
    if options == PHONE:
        page.get_by_role("button", name="Open sessions").click()
    page.get_by_role("button", name="Show archived").click()
    expect(page.get_by_role("heading", name="Archived")).to_be_visible()
    found["archived"] = findings_light_and_dark(page)
    page.goto(f"{alice.address}/c/{session.pk}/?at=8&q=quince")
    expect(page.locator("mark.found")).to_be_in_viewport()
    found["place"] = findings_light_and_dark(page)
    page.keyboard.press("Control+/")
    found["help"] = findings_light_and_dark(page)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert {state: findings for state, findings in found.items() if findings} == {}
