"""What stands around a message: the agent, the context, the memories that were used, and trying again by itself."""

import pytest
from playwright.sync_api import Page, expect

from gateway.models import Run, Session
from memories.errors import Overloaded, RateLimited
from tests.browser.chat_actions import ask, expect_status, send
from tests.browser.conftest import NewVisitor, Visitor, owner_of
from tests.browser.conversations import conversation_make
from tests.browser.puppet_model import PuppetModel
from tests.factories import agent_make, memory_make

pytestmark = pytest.mark.browser

BUSY = "The model server is asked too much at once. Try again later."
EXAMPLE = "Plan a vegetarian dinner for six, no hazelnuts."
SECOND = 1000
GIVEN = "details[data-given]"


@pytest.fixture
def stopped(visitor: NewVisitor, puppet: PuppetModel) -> Page:
    """The chat, with a clock that goes only when the test says so."""
    alices = visitor("alice", alone=True)
    alices.context.clock.install(time="2026-01-01T08:00:00Z")
    page = alices.open("/")
    expect(page.get_by_role("button", name="Send message")).to_be_enabled()
    page.clock.pause_at("2026-01-01T08:10:00Z")
    return page


def test_the_agent_of_a_new_session_is_chosen_freely(alices: Visitor, puppet: PuppetModel) -> None:
    agent_make("sysadmin")
    page = alices.open("/")
    page.get_by_label("Agent").select_option("sysadmin")
    expect(page.get_by_placeholder("Message sysadmin")).to_be_visible()
    puppet.answer("Fine.")
    page.get_by_label("Message to sysadmin").fill("hello")
    page.keyboard.press("Enter")
    expect_status(page, "Answer complete")
    assert Session.objects.get().agent.name == "sysadmin"


def test_another_agent_in_a_running_session_asks_first(alices: Visitor) -> None:
    agent_make("sysadmin")
    page = alices.open(f"/c/{conversation_make(owner_of('alice'), ('hello', 'Fine.')).pk}/")
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


def test_a_context_that_fills_says_what_will_happen(chat: Page, puppet: PuppetModel) -> None:
    puppet.answer("Fine.")
    ask(chat, "hello")
    words = chat.get_by_text("Older turns will be summarised").locator("visible=true")
    fill = chat.locator("#fill")
    for width in WIDTHS:
        chat.set_viewport_size({"width": width, "height": 900})
        expect(fill).to_contain_text("25 %")
        expect(words).to_have_count(0)
    agent_make("assistant", context_token_limit=10_000)  # what is used of it: 8,008
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
        assert edges == sorted(edges), f"at {width} pixels parts of the bar lie over each other"


def test_only_the_list_of_memories_that_was_clicked_is_open(chat: Page, puppet: PuppetModel) -> None:
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


def test_an_example_of_the_first_page_is_said_and_leaves_what_was_being_written(
    chat: Page, puppet: PuppetModel
) -> None:
    box = chat.get_by_label("Message to assistant")
    box.press_sequentially("half a thou")
    puppet.answer("Six plates it is.")
    chat.get_by_role("button", name=EXAMPLE).click()
    expect(chat.get_by_text("Six plates it is.")).to_be_visible()
    assert puppet.requests[0].messages[-1]["content"] == EXAMPLE
    expect(chat.get_by_text("Try one")).to_have_count(0)
    expect(box).to_have_value("half a thou")
    chat.reload()
    expect(box).to_have_value("half a thou")


def test_too_much_at_once_counts_down_and_tries_again(stopped: Page, puppet: PuppetModel) -> None:
    puppet.fail(RateLimited(BUSY, retry_after="3"))
    send(stopped, "hello")
    alert = stopped.get_by_role("alert")
    expect(alert).to_contain_text("The model server is asked too much at once. Trying again in 3 seconds.")
    stopped.clock.run_for(1 * SECOND)
    expect(alert).to_contain_text("Trying again in 2 seconds.")
    puppet.answer("There you are.")
    stopped.clock.run_for(1 * SECOND)
    stopped.clock.run_for(1 * SECOND)
    expect(stopped.get_by_text("There you are.")).to_be_visible()
    expect(stopped.locator(".turn")).to_have_count(1)
    assert [run.state for run in Run.objects.order_by("id")] == ["failed", "completed"]


def test_it_tries_again_three_times_and_then_leaves_it_to_the_person(stopped: Page, puppet: PuppetModel) -> None:
    alert = stopped.get_by_role("alert")
    puppet.fail(Overloaded(BUSY, retry_after="1"))
    send(stopped, "hello")
    for _ in range(3):
        expect(alert).to_contain_text("Trying again in 1 second.")
        puppet.fail(Overloaded(BUSY, retry_after="1"))
        stopped.clock.run_for(1 * SECOND)
        expect(stopped.locator(".turn")).to_have_attribute("data-state", "failed")
    expect(alert).to_contain_text("The model server is asked too much at once. Your message is kept.")
    stopped.clock.run_for(60 * SECOND)
    assert len(puppet.requests) == 4


def test_whoever_says_something_else_meanwhile_is_not_interrupted(stopped: Page, puppet: PuppetModel) -> None:
    puppet.fail(RateLimited(BUSY, retry_after="2"))
    send(stopped, "first")
    expect(stopped.get_by_role("alert")).to_contain_text("Trying again in 2 seconds.")
    puppet.answer("To the second.")
    ask(stopped, "second")
    stopped.clock.run_for(5 * SECOND)
    expect(stopped.locator(".turn")).to_have_count(2)
    assert [request.messages[-1]["content"] for request in puppet.requests] == ["first", "second"]
    # Nothing goes on saying that it will be tried again.
    expect(stopped.get_by_role("alert")).to_contain_text("asked too much at once. Your message is kept.")
