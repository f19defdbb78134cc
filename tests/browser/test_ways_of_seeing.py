"""The pages as people set their screens: zoom, colours of their own, less motion. And axe on states of the chat."""

import pytest
from playwright.sync_api import Page, expect

from memories.errors import UpstreamTimeout
from memories.messaging.outbox import notify
from memories.models import Notification
from memories.services import book_get_or_create
from tests.browser.asking import ask, send
from tests.browser.axe import findings_light_and_dark
from tests.browser.conftest import NewVisitor, in_a_worker, owner_of
from tests.browser.test_reviews_page import saved_review, waiting_review
from tests.browser.told_model import ToldModel
from tests.factories import memory_make

pytestmark = pytest.mark.browser

ZOOMED = {"width": 720, "height": 450}  # what is left of 1440 by 900 at 200 %
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True}
PATHS = ("/", "/memories/", "/reviews/", "/account/")
SIDEWAYS = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
# Anything that moves for longer than a blink.
MOVING = """() => document.getAnimations()
  .filter((animation) => animation.effect.getComputedTiming().activeDuration > 20)
  .map((animation) => animation.animationName ?? animation.transitionProperty)"""


def review_saved() -> None:
    owner = owner_of("alice")
    review = saved_review(book_get_or_create(owner.pk, "main"), "Nightly", "Keeps dumps for 14 days.", "Has a NAS.")
    told = {"kind": Notification.Kind.REVIEW_SAVED, "text": "Saved 2 memories from your last conversation."}
    in_a_worker(lambda: notify(owner_id=owner.pk, review_id=review.pk, **told))


def height(page: Page, selector: str) -> float:
    box = page.locator(selector).bounding_box()
    return box["height"] if box else 0


@pytest.mark.parametrize("width", [720, 360])  # 200 and 400 %
def test_zoomed_in_no_page_scrolls_sideways(visitor: NewVisitor, server: object, width: int) -> None:
    memory_make(owner_of("alice"), "A-word-that-is-longer-than-most-lines-are-and-has-nowhere-to-break-" * 3)
    waiting_review(book_get_or_create(owner_of("alice").pk, "main"))
    zoomed = visitor("alice", viewport={"width": width, "height": width * 5 // 8})
    for path in PATHS:
        page = zoomed.open(path)
        assert page.evaluate(SIDEWAYS) == 0, path


def test_zoomed_in_a_notice_leaves_room_for_the_conversation(visitor: NewVisitor, told: ToldModel) -> None:
    page = visitor("alice", viewport=ZOOMED).open("/")
    told.answer("There you are.")
    ask(page, "hello")
    before = height(page, "#log")
    assert before > 100
    review_saved()
    expect(page.locator(".toast li")).to_have_count(2)
    assert height(page, "#log") == before
    expect(page.get_by_role("button", name="Send message")).to_be_in_viewport(ratio=1)
    expect(page.locator(".toast").get_by_role("button", name="Undo")).to_be_in_viewport(ratio=1)


def test_with_colours_of_ones_own_every_control_keeps_an_edge(visitor: NewVisitor) -> None:
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


def test_with_less_motion_nothing_moves(visitor: NewVisitor, told: ToldModel) -> None:
    page = visitor("alice", reduced_motion="reduce").open("/")
    told.say("Well")
    send(page, "hello")
    expect(page.locator(".caret")).to_be_attached()
    review_saved()
    expect(page.locator(".toast li")).to_have_count(2)
    assert page.evaluate(MOVING) == []
    told.end()


def test_motion_is_there_for_those_who_did_not_ask_for_less(visitor: NewVisitor, told: ToldModel) -> None:
    page = visitor("alice").open("/")
    told.say("Well")
    send(page, "hello")
    expect(page.locator(".caret")).to_be_attached()
    assert "breathe" in page.evaluate(MOVING)
    told.end()


@pytest.mark.parametrize("options", [{}, PHONE, {"viewport": ZOOMED}], ids=["wide", "phone", "zoomed"])
def test_axe_finds_nothing_serious_in_the_states_of_the_chat(
    visitor: NewVisitor, told: ToldModel, options: dict[str, object]
) -> None:
    alice = visitor("alice", **options)
    page = alice.open("/")
    found = {"first page": findings_light_and_dark(page)}
    told.say("Here it is:\n\n```sh\nls | wc -l\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n")
    send(page, "hello")
    expect(page.locator("pre")).to_be_visible()
    found["streaming"] = findings_light_and_dark(page)
    told.end()
    expect(page.get_by_role("button", name="Copy answer")).to_be_visible()
    review_saved()
    expect(page.locator(".toast li")).to_have_count(2)
    found["notice"] = findings_light_and_dark(page)
    page.get_by_label("Message to assistant").fill("/")
    expect(page.get_by_role("listbox", name="Commands")).to_be_visible()
    found["commands"] = findings_light_and_dark(page)
    page.get_by_label("Message to assistant").fill("")
    told.fail(UpstreamTimeout("slow"))
    send(page, "again")
    expect(page.get_by_role("alert")).to_be_visible()
    found["failed"] = findings_light_and_dark(page)
    page.keyboard.press("Control+/")
    found["shortcuts"] = findings_light_and_dark(page)
    temporary = alice.open("/new/?temporary=1")
    found["temporary"] = findings_light_and_dark(temporary)
    assert {state: findings for state, findings in found.items() if findings} == {}
