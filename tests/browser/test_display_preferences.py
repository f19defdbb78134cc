"""Zoom, forced colours and reduced motion; and axe in all states of the chat."""

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from memories.errors import UpstreamTimeout
from memories.messaging.outbox import notify
from memories.models import Notification
from memories.services import book_get_or_create
from tests.browser.axe import findings_light_and_dark
from tests.browser.conftest import NewVisitor, owner_of, run_in_thread
from tests.browser.conversations import CODE, conversation_make
from tests.browser.page_actions import ask, send
from tests.browser.puppet_model import PuppetModel
from tests.browser.test_reviews_page import saved_review
from tests.factories import memory_make, owner_make

pytestmark = pytest.mark.browser

ZOOMED: ViewportSize = {"width": 720, "height": 450}  # 1440 by 900 at 200 %
SIZES: list[ViewportSize] = [{"width": 1440, "height": 900}, ZOOMED, {"width": 390, "height": 844}]
# Animations that take more than 20 ms.
MOVING = """() => document.getAnimations()
  .filter((animation) => animation.effect.getComputedTiming().activeDuration > 20)
  .map((animation) => animation.animationName ?? animation.transitionProperty)"""


def send_review_notice() -> None:
    owner = owner_of("alice")
    review = saved_review(book_get_or_create(owner.pk, "main"), "Nightly", "Keeps dumps for 14 days.", "Has a NAS.")
    notice = {"kind": Notification.Kind.REVIEW_SAVED, "text": "Saved 2 memories from your last conversation."}
    run_in_thread(lambda: notify(owner_id=owner.pk, review_id=review.pk, **notice))


def height(page: Page, selector: str) -> float:
    box = page.locator(selector).bounding_box()
    return box["height"] if box else 0


def test_when_zoomed_in_a_notice_leaves_room_for_the_conversation(visitor: NewVisitor, puppet: PuppetModel) -> None:
    page = visitor("alice", viewport=ZOOMED).open("/")
    puppet.answer("There you are.")
    ask(page, "hello")
    expect(page.get_by_role("heading", name="hello")).to_be_visible()  # it takes up space once the session has a title
    before = height(page, "#log")
    assert before > 100
    send_review_notice()
    expect(page.locator(".toast li")).to_have_count(2)
    assert height(page, "#log") == before
    expect(page.get_by_role("button", name="Send message")).to_be_in_viewport(ratio=1)
    expect(page.locator(".toast").get_by_role("button", name="Undo")).to_be_in_viewport(ratio=1)


def test_in_forced_colours_every_control_keeps_a_border(visitor: NewVisitor) -> None:
    page = visitor("alice", forced_colors="active").open("/")
    ask(page, "Remember that the oven runs at 230 degrees.")
    edge = "(element) => getComputedStyle(element).borderTopStyle + ' ' + getComputedStyle(element).borderTopWidth"
    for control in ("#send", "#temporary", ".composer__box", "[data-new-session]"):
        assert page.locator(control).evaluate(edge) == "solid 1px", control
    tabs = page.locator(".tabs a")
    line = "(element) => getComputedStyle(element).borderBottomColor"
    assert tabs.nth(0).evaluate(line) != tabs.nth(1).evaluate(line)
    checked = "(element) => getComputedStyle(element).backgroundColor"
    switch = page.get_by_role("switch", name="Temporary")
    off = switch.evaluate(checked)
    page.goto(page.url.split("/c/")[0] + "/new/?temporary=1")
    assert page.get_by_role("switch", name="Temporary").evaluate(checked) != off


def test_in_forced_colours_a_checked_box_of_the_admin_differs_from_an_unchecked_one(visitor: NewVisitor) -> None:
    owner = owner_make("root", is_staff=True, is_superuser=True)
    memory_make(owner, "Likes tea.")
    page = visitor("root", forced_colors="active").open("/admin/memories/memory/")
    box = page.locator("input.action-select")
    unchecked = box.screenshot()
    box.check()
    page.mouse.move(1, 1)
    box.blur()
    assert box.screenshot() != unchecked
    for mark in box.evaluate_all("boxes => boxes.map(box => getComputedStyle(box, '::after').content)"):
        assert mark == "none"


def test_the_whole_conversation_is_printed_on_white(visitor: NewVisitor) -> None:
    turns = [(f"question {number}\n" + "line\n" * 40, CODE.format(number)) for number in range(6)]
    session = conversation_make(owner_of("alice"), *turns)
    page = visitor("alice", viewport={"width": 800, "height": 600}).open(f"/c/{session.pk}/")
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    page.emulate_media(media="print")
    log = page.locator("#log")
    assert log.evaluate("log => log.scrollHeight <= log.clientHeight")
    assert page.evaluate("document.documentElement.scrollHeight > 6 * 40 * 16")
    first = page.locator(".turn .prose").first
    assert first.evaluate("text => text.scrollHeight <= text.clientHeight")  # unfolded
    assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "light"
    for control in ("Message to assistant", "Copy answer", "Search sessions"):
        expect(page.get_by_label(control).first).to_be_hidden()
    page.set_viewport_size({"width": 1047, "height": 700})  # landscape
    line = page.locator("#ledger").evaluate("ledger => getComputedStyle(ledger).backgroundImage")
    assert line == "none", "the red line would run through the text"


def test_memories_are_printed_without_their_filters(visitor: NewVisitor) -> None:
    memory_make(owner_of("alice"), "Alice keeps bees.")
    page = visitor("alice").open("/memories/")
    page.emulate_media(media="print")
    expect(page.get_by_text("Alice keeps bees.")).to_be_visible()
    expect(page.get_by_label("Search memories")).to_be_hidden()


def test_a_printed_conversation_says_how_many_turns_are_missing(visitor: NewVisitor) -> None:
    session = conversation_make(owner_of("alice"), *[("question", "Answer.")] * 30)
    page = visitor("alice").open(f"/c/{session.pk}/")
    missing = page.get_by_text("10 earlier turns not shown here, so not printed")
    expect(missing).to_be_hidden()
    page.emulate_media(media="print")
    expect(missing).to_be_visible()


def test_nothing_moves_with_reduced_motion(visitor: NewVisitor, puppet: PuppetModel) -> None:
    page = visitor("alice").open("/")
    puppet.say("Well")
    send(page, "hello")
    expect(page.locator(".caret")).to_be_attached()
    send_review_notice()
    expect(page.locator(".toast li")).to_have_count(2)
    assert page.evaluate(MOVING) == []
    puppet.end()


def test_there_is_motion_unless_it_is_reduced(visitor: NewVisitor, puppet: PuppetModel) -> None:
    page = visitor("alice", reduced_motion="no-preference").open("/")
    puppet.say("Well")
    send(page, "hello")
    expect(page.locator(".caret")).to_be_attached()
    assert "breathe" in page.evaluate(MOVING)
    puppet.end()


def test_axe_finds_nothing_serious_in_any_state_of_the_chat(visitor: NewVisitor, puppet: PuppetModel) -> None:
    alice = visitor("alice", has_touch=True)
    found: dict[str, list[str]] = {}

    def check(page: Page, state: str) -> None:
        for size in SIZES:
            page.set_viewport_size(size)
            found[f"{state} {size['width']}"] = findings_light_and_dark(page)

    page = alice.open("/")
    check(page, "first page")
    puppet.say("Here it is:\n\n```sh\nls | wc -l\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n")
    send(page, "hello")
    expect(page.locator("pre")).to_be_visible()
    check(page, "streaming")
    puppet.end()
    expect(page.get_by_role("button", name="Copy answer")).to_be_visible()
    send_review_notice()
    expect(page.locator(".toast li")).to_have_count(2)
    check(page, "notice")
    page.get_by_label("Message to assistant").fill("/")
    expect(page.get_by_role("listbox", name="Commands")).to_be_visible()
    check(page, "commands")
    page.get_by_label("Message to assistant").fill("")
    puppet.fail(UpstreamTimeout("slow"))
    send(page, "again")
    expect(page.get_by_role("alert")).to_be_visible()
    check(page, "failed")
    page.keyboard.press("Control+/")
    check(page, "shortcuts")
    check(alice.open("/new/?temporary=1"), "temporary")
    assert {state: findings for state, findings in found.items() if findings} == {}
