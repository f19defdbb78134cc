"""The details of an answer: the model's thinking, its tool calls and tokens; and how waits, empty answers and failures
are explained."""

import re

import pytest
from playwright.sync_api import Page, expect

from gateway.models import Run
from memories.errors import UpstreamError
from tests.browser.axe import findings_light_and_dark
from tests.browser.conftest import NewVisitor, Visitor
from tests.browser.page_actions import ask, expect_status, hold_back, send
from tests.browser.puppet_model import PuppetModel

pytestmark = pytest.mark.browser
SECOND = 1000


def test_thinking_is_folded_during_and_after_the_answer(chat: Page, puppet: PuppetModel) -> None:
    send(chat, "What do I drink?")
    puppet.think("The person asks ")
    thinking = chat.locator("summary", has_text="Thinking…")
    thinking.click()
    thought = chat.locator(".thought")
    expect(thought).to_be_visible()
    expect(thought).to_have_text("The person asks")
    puppet.think("about tea.")
    expect(thought).to_have_text("The person asks about tea.")
    puppet.say("Tea.")
    summary = chat.locator("summary", has_text=re.compile(r"^Thought for \d+ s$"))
    expect(summary).to_be_visible()
    puppet.end()
    expect_status(chat, "Answer complete")
    expect(chat.locator(".turn")).to_have_attribute("data-state", "completed")
    expect(thought).to_be_visible()  # it stays open once opened
    chat.reload()
    expect(thought).to_be_hidden()
    summary.click()
    expect(thought).to_have_text("The person asks about tea.")


def test_the_session_title_does_not_move_the_answer(chat: Page, puppet: PuppetModel) -> None:
    lists = hold_back(chat, "**/fragments/sessions/**")
    send(chat, "What do I drink?")
    puppet.think("The person asks ")
    thinking = chat.locator("summary", has_text="Thinking…")
    expect(thinking).to_be_visible()
    before = thinking.bounding_box()
    lists.pop().continue_()
    expect(chat.get_by_role("heading", name="What do I drink?")).to_be_visible()
    assert thinking.bounding_box() == before
    puppet.answer("Tea.")
    expect_status(chat, "Answer complete")


def test_a_new_session_has_its_title_while_the_list_is_filtered(chat: Page, puppet: PuppetModel) -> None:
    chat.get_by_label("Search sessions").fill("quince")
    expect(chat.get_by_text("Nothing matches “quince”.")).to_be_visible()
    send(chat, "What do I drink?")
    expect(chat.get_by_role("heading", name="What do I drink?")).to_be_visible()
    puppet.answer("Tea.")
    expect_status(chat, "Answer complete")


def test_the_heading_of_a_session_that_is_refused_is_removed(alices: Visitor) -> None:
    alices.expect_error("status of 503")
    chat = alices.open("/")
    chat.route("**/api/sessions", lambda route: route.fulfill(status=503, json={"error": {"code": "overloaded"}}))
    send(chat, "What do I drink?")
    alert = chat.get_by_role("alert")
    expect(chat.get_by_role("heading", name="New session")).to_be_visible()
    alert.get_by_role("button", name="Edit message").click()
    expect(chat.get_by_role("heading", level=1)).to_have_count(1)


def test_what_is_opened_and_focused_during_an_answer_stays_so_after_it(chat: Page, puppet: PuppetModel) -> None:
    send(chat, "What do I drink?\n" * 40)
    chat.get_by_role("button", name="Show all (40 lines)").click()
    puppet.think("The person asks about tea.")
    thinking = chat.locator("summary", has_text="Thinking…")
    expect(thinking).to_be_visible()
    thinking.press("Enter")
    puppet.answer("Tea.")
    expect_status(chat, "Answer complete")
    expect(chat.locator(".turn")).to_have_attribute("data-state", "completed")
    expect(chat.get_by_role("button", name="Show less")).to_have_attribute("aria-expanded", "true")
    expect(chat.locator(".thought")).to_be_visible()
    expect(chat.locator("summary", has_text="Thought for")).to_be_focused()


def test_a_reload_while_thinking_shows_all_of_the_thinking(chat: Page, puppet: PuppetModel) -> None:
    send(chat, "What do I drink?")
    puppet.think("First this. ")
    expect(chat.locator("summary", has_text="Thinking…")).to_be_visible()
    chat.reload()
    chat.locator("summary", has_text="Thinking…").click()
    puppet.think("Then that.")
    expect(chat.locator(".thought")).to_have_text("First this. Then that.")
    puppet.answer("Tea.")
    expect_status(chat, "Answer complete")


def test_tool_calls_are_folded_below_the_answer_with_arguments_and_results(chat: Page, puppet: PuppetModel) -> None:
    send(chat, "What do I drink?")
    puppet.call("search_memories", '{"query": "my favourite drink"}')
    used = chat.locator("summary", has_text="Used 1 tool")
    used.click()
    uses = chat.locator(".uses")
    expect(uses).to_contain_text("search_memories")
    expect(uses).to_contain_text("my favourite drink")
    expect(uses).to_contain_text('"ok": true')
    puppet.answer("I do not know.")
    expect_status(chat, "Answer complete")
    expect(chat.locator(".turn")).to_have_attribute("data-state", "completed")
    expect(uses).to_be_visible()
    chat.reload()
    used.click()
    expect(uses).to_contain_text("my favourite drink")
    expect(uses).to_contain_text("ok")


def test_the_details_show_the_tokens(chat: Page, puppet: PuppetModel) -> None:
    chat.set_viewport_size({"width": 390, "height": 700})
    puppet.answer("Tea.\n\n" * 30)
    ask(chat, "What do I drink?")
    chat.locator("summary", has_text="Details").click()
    expect(chat.locator(".pairs")).to_be_in_viewport(ratio=1)
    expect(chat.locator(".pairs")).to_contain_text("8,008 tokens: 8,000 read, 8 written")


def test_a_long_wait_and_an_empty_answer_are_explained(visitor: NewVisitor, puppet: PuppetModel) -> None:
    chat = visitor("alice", alone=True).open("/")
    chat.clock.install()
    send(chat, "hello")
    working = chat.locator("[data-working]")
    expect(chat.locator(".turn[data-turn]:not([data-turn=''])")).to_have_count(1)
    chat.clock.run_for(5 * SECOND)
    expect(working).to_have_text("Waiting for the model…")
    chat.clock.run_for(20 * SECOND)
    expect(working).to_have_text("Still waiting: the model server has not answered yet.")
    puppet.end()
    expect(chat.get_by_text("The model gave an empty answer.")).to_be_visible()
    expect(chat.get_by_role("button", name="Answer again")).to_be_visible()


def test_an_earlier_failure_is_shown_as_one_line(chat: Page, puppet: PuppetModel) -> None:
    puppet.fail(UpstreamError("The model server refused the gateway's key."))
    send(chat, "one")
    alert = chat.get_by_role("alert")
    expect(alert).to_contain_text("An administrator has to set a valid key for this model server.")
    puppet.answer("Fine.")
    ask(chat, "two")
    expect(alert.get_by_text("The model server refused the gateway's key.")).to_be_visible()
    expect(alert.get_by_role("button")).to_have_count(0)
    box = alert.bounding_box()
    assert box
    assert box["height"] < 30
    chat.reload()
    expect(alert.get_by_role("button")).to_have_count(0)
    assert [run.state for run in Run.objects.order_by("id")] == ["failed", "completed"]


def test_axe_finds_nothing_serious_in_turn_details(chat: Page, puppet: PuppetModel) -> None:
    puppet.fail(UpstreamError("The model server answered with an error (500)."))
    send(chat, "zero")
    expect(chat.get_by_role("alert")).to_be_visible()
    send(chat, "What do I drink?")
    puppet.think("The person asks about tea. " * 10)
    puppet.call("search_memories", '{"query": "my favourite drink"}')
    puppet.answer("Tea.")
    expect_status(chat, "Answer complete")
    puppet.answer("Coffee.")
    chat.get_by_role("button", name="Answer again").last.click()
    expect(chat.get_by_text("Coffee.")).to_be_visible()
    chat.get_by_role("button", name="Earlier version").click()
    expect(chat.locator(".versions__place")).to_have_text("1/2")
    for fold in chat.locator(".turn details").all():
        fold.locator("summary").click()
    expect(chat.locator(".thought")).to_be_visible()
    for width in (1440, 390):
        chat.set_viewport_size({"width": width, "height": 844})
        assert findings_light_and_dark(chat) == []
        assert chat.evaluate("document.documentElement.scrollWidth <= innerWidth")
