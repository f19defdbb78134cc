"""Text that is being written stays, whatever else happens on the page."""

import re
from datetime import timedelta
from urllib.parse import urlsplit

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from gateway.models import Message, Session
from memories.models import Memory
from reviews.models import ReviewRun
from reviews.tasks import review_execute
from tests.browser.conftest import NewVisitor, Visitor, run_in_thread, sign_in
from tests.browser.page_actions import ask, expect_status, hold_back, open_conversation, send
from tests.browser.puppet_model import PuppetModel

pytestmark = pytest.mark.browser
BOX = "Message to assistant"
EXAMPLE = "Plan a vegetarian dinner for six, no hazelnuts."


def test_the_draft_of_a_new_session_survives_work_in_another_session(chat: Page, puppet: PuppetModel) -> None:
    puppet.answer("Fine.")
    ask(chat, "first")
    address = chat.url
    chat.get_by_role("link", name="New session").click()
    chat.get_by_label(BOX).press_sequentially("half a thou")
    chat.goto(address)
    expect(chat.get_by_label(BOX)).to_have_value("")
    puppet.answer("Still fine.")
    ask(chat, "second")
    chat.get_by_role("link", name="New session").click()
    expect(chat.get_by_label(BOX)).to_have_value("half a thou")
    puppet.answer("Whole.")
    ask(chat, "half a thought")
    chat.get_by_role("link", name="New session").click()
    expect(chat.get_by_label(BOX)).to_have_value("")


def test_each_tab_has_its_own_draft_of_a_new_session(alices: Visitor, puppet: PuppetModel) -> None:
    one = alices.open("/new/")
    one.get_by_label(BOX).fill("half a thought")
    two = alices.open("/new/")
    expect(two.get_by_role("button", name="Send message")).to_be_enabled()  # the page's script has run
    expect(two.get_by_label(BOX)).to_have_value("")
    two.get_by_label(BOX).fill("something else")
    one.reload()
    expect(one.get_by_label(BOX)).to_have_value("half a thought")
    puppet.answer("Fine.")
    ask(two, "something else")
    one.reload()
    expect(one.get_by_label(BOX)).to_have_value("half a thought")


def test_the_draft_of_a_tab_that_is_closed_is_in_the_next_one(alices: Visitor) -> None:
    one = alices.open("/new/")
    one.get_by_label(BOX).fill("half a thought")
    one.close(run_before_unload=True)
    expect(alices.open("/new/").get_by_label(BOX)).to_have_value("half a thought")
    expect(alices.open("/new/").get_by_label(BOX)).to_have_value("")


def test_the_drafts_of_two_closed_tabs_are_in_the_next_two(alices: Visitor) -> None:
    for text in ("half a thought", "something else"):
        alices.open("/new/").get_by_label(BOX).fill(text)
    for page in alices.context.pages[-2:]:
        page.close(run_before_unload=True)
    expect(alices.open("/new/").get_by_label(BOX)).to_have_value("something else")
    expect(alices.open("/new/").get_by_label(BOX)).to_have_value("half a thought")
    expect(alices.open("/new/").get_by_label(BOX)).to_have_value("")


@pytest.fixture
def refusing(alices: Visitor) -> Page:
    """A conversation in which messages are refused, until `accept_again`."""
    alices.expect_error("status of 409")
    page = open_conversation(alices, ("first", "Fine."))
    be_busy(True)
    return page


def be_busy(is_busy: bool) -> None:
    """Let the session be one of which another version is about to be shown, or no longer."""
    Session.objects.update(branch_until=timezone.now() + timedelta(hours=1) if is_busy else None)


def send_refused(page: Page, text: str) -> None:
    send(page, text)
    expect(page.get_by_role("alert")).to_be_visible()


def accept_again(puppet: PuppetModel) -> None:
    be_busy(False)
    puppet.answer("Fine, too.")


def test_a_refused_message_is_kept_when_another_one_is_sent(refusing: Page, puppet: PuppetModel) -> None:
    send_refused(refusing, "a long thought")
    accept_again(puppet)
    ask(refusing, "something else")
    expect(refusing.get_by_label(BOX)).to_have_value("a long thought")
    refusing.reload()
    expect(refusing.get_by_label(BOX)).to_have_value("a long thought")


def test_a_refused_message_is_kept_when_another_one_is_begun(refusing: Page) -> None:
    send_refused(refusing, "a long thought")
    refusing.keyboard.type("something")
    refusing.reload()
    expect(refusing.get_by_label(BOX)).to_have_value("a long thought\n\nsomething")


def test_a_refused_message_is_kept_when_another_version_is_shown(
    refusing: Page, alices: Visitor, puppet: PuppetModel
) -> None:
    accept_again(puppet)
    refusing.get_by_role("button", name="Answer again").click()
    expect_status(refusing, "Answer complete")
    be_busy(True)
    send_refused(refusing, "a long thought")
    be_busy(False)
    refusing.get_by_role("button", name="Earlier version").click()
    expect(refusing.get_by_text("Fine.", exact=True)).to_be_visible()
    expect(refusing.get_by_label(BOX)).to_have_value("a long thought")


def test_the_first_message_is_kept_when_the_page_is_left_before_its_session_exists(chat: Page) -> None:
    hold_back(chat, "**/api/sessions")
    with chat.expect_request("**/api/sessions"):
        send(chat, "first")
    chat.get_by_role("link", name="Memories").first.click()
    expect(chat.get_by_role("heading", name="Memories")).to_be_visible()
    chat.go_back()
    expect(chat.get_by_label(BOX)).to_have_value("first")
    chat.get_by_role("link", name="New session").click()
    expect(chat.get_by_label(BOX)).to_have_value("first")


def test_of_two_refused_messages_none_is_lost(refusing: Page) -> None:
    send_refused(refusing, "a long thought")
    send_refused(refusing, "something else")
    expect(refusing.get_by_label(BOX)).to_have_value("a long thought")
    refusing.reload()
    expect(refusing.get_by_label(BOX)).to_have_value(re.compile("something else.*a long thought", re.DOTALL))


def test_a_refused_message_stays_beside_turns_of_other_devices(
    refusing: Page, alices: Visitor, visitor: NewVisitor, puppet: PuppetModel
) -> None:
    send_refused(refusing, "a long thought")
    accept_again(puppet)
    path = urlsplit(refusing.url).path
    ask(visitor("alice").open(path), "from the phone")
    send(alices.open(path), "from another tab")
    expect(refusing.get_by_text("from another tab")).to_be_visible()
    puppet.answer("Fine.")
    expect_status(refusing, "Answer complete")
    expect(refusing.get_by_text("a long thought")).to_be_visible()


def test_a_question_that_is_not_answered_again_is_no_draft(refusing: Page, puppet: PuppetModel) -> None:
    def answer_again() -> None:
        refusing.get_by_role("button", name="Answer again").click()
        expect(refusing.get_by_role("alert")).to_be_visible()

    refusing.get_by_label(BOX).fill("half a thought")
    answer_again()
    be_busy(False)
    refusing.reload()
    expect(refusing.get_by_label(BOX)).to_have_value("half a thought")
    refusing.get_by_label(BOX).fill("")
    be_busy(True)
    answer_again()
    accept_again(puppet)
    ask(refusing, "something else")
    expect(refusing.get_by_label(BOX)).to_have_value("")


def test_a_refused_message_that_is_typed_again_is_sent_once(refusing: Page, puppet: PuppetModel) -> None:
    send_refused(refusing, "a long thought")
    accept_again(puppet)
    ask(refusing, "a long thought")
    expect(refusing.get_by_label(BOX)).to_have_value("")


def test_a_refused_file_is_kept_when_its_text_is_sent_with_another(refusing: Page, puppet: PuppetModel) -> None:
    def attach(name: str) -> None:
        refusing.locator("#files").set_input_files({"name": name, "mimeType": "text/plain", "buffer": b"words"})
        expect(refusing.locator("#attached li")).to_have_count(1)

    attach("one.txt")
    send_refused(refusing, "summarise")
    accept_again(puppet)
    attach("two.txt")
    ask(refusing, "summarise")
    expect(refusing.locator("#attached li")).to_contain_text("one.txt")


def test_a_message_is_shown_and_text_typed_is_kept_while_a_session_is_created(
    chat: Page, alices: Visitor, puppet: PuppetModel
) -> None:
    alices.expect_error("ERR_FAILED")
    held_back = hold_back(chat, "**/api/sessions")
    with chat.expect_request("**/api/sessions"):
        send(chat, "first")
    expect(chat.locator("[data-said-text]")).to_have_text("first")
    expect(chat.get_by_role("heading", name="The first page is yours.")).to_be_hidden()
    held_back[0].abort()
    chat.get_by_role("alert").get_by_role("button", name="Edit message").click()
    expect(chat.get_by_role("heading", name="The first page is yours.")).to_be_visible()
    expect(chat.locator(".dayline")).to_be_hidden()
    with chat.expect_request("**/api/sessions"):
        chat.keyboard.press("Enter")
    held_back[1].abort()
    with chat.expect_request("**/api/sessions"):
        chat.get_by_role("alert").get_by_role("button", name="Try again").click()
    expect(chat.locator("[data-said-text]")).to_have_text("first")
    expect(chat.get_by_role("button", name="Stop answering")).to_be_visible()
    chat.keyboard.type("and more")
    chat.get_by_label("Temporary").check()  # too late for this session
    puppet.answer("Fine.")
    held_back[2].continue_()
    expect(chat.locator("[data-prose]").last).to_have_text("Fine.")
    assert Message.objects.get(role="user").text == "first"
    expect(chat.get_by_label(BOX)).to_have_value("and more")
    expect(chat.get_by_label("Temporary")).not_to_be_checked()
    chat.reload()
    expect(chat.get_by_label(BOX)).to_have_value("and more")


def test_a_message_that_arrived_before_a_reload_is_no_draft_any_more(chat: Page, puppet: PuppetModel) -> None:
    puppet.answer("Fine.")
    chat.evaluate(
        """() => {
          const { fetch } = window;
          window.fetch = async (path, ...rest) => {
            const response = await fetch(path, ...rest);
            return path.endsWith("/turns") ? new Promise(() => {}) : response;  // a slow network
          };
        }"""
    )
    with chat.expect_response("**/turns"):
        send(chat, "only once")
    chat.reload()
    expect(chat.locator("[data-prose]")).to_have_text(["Fine."])
    expect(chat.get_by_label(BOX)).to_have_value("")


def test_the_draft_of_a_new_session_is_its_authors_own(visitor: NewVisitor) -> None:
    alices = visitor("alice")
    page = alices.open("/")
    page.get_by_label(BOX).fill("my secret")
    sign_in(alices, "charlie")
    page.goto(page.url)
    expect(page.get_by_role("button", name="Send message")).to_be_enabled()  # the page's script has run
    expect(page.get_by_label(BOX)).to_have_value("")
    sign_in(alices, "alice")
    page.goto(page.url)
    expect(page.get_by_label(BOX)).to_have_value("my secret")


def test_editing_a_message_is_not_interrupted_by_a_review(chat: Page) -> None:
    for text in ("I'm vegetarian and I prefer short answers", "Thank you", "That is all"):
        ask(chat, text)
    last = chat.locator(".turn").last
    last.locator(".entry--you").hover()
    last.get_by_role("button", name="Edit your message").click()
    editor = chat.get_by_role("textbox", name="Edit your message")
    editor.fill("That is not")
    run_in_thread(review_execute, str(ReviewRun.objects.get().pk))
    expect(last.locator("[data-change-set]")).to_contain_text("2 memories saved after a review")
    expect(editor).to_have_value("That is not")
    expect(editor).to_be_focused()
    editor.press_sequentially(" all")
    chat.keyboard.press("Escape")
    expect(last.locator(".entry--you .prose")).to_have_text("That is all")


def test_a_memory_and_a_message_of_one_turn_can_be_edited_while_a_review_ends(chat: Page) -> None:
    for text in ("I'm vegetarian and I prefer short answers", "Thank you", "Remember that the oven is hot."):
        ask(chat, text)
    last = chat.locator(".turn").last
    last.locator(".entry--you").hover()
    last.get_by_role("button", name="Edit your message").click()
    message = chat.get_by_role("textbox", name="Edit your message")
    message.fill("Remember nothing.")
    last.get_by_role("button", name="Edit: ").click()
    memory = chat.get_by_label("Edit this memory")
    memory.fill("The oven is")
    run_in_thread(review_execute, str(ReviewRun.objects.get().pk))
    expect(last).to_have_attribute("data-outdated", "")
    expect(memory).to_have_value("The oven is")
    expect(memory).to_be_focused()
    expect(message).to_have_value("Remember nothing.")
    chat.keyboard.press("Escape")
    expect(last).to_contain_text("2 memories saved after a review")
    expect(message).to_have_value("Remember nothing.")


def test_editing_a_memory_is_not_interrupted_by_undoing_another(chat: Page) -> None:
    for text in ("I'm vegetarian and I prefer short answers", "Thank you", "Remember that the oven is hot."):
        ask(chat, text)
    run_in_thread(review_execute, str(ReviewRun.objects.get().pk))
    last = chat.locator(".turn").last
    reviewed = last.locator(".note").filter(has_text="2 memories saved after a review")
    expect(reviewed).to_be_visible()
    last.locator(".note").filter(has_text="The oven is hot").get_by_role("button", name="Edit: ").click()
    editor = chat.get_by_label("Edit this memory")
    editor.fill("The oven is warm.")
    reviewed.get_by_role("button", name="Undo").click()
    expect(reviewed.get_by_role("status")).to_have_text("Done.")
    expect(editor).to_have_value("The oven is warm.")
    chat.get_by_role("button", name="Save", exact=True).click()
    expect(last).to_contain_text("Undone by you")
    assert Memory.objects.filter(content="The oven is warm.").exists()


def test_a_key_that_ends_an_ime_composition_does_not_end_editing(chat: Page) -> None:
    ask(chat, "Remember that the oven runs at 230 degrees.")
    chat.locator(".session").hover()
    chat.get_by_role("button", name="More for ").click()
    chat.get_by_role("menuitem", name="Rename").click()
    title = chat.get_by_label("New name of the session")
    title.fill("日本")
    title.dispatch_event("keydown", {"key": "Enter", "isComposing": True})
    expect(title).to_be_focused()
    title.press("Escape")
    chat.locator(".note").get_by_role("button", name="Edit: ").click()
    words = chat.get_by_label("Edit this memory")
    words.fill("日本")
    words.dispatch_event("keydown", {"key": "Escape", "isComposing": True})
    expect(words).to_have_value("日本")


def test_the_browser_asks_before_what_is_being_edited_is_lost(chat: Page, puppet: PuppetModel) -> None:
    asked: list[str] = []
    chat.on("dialog", lambda dialog: (asked.append(dialog.type), dialog.accept()))
    puppet.answer("Fine.")
    ask(chat, "first")
    edit = chat.get_by_role("button", name="Edit your message")
    edit.click()
    chat.reload()
    assert asked == []  # nothing is lost
    chat.get_by_label(BOX).fill("a draft is kept")
    edit.click()
    chat.get_by_role("textbox", name="Edit your message").fill("first, in other words")
    chat.reload()
    assert asked == ["beforeunload"]
    expect(chat.get_by_label(BOX)).to_have_value("a draft is kept")
    chat.locator("#files").set_input_files({"name": "a.txt", "mimeType": "text/plain", "buffer": b"bees"})
    expect(chat.get_by_text("a.txt")).to_be_visible()
    chat.reload()
    assert asked == ["beforeunload", "beforeunload"]
