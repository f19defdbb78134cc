"""Session tags in the list and above a conversation: keyboard, narrow screens, and undo."""

import pytest
from playwright.sync_api import Page, expect

from gateway.models import Agent, Session
from gateway.services import session_create
from gateway.sessions.keeping import session_change
from tests.browser.axe import findings_light_and_dark
from tests.browser.conftest import NewVisitor, Visitor, owner_of
from tests.browser.page_actions import hold_back

pytestmark = pytest.mark.browser
NARROW = {"viewport": {"width": 320, "height": 640}}


def session_make(title: str, *tags: str) -> Session:
    session = session_create(
        owner_of("alice"), Agent.objects.order_by("name").first() or Agent.objects.get(), title=title
    )
    return session_change(session, tags=tags)


def tags_of(session: Session) -> list[str]:
    session.refresh_from_db()
    return session.tag_list


def row(page: Page, title: str):  # type: ignore[no-untyped-def]
    return page.locator(".session", has_text=title)


def test_a_long_tag_does_not_widen_the_menu_of_tags(alices: Visitor) -> None:
    session_make("The oven", "w" * 40)
    page = alices.open("/new/")
    page.set_viewport_size({"width": 1280, "height": 820})
    menu, head = page.get_by_label("Tag", exact=True).bounding_box(), page.locator(".sessions__head").bounding_box()
    assert menu is not None
    assert head is not None
    assert menu["x"] + menu["width"] <= head["x"] + head["width"] - 8


def test_tags_are_added_with_the_keyboard_used_as_a_filter_and_undone(alices: Visitor) -> None:
    oven, trains = session_make("The oven"), session_make("Trains", "travel")
    page = alices.open("/")
    row(page, "The oven").get_by_role("link").focus()
    page.keyboard.press("Shift+F10")
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("menuitem", name="Tags…")).to_be_focused()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Tags")
    field = dialog.get_by_label("Tags of “The oven”")
    expect(field).to_be_focused()
    page.keyboard.type("Home, repairs")
    dialog.get_by_role("button", name="travel").click()
    expect(field).to_have_value("home, repairs, travel")
    expect(dialog.get_by_role("button", name="travel")).to_have_attribute("aria-pressed", "true")
    field.press("Enter")
    expect(dialog).to_be_hidden()
    expect(row(page, "The oven").locator(".session__tags")).to_have_text("home, repairs, travel")
    expect(row(page, "The oven").get_by_role("link")).to_be_focused()
    assert tags_of(oven) == ["home", "repairs", "travel"]

    page.get_by_label("Tag", exact=True).select_option("home")
    expect(page.locator(".session")).to_have_count(1)
    expect(row(page, "The oven")).to_be_visible()
    page.get_by_label("Search sessions").fill("trains")
    expect(page.locator("#session-list")).to_contain_text("with the tag “home”")
    with page.expect_response("**/fragments/sessions/?q=&**"):
        page.get_by_label("Search sessions").fill("")
    held_back = hold_back(page, "**/fragments/sessions/?tag=travel&**")
    with page.expect_request("**/fragments/sessions/?tag=travel&**"):
        page.get_by_label("Tag", exact=True).select_option("travel")
    expect(page.get_by_label("Tag", exact=True)).to_have_value("travel")
    late = held_back[0].fetch()  # both sessions have the tag yet
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("Undone.")).to_be_visible()
    assert tags_of(oven) == []
    expect(page.locator(".session")).to_have_count(1)
    held_back[0].fulfill(response=late)
    page.wait_for_timeout(200)
    expect(page.locator(".session")).to_have_count(1)
    assert tags_of(trains) == ["travel"]


def test_an_error_is_shown_in_the_dialog(alices: Visitor) -> None:
    session = session_make("The oven")
    page = alices.open(f"/c/{session.pk}/")
    page.get_by_role("button", name="Edit tags").click()
    dialog = page.get_by_role("dialog", name="Tags")
    alices.expect_error("400 (Bad Request)")
    dialog.get_by_label("Tags of").fill(", ".join(f"tag {number}" for number in range(11)))
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_role("alert")).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(page.get_by_role("button", name="Edit tags")).to_be_focused()
    assert tags_of(session) == []


def test_tags_fit_a_narrow_screen_and_pass_axe(visitor: NewVisitor) -> None:
    alices = visitor("alice", **NARROW)
    session = session_make(
        "A conversation with a title that is longer than the screen is wide", "a-tag-of-its-own-length"
    )
    page = alices.open(f"/c/{session.pk}/")
    page.get_by_role("button", name="Edit tags").click()
    dialog = page.get_by_role("dialog", name="Tags")
    expect(dialog).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    box = dialog.bounding_box()
    assert box is not None
    assert (box["x"] >= 0, box["x"] + box["width"] <= 320) == (True, True)
    assert findings_light_and_dark(page) == []
    dialog.get_by_label("Tags of").fill("short")
    dialog.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Tags saved.")).to_be_visible()
    page.get_by_role("button", name="Open sessions").click()
    expect(page.get_by_label("Tag", exact=True)).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    assert findings_light_and_dark(page) == []
