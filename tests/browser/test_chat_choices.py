"""Choosing an agent, the context window's fill level, the memories used, examples, and automatic retries."""

import pytest
from playwright.sync_api import Page, expect

from gateway.models import Run, Session
from memories.errors import Overloaded, RateLimited
from tests.browser.conftest import Visitor, owner_of
from tests.browser.page_actions import ask, expect_status, open_conversation, send
from tests.browser.puppet_model import PuppetModel
from tests.factories import agent_make, memory_make

pytestmark = pytest.mark.browser

BUSY = "The model server is receiving too many requests. Try again later."
EXAMPLE = "Plan a vegetarian dinner for six, no hazelnuts."
SECOND = 1000
GIVEN = "details[data-given]"


def test_a_page_that_was_opened_yesterday_dates_a_message_today(paused: Page, puppet: PuppetModel) -> None:
    paused.clock.fast_forward("24:00:00")
    send(paused, "good morning")
    expect(paused.get_by_role("heading", name="Friday 2 January", exact=True)).to_be_visible()


def test_a_new_session_can_use_any_agent(alices: Visitor, puppet: PuppetModel) -> None:
    agent_make("sysadmin")
    page = alices.open("/")
    page.get_by_label("Agent").select_option("sysadmin")
    expect(page.get_by_placeholder("Message sysadmin")).to_be_visible()
    puppet.answer("Fine.")
    page.get_by_label("Message to sysadmin").fill("hello")
    page.keyboard.press("Enter")
    expect_status(page, "Answer complete")
    assert Session.objects.get().agent.name == "sysadmin"


def test_changing_the_agent_of_a_running_session_asks_for_confirmation(alices: Visitor) -> None:
    agent_make("sysadmin")
    page = open_conversation(alices, ("hello", "Fine."))
    page.get_by_label("Agent").select_option("sysadmin")
    expect(page.get_by_text("This starts a new session with sysadmin.")).to_be_visible()
    page.get_by_role("button", name="Stay here").click()
    expect(page.get_by_label("Agent")).to_have_value("assistant")
    expect(page.get_by_text("This starts a new session")).to_have_count(0)
    page.get_by_label("Agent").select_option("sysadmin")
    page.get_by_role("button", name="Start it").click()
    expect(page.get_by_placeholder("Message sysadmin")).to_be_visible()
    expect(page.get_by_label("Agent")).to_have_value("sysadmin")
    assert Session.objects.count() == 1


WIDTHS = (1440, 1000, 800, 390)


def test_a_filling_context_window_is_explained(chat: Page, puppet: PuppetModel) -> None:
    puppet.answer("Fine.")
    ask(chat, "hello")
    words = chat.get_by_text("Older turns will be summarised").locator("visible=true")
    fill = chat.locator("#fill")
    for width in WIDTHS:
        chat.set_viewport_size({"width": width, "height": 900})
        expect(fill).to_contain_text("25 %")
        expect(words).to_have_count(0)
    agent_make("assistant", context_token_limit=10_000)  # of which 8,008 are used
    puppet.answer("Fine.")
    ask(chat, "and again")
    for width in WIDTHS:
        chat.set_viewport_size({"width": width, "height": 900})
        expect(fill).to_contain_text("80 %")
        expect(words).to_have_count(1)
    chat.reload()
    for width in WIDTHS:
        chat.set_viewport_size({"width": width, "height": 900})
        expect(words).to_have_count(1)
        expect(chat.get_by_role("button", name="Send message")).to_be_in_viewport(ratio=1)
        boxes = [chat.locator(part).bounding_box() for part in ("#agent", ".composer .switch", "#fill", "#send")]
        edges = [edge for box in boxes if box for edge in (box["x"], box["x"] + box["width"])]
        assert edges == sorted(edges), f"at {width} pixels parts of the bar overlap"


def test_only_the_clicked_list_of_memories_is_open(chat: Page, puppet: PuppetModel) -> None:
    memory_make(owner_of("alice"), "Prefers the command first.", pinned=True)
    puppet.answer("Fine.")
    ask(chat, "hello")
    expect(chat.locator(GIVEN)).not_to_have_attribute("open", "")
    chat.get_by_text("Given 1 memory").click()
    expect(chat.get_by_text("Pinned, so it is in every answer.")).to_be_visible()
    puppet.answer("Still fine.")
    ask(chat, "and now?")
    expect(chat.locator(GIVEN).nth(0)).to_have_attribute("open", "")
    expect(chat.locator(GIVEN).nth(1)).not_to_have_attribute("open", "")
    chat.reload()
    expect(chat.locator(GIVEN).nth(0)).not_to_have_attribute("open", "")


def test_an_opened_list_of_memories_shows_what_was_deleted_meanwhile(
    chat: Page, alices: Visitor, puppet: PuppetModel
) -> None:
    memory_make(owner_of("alice"), "Prefers the command first.", pinned=True)
    puppet.answer("Fine.")
    ask(chat, "hello")
    elsewhere = alices.open("/memories/")
    elsewhere.get_by_text("Prefers the command first.").hover()
    elsewhere.get_by_role("button", name="Delete: Prefers").click()
    expect(elsewhere.get_by_role("button", name="Delete: Prefers")).to_have_count(0)
    summary = chat.locator(f"{GIVEN} > summary")
    summary.focus()
    chat.keyboard.press("Enter")
    expect(chat.get_by_text("Deleted since.")).to_be_visible()
    expect(chat.locator(GIVEN)).to_have_attribute("open", "")
    expect(summary).to_be_focused()


def test_an_example_prompt_is_sent_and_keeps_the_draft(chat: Page, puppet: PuppetModel) -> None:
    box = chat.get_by_label("Message to assistant")
    box.press_sequentially("half a thou")
    puppet.answer("Six plates it is.")
    chat.get_by_role("button", name=EXAMPLE).click()
    expect(chat.get_by_text("Six plates it is.")).to_be_visible()
    assert puppet.requests[0].messages[-1]["content"] == EXAMPLE
    expect(chat.get_by_text("Try one")).to_be_hidden()
    expect(box).to_have_value("half a thou")
    chat.reload()
    expect(box).to_have_value("half a thou")


def test_a_rate_limit_counts_down_and_retries(paused: Page, puppet: PuppetModel) -> None:
    puppet.fail(RateLimited(BUSY, retry_after="3"))
    send(paused, "hello")
    alert = paused.get_by_role("alert")
    expect(alert).to_contain_text("The model server is receiving too many requests. Trying again in 3 seconds.")
    paused.clock.run_for(1 * SECOND)
    expect(alert).to_contain_text("Trying again in 2 seconds.")
    puppet.answer("There you are.")
    paused.clock.run_for(1 * SECOND)
    paused.clock.run_for(1 * SECOND)
    expect(paused.get_by_text("There you are.")).to_be_visible()
    expect(paused.locator(".turn")).to_have_count(1)
    assert [run.state for run in Run.objects.order_by("id")] == ["failed", "completed"]


def test_three_retries_are_made_automatically(paused: Page, puppet: PuppetModel) -> None:
    alert = paused.get_by_role("alert")
    puppet.fail(Overloaded(BUSY, retry_after="1"))
    send(paused, "hello")
    for _ in range(3):
        expect(alert).to_contain_text("Trying again in 1 second.")
        puppet.fail(Overloaded(BUSY, retry_after="1"))
        paused.clock.run_for(1 * SECOND)
        expect(paused.locator(".turn")).to_have_attribute("data-state", "failed")
    expect(alert).to_contain_text("The model server is receiving too many requests. Your message is kept.")
    paused.clock.run_for(60 * SECOND)
    assert len(puppet.requests) == 4


def test_a_new_message_cancels_the_pending_retry(paused: Page, puppet: PuppetModel) -> None:
    puppet.fail(RateLimited(BUSY, retry_after="2"))
    send(paused, "first")
    expect(paused.get_by_role("alert")).to_contain_text("Trying again in 2 seconds.")
    puppet.answer("To the second.")
    ask(paused, "second")
    paused.clock.run_for(5 * SECOND)
    expect(paused.locator(".turn")).to_have_count(2)
    assert [request.messages[-1]["content"] for request in puppet.requests] == ["first", "second"]
    # The alert no longer announces a retry.
    expect(paused.get_by_role("alert")).to_contain_text("receiving too many requests. Your message is kept.")
