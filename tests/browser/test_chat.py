"""The chat in a real browser: from signing in to a review's notice, and what survives a reload."""

import re

import pytest
from django.utils import timezone
from playwright.sync_api import Page, Route, expect

from gateway.models import Message, Run, Session
from gateway.runs import active
from memories.errors import UpstreamError, UpstreamTimeout
from memories.models import Memory
from reviews.models import ReviewRun
from reviews.tasks import review_execute
from tests.browser.conftest import LiveServer, NewVisitor, Visitor, owner_of, run_in_thread
from tests.browser.page_actions import ask, expect_status, hold_back, open_conversation, send, sign_in_with
from tests.browser.puppet_model import PuppetModel

pytestmark = pytest.mark.browser


def test_a_new_user_signs_in_chats_and_sees_what_the_review_saved(visitor: NewVisitor) -> None:
    owner_of("alice")
    page = visitor().open("/")
    sign_in_with(page, "alice", "alice knows it")
    expect(page.get_by_role("heading", name="The first page is yours.")).to_be_visible()
    expect(page.get_by_text("Demo model.")).to_be_visible()

    ask(page, "I'm vegetarian and I prefer short answers")
    ask(page, "Thank you")
    ask(page, "That is all")
    expect(page.get_by_text("Reviewing this conversation")).to_be_visible()
    review = ReviewRun.objects.get()
    run_in_thread(review_execute, str(review.pk))

    toast = page.locator(".toast")
    expect(toast).to_contain_text("Saved 2 memories from this conversation.")
    expect(toast.get_by_role("listitem")).to_have_count(2)
    note = page.locator(".turn").last.locator("[data-change-set]")
    expect(note).to_contain_text("2 memories saved after a review")
    expect(page.locator("[data-change-set]")).to_have_count(1)
    expect(page.get_by_text("Reviewing this conversation")).to_be_hidden()
    toast.get_by_role("button", name="Undo").click()
    expect(toast).to_contain_text("Undone. 2 memories changed back.")
    expect(note).to_contain_text("Undone by you")
    assert not Memory.objects.filter(deleted_at__isnull=True).exists()
    toast.get_by_role("button", name="Restore").click()
    expect(toast).to_contain_text("Restored 2 memories.")
    assert Memory.objects.filter(deleted_at__isnull=True).count() == 2
    expect(note).to_contain_text("2 memories saved after a review")
    page.reload()
    expect(page.locator(".turn").last.locator("[data-change-set]")).to_contain_text("vegetarian")

    page.get_by_role("link", name="New session").click()
    ask(page, "What do you remember about me?")
    given = page.locator("details[data-given]").last
    given.get_by_text("Given 2 memories").click()
    expect(given.get_by_role("listitem")).to_have_count(2)
    row = given.get_by_role("listitem").filter(has_text="vegetarian")
    row.get_by_role("button", name="Edit").click()
    page.get_by_label("Edit this memory").fill("Is vegan.")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_label("Edit this memory")).to_have_count(0)
    assert Memory.objects.filter(content="Is vegan.").exists()
    row = given.get_by_role("listitem").filter(has_text="Is vegan.")
    row.get_by_role("button", name="Delete").click()
    expect(row).to_contain_text("Deleted since.")
    assert Memory.objects.filter(deleted_at__isnull=True).count() == 1
    row.get_by_role("button", name="Restore").click()
    expect(row.get_by_role("button", name="Delete")).to_be_visible()


def test_an_answer_streams_even_after_a_reload_and_in_another_tab(
    chat: Page, alices: Visitor, puppet: PuppetModel
) -> None:
    send(chat, "hello")
    expect_status(chat, "Answering")
    answer = chat.locator("[data-answer]").last
    puppet.say("First **words**")
    expect(answer.locator("strong")).to_have_text("words")
    expect(answer).to_have_attribute("aria-busy", "true")
    expect(chat.get_by_role("button", name="Stop answering")).to_be_visible()
    chat.reload()
    expect(answer.locator("strong")).to_have_text("words")
    expect_status(chat, "Answering")
    puppet.say(" <b>and</b>\n\n```js\nlet x")
    expect(answer.locator("pre code")).to_have_text("let x")
    expect(answer).to_contain_text("<b>and</b>")
    again = alices.open("/")
    expect(again.locator("[data-answer] pre code")).to_have_text("let x")
    puppet.answer(" = 1\n```\n")
    for page in (chat, again):
        expect_status(page, "Answer complete")
        expect(page.locator("[aria-busy]")).to_have_count(0)
        expect(page.locator("pre .k")).to_have_text("let")  # replaced by the server's rendering
        expect(page.locator("pre code")).to_have_text("let x = 1\n")
    expect(chat.get_by_role("button", name="Send message")).to_be_visible()
    assert chat.url.endswith(f"/c/{Session.objects.get().pk}/")
    assert Run.objects.get().state == Run.State.COMPLETED


def test_an_answer_can_be_stopped_in_either_tab_and_before_it_begins(
    chat: Page, alices: Visitor, puppet: PuppetModel
) -> None:
    send(chat, "first")
    puppet.say("Well, ")
    expect(chat.get_by_text("Well,")).to_be_visible()
    chat.keyboard.press("Escape")
    expect(chat.get_by_text("Stopped by you.")).to_be_visible()
    expect_status(chat, "Answer stopped")
    other = alices.open(chat.url.removeprefix(alices.address))
    send(chat, "second")
    puppet.say("Two and ")
    expect(other.get_by_text("Two and")).to_be_visible()
    other.get_by_role("button", name="Stop answering").click()
    for page in (chat, other):
        expect(page.get_by_text("Stopped by you.")).to_have_count(2)
        expect(page.get_by_text("Two and")).to_be_visible()
        expect(page.locator(".turn")).to_have_count(2)
    # Stop before the server has received the message.
    held_back = hold_back(chat, "**/turns")
    with chat.expect_request("**/turns"):
        send(chat, "third")
    expect(chat.get_by_role("button", name="Stop answering")).to_be_visible()
    chat.keyboard.press("Escape")
    held_back[0].continue_()
    expect(chat.get_by_text("Stopped by you.")).to_have_count(3)
    assert [run.state for run in Run.objects.order_by("id")] == [Run.State.STOPPED] * 3


def test_an_interrupted_answer_is_shown_after_a_restart_and_can_be_retried(
    chat: Page, alices: Visitor, server: LiveServer, puppet: PuppetModel
) -> None:
    alices.expect_error("ERR_FAILED")
    alices.expect_error("503")
    send(chat, "hello")
    puppet.say("Half an answer")
    expect(chat.get_by_text("Half an answer")).to_be_visible()
    server.do(active.shut_down())
    active.reset()
    interrupted = chat.get_by_text("Interrupted: Daybook was restarted")
    expect(interrupted).to_be_visible()
    expect(chat.get_by_text("Half an answer")).to_be_visible()
    expect(chat.locator(".caret")).to_have_count(0)
    puppet.say("Not a whole one")
    chat.get_by_role("button", name="Try again").click()
    expect(chat.get_by_text("Not a whole one")).to_be_visible()
    attempts: list[int] = []

    def unavailable_twice(route: Route) -> None:
        attempts.append(1)
        if len(attempts) == 1:
            route.abort()
        elif len(attempts) == 2:
            route.fulfill(status=503, body="<h1>Service Unavailable</h1>")  # a proxy's own page
        else:
            route.continue_()

    chat.route("**/fragments/turn/**", unavailable_twice)
    server.do(active.shut_down())
    active.reset()
    expect(interrupted).to_be_visible(timeout=15_000)
    assert len(attempts) == 3
    puppet.answer("The whole answer.")
    chat.get_by_role("button", name="Try again").click()
    expect(chat.get_by_text("The whole answer.")).to_be_visible()
    expect(chat.locator(".turn")).to_have_count(1)


def test_a_failure_is_explained_and_can_be_retried(chat: Page, puppet: PuppetModel) -> None:
    puppet.fail(UpstreamError("The model server refused the gateway's key."))
    send(chat, "hello")
    alert = chat.get_by_role("alert")
    expect(alert).to_contain_text("The model server refused the gateway's key. Your message is kept.")
    puppet.fail(UpstreamTimeout("The model server took too long to answer."))
    alert.get_by_role("button", name="Try again").click()
    expect(alert).to_contain_text("The model server took too long to answer. Your message is kept.")
    expect_status(chat, "No answer")
    puppet.say("Half an answer")
    puppet.fail(UpstreamError("The model server broke off in the middle of its answer."))
    alert.get_by_role("button", name="Try again").click()
    expect_status(chat, "Incomplete")
    expect(chat.locator(".turn")).to_contain_text("Half an answer")
    expect(chat.get_by_text("No answer")).to_have_count(0)
    puppet.answer("There you are.")
    alert.get_by_role("button", name="Try again").click()
    expect(chat.get_by_text("There you are.")).to_be_visible()
    expect(alert).to_have_count(0)
    expect(chat.locator(".turn")).to_have_count(1)


def test_the_last_message_can_be_edited_and_its_answer_regenerated(alices: Visitor, puppet: PuppetModel) -> None:
    chat = open_conversation(alices, ("qestion", "Answer one."))
    editor = chat.get_by_role("textbox", name="Edit your message")
    box = chat.get_by_label("Message to assistant")
    box.fill("half a thou")
    box.press("ArrowUp")  # with text in the box this moves the cursor
    expect(editor).to_have_count(0)
    box.fill("")
    box.press("ArrowUp")
    expect(editor).to_be_focused()
    expect(editor).to_have_value("qestion")
    chat.get_by_role("button", name="Cancel").press("Enter")  # not to be mistaken for the Enter that sends
    expect(editor).to_have_count(0)
    chat.get_by_role("button", name="Edit your message").click()
    editor.fill("question")
    puppet.answer("Answer two.")
    chat.keyboard.press("Enter")
    expect(chat.get_by_text("Answer two.")).to_be_visible()
    expect(chat.get_by_text("Answer one.")).to_have_count(0)
    expect(chat.get_by_text("question", exact=True)).to_be_visible()
    puppet.answer("Answer three.")
    chat.get_by_role("button", name="Answer again").click()
    expect(chat.get_by_text("Answer three.")).to_be_visible()
    expect(chat.locator(".turn")).to_have_count(1)
    expect(chat.locator(".turn")).to_have_attribute("data-state", "completed")
    assert [m["content"] for m in puppet.requests[-1].messages if m["role"] == "user"] == ["question"]
    assert Session.objects.get().turns == 1


def test_a_refused_message_is_put_before_the_current_draft(alices: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.sessions.changes._changed", lambda before: {})  # the page is not told in time
    alices.expect_error("status of 404")
    chat = open_conversation(alices, ("first", "Fine."))
    box = chat.get_by_label("Message to assistant")
    alert = chat.get_by_role("alert")
    Session.objects.update(deleted_at=timezone.now())  # in time for a socket that opens only now
    send(chat, "is anybody there?")
    expect(alert).to_contain_text("It was deleted meanwhile. Reload the page, or copy")
    alert.get_by_role("button", name="Edit message").click()
    expect(box).to_have_value("is anybody there?")
    expect(alert).to_have_count(0)
    chat.keyboard.press("Enter")
    expect(alert).to_be_visible()
    box.fill("Hello?")
    alert.get_by_role("button", name="Edit message").click()
    expect(box).to_have_value("is anybody there?\n\nHello?")


def test_a_saved_memory_can_be_undone_restored_and_edited_below_the_answer(chat: Page, alices: Visitor) -> None:
    ask(chat, "Remember that the oven runs at 230 degrees.")
    note = chat.locator(".note[data-change-set]")
    expect(note).to_contain_text("Memory saved")
    note.get_by_role("button", name="Undo").click()
    expect(note).to_contain_text("Undone by you")
    expect(note.get_by_role("button", name="Restore")).to_be_focused()
    assert Memory.objects.get().deleted_at is not None
    note.get_by_role("button", name="Restore").click()
    expect(note).to_contain_text("Memory saved")
    assert Memory.objects.get().deleted_at is None
    note.get_by_role("button", name="Edit: ").click()
    words = chat.get_by_label("Edit this memory")
    words.fill("The oven runs at 240 degrees.")
    chat.get_by_role("button", name="Save", exact=True).click()
    expect(words).to_have_count(0)
    expect(note.get_by_role("button", name="Edit: ")).to_be_focused()
    assert Memory.objects.get().content == "The oven runs at 240 degrees."
    alices.expect_error("status of 409")
    note.get_by_role("button", name="Edit: ").click()
    Memory.objects.update(version=17)
    words.fill("Mine.")
    chat.get_by_role("button", name="Save", exact=True).click()
    expect(chat.get_by_text("This memory was changed while you were editing.")).to_be_visible()
    assert Memory.objects.get().content != "Mine."


def test_enter_sends_shift_enter_does_not_and_the_draft_survives_a_reload(chat: Page, puppet: PuppetModel) -> None:
    box = chat.get_by_label("Message to assistant")
    box.press_sequentially("one")
    chat.keyboard.press("Shift+Enter")
    box.press_sequentially("two")
    chat.reload()
    expect(box).to_have_value("one\ntwo")
    puppet.answer("Fine.")
    chat.keyboard.press("Enter")
    expect_status(chat, "Answer complete")
    assert Message.objects.get(role="user").text == "one\ntwo"
    chat.reload()
    expect(box).to_have_value("")


def test_commands_are_completed_with_the_keyboard(chat: Page) -> None:
    box = chat.get_by_label("Message to assistant")
    options = chat.get_by_role("option").locator("visible=true")
    box.press_sequentially("/mem")
    expect(chat.get_by_role("listbox", name="Commands")).to_be_visible()
    expect(box).to_have_attribute("aria-activedescendant", "command-1")
    box.press_sequentially("ory re")
    expect(chat.locator("#commands [role=option]:visible")).to_have_text([re.compile("rebuild"), re.compile("reset")])
    chat.keyboard.press("ArrowDown")
    chat.keyboard.press("Tab")
    expect(box).to_have_value("/memory reset")
    expect(box).to_be_focused()
    expect(options).to_have_count(0)
    box.fill("/")
    expect(chat.get_by_role("listbox", name="Commands")).to_be_visible()
    chat.keyboard.press("Escape")
    expect(chat.get_by_role("listbox", name="Commands")).to_be_hidden()


def test_a_temporary_session_is_confirmed_and_deleted_on_leaving(alices: Visitor) -> None:
    chat = open_conversation(alices, ("hello", "Hello."), title="Hello")
    chat.get_by_text("Temporary", exact=True).click()
    expect(chat.get_by_text("This starts a new, temporary session.")).to_be_visible()
    chat.get_by_role("button", name="Stay here").click()
    expect(chat.get_by_role("switch")).not_to_be_checked()
    chat.get_by_label("Message to assistant").fill("carried over")
    chat.get_by_text("Temporary", exact=True).click()
    chat.get_by_role("button", name="Start it").click()
    expect(chat.get_by_role("switch")).to_be_checked()
    expect(chat.get_by_label("Message to assistant")).to_have_value("carried over")
    assert Session.objects.count() == 1
    chat.get_by_text("Temporary", exact=True).click()  # an empty session needs no confirmation
    expect(chat.get_by_role("switch")).not_to_be_checked()
    chat.get_by_text("Temporary", exact=True).click()
    expect(chat.get_by_text("Temporary session. No memory is read and none is saved.")).to_be_visible()
    ask(chat, "Remember that nobody should know this.")
    assert Session.objects.filter(temporary=True).count() == 1
    assert not Memory.objects.exists()
    expect(chat.locator(".session")).to_have_count(1)  # the other one
    chat.reload()
    expect(chat.locator(".entry--you").get_by_text("nobody should know")).to_be_visible()
    with chat.expect_response(lambda response: response.request.method == "DELETE") as deleted:
        chat.get_by_role("link", name="Memories").first.click()
    assert deleted.value.status == 204
    assert not Session.with_deleted.filter(temporary=True).exists()


def test_no_data_of_one_user_reaches_another(visitor: NewVisitor) -> None:
    page, theirs = visitor("alice").open("/"), visitor("charlie").open("/")
    ask(page, "Remember that the safe opens with my birthday.")
    expect(page.locator(".session")).to_have_count(1)
    ask(theirs, "What do you remember about me?")
    theirs.reload()
    expect(theirs.locator(".session")).to_have_count(1)
    expect(theirs.get_by_text("safe")).to_have_count(0)
    expect(theirs.locator("details[data-given]")).to_have_count(0)
    assert Session.objects.filter(owner=owner_of("charlie")).count() == 1
