"""The memories page in a real browser: how many memories fit, bulk actions, deleted memories."""

import re
from collections.abc import Sequence
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from memories.models import Memory, Owner
from memories.services import book_limits_set
from tests.browser.axe import findings_light_and_dark
from tests.browser.conftest import NewVisitor, Visitor, owner_of, run_in_thread
from tests.browser.page_actions import open_memories
from tests.factories import memory_make
from tests.unsliced import book_clear

pytestmark = pytest.mark.browser

TEXTS = (
    "Likes short answers without preamble.",
    "Works as a site reliability engineer at a regional hospital, on call every third week.",
    "Keeps database dumps for 14 days.",
    "Uses PostgreSQL 15 on Debian; upgrades are planned for the spring maintenance window, never in December.",
    "Has a dog called Pip.",
    "Prefers metric units.",
)
WHOLE_ROWS = """() => [...document.querySelectorAll(".mem")].filter((row) => {
  const { top, bottom } = row.getBoundingClientRect();
  return top >= 0 && bottom <= innerHeight;
}).length"""

# Parts of rows that can be seen and clicked although they are at the height of the bar.
BEHIND_THE_BAR = """() => {
  const bar = document.querySelector(".tools").getBoundingClientRect();
  return [...document.querySelectorAll(".mem :is(.pick, .mem__about, .mem__text, .mark)")].filter((part) => {
    const { left, width, top, height } = part.getBoundingClientRect();
    const y = top + height / 2;
    return y > bar.top && y < bar.bottom && part.contains(document.elementFromPoint(left + Math.min(width, 20) / 2, y));
  }).map((part) => part.className);
}"""

DETAILS_SHOWN = """(numbers) => {
  const used = [...document.querySelectorAll(".mem__meta > :nth-child(3)")];
  const shown = used.filter((words) => getComputedStyle(words).opacity === "1");
  return shown.map((words) => Number(words.closest("[data-memory]").dataset.memory)).join() === numbers.join();
}"""


def fill(owner: Owner, number: int, texts: Sequence[str] = TEXTS) -> list[Memory]:
    book_limits_set({"main": (0, 0)})
    memories = []
    for index in range(number):
        text = f"{texts[index % len(texts)]} ({index + 1})"
        memories.append(memory_make(owner, text, category=("work", "taste")[index % 2], pinned=index % 5 == 0))
    return memories


def row(page: Page, number: int) -> Locator:
    return page.locator(f"#memory-{number}")


def box(page: Page, number: int) -> Locator:
    return row(page, number).locator("[data-pick]")


def is_visible(locator: Locator) -> bool:
    return float(locator.evaluate("element => getComputedStyle(element).opacity")) > 0


def test_twelve_memories_fit_on_the_screen(alices: Visitor) -> None:
    fill(owner_of("alice"), 40)
    page = open_memories(alices)
    assert page.evaluate(WHOLE_ROWS) >= 12
    page.mouse.wheel(0, 600)
    page.wait_for_function("() => scrollY > 500")
    expect(page.get_by_role("searchbox", name="Search memories")).to_be_in_viewport(ratio=1)
    expect(page.get_by_text("Pinned", exact=True).first).to_be_in_viewport()


@pytest.mark.parametrize("width", [1000, 1280, 1440])
def test_the_sticky_bar_covers_the_rows_behind_it_over_their_full_width(alices: Visitor, width: int) -> None:
    fill(owner_of("alice"), 30)
    page = open_memories(alices)
    page.set_viewport_size({"width": width, "height": 720})
    box(page, 30).check()
    page.mouse.wheel(0, 600)
    page.wait_for_function("() => scrollY > 500")
    assert page.evaluate(BEHIND_THE_BAR) == []
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0


def test_buttons_and_details_are_hidden_until_a_row_is_hovered_or_focused(alices: Visitor, visitor: NewVisitor) -> None:
    fill(owner_of("alice"), 3)
    page = open_memories(alices)
    acts, details = row(page, 1).locator(".mem__acts"), row(page, 1).get_by_text("Not recalled yet")
    assert not is_visible(acts)
    assert not is_visible(details)
    assert is_visible(row(page, 1).get_by_text("You · work"))
    row(page, 1).hover()
    page.wait_for_function("() => getComputedStyle(document.querySelector('#memory-1 .mem__acts')).opacity === '1'")
    page.mouse.move(5, 5)
    page.wait_for_function("() => getComputedStyle(document.querySelector('#memory-1 .mem__acts')).opacity === '0'")
    row(page, 1).get_by_role("button", name="Pin").focus()
    page.wait_for_function("() => getComputedStyle(document.querySelector('#memory-1 .mem__acts')).opacity === '1'")
    phone = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
    touch_page = open_memories(visitor("alice", **phone))
    assert is_visible(row(touch_page, 1).locator(".mem__acts"))
    assert is_visible(row(touch_page, 1).get_by_text("Not recalled yet"))


def test_of_a_hovered_and_a_focused_row_one_shows_its_details(alices: Visitor) -> None:
    fill(owner_of("alice"), 3)
    page = open_memories(alices)

    def expect_details(number: int) -> None:
        page.wait_for_function(DETAILS_SHOWN, arg=[number])

    row(page, 3).get_by_role("button", name="Edit").focus()
    expect_details(3)
    row(page, 2).hover()
    expect_details(2)
    assert is_visible(row(page, 3).locator(".mem__acts"))
    row(page, 3).locator(".mem__meta").evaluate(
        "details => details.insertAdjacentHTML('beforeend', '<a href=/>From</a>')"
    )
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Shift+Tab")
    expect(row(page, 3).get_by_role("link", name="From")).to_be_focused()
    expect_details(3)


def test_with_nothing_to_filter_there_are_no_filters(alices: Visitor) -> None:
    page = open_memories(alices)
    expect(page.get_by_role("search")).to_be_hidden()
    memory_make(owner_of("alice"), "Likes tea.")
    expect(page.get_by_role("search")).to_be_visible()


def test_a_range_is_selected_with_shift_and_deleted_with_one_undo(alices: Visitor) -> None:
    fill(owner_of("alice"), 8)
    page = open_memories(alices)
    box(page, 7).click()
    box(page, 4).click(modifiers=["Shift"])
    expect(page.get_by_text("4 selected")).to_be_visible()
    expect(page.get_by_role("group", name="Filters")).to_be_hidden()
    box(page, 5).click()
    expect(page.get_by_text("3 selected")).to_be_visible()
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_text("3 memories deleted. Find them under Deleted.")).to_be_visible()
    expect(page.locator(".mem")).to_have_count(5)
    expect(page.get_by_text("5 memories, newest first")).to_be_visible()
    undo = page.locator("[data-bulk-undo]")
    expect(undo).to_be_focused()
    undo.click()
    expect(page.get_by_text("Undone for 3 memories.")).to_be_visible()
    expect(page.locator(".mem")).to_have_count(8)
    assert not Memory.objects.filter(deleted_at__isnull=False).exists()


def test_all_shown_memories_are_selected_with_the_keyboard_and_changed(alices: Visitor) -> None:
    fill(owner_of("alice"), 55)
    page = open_memories(alices)
    page.get_by_label("Select all 50 shown").focus()
    page.keyboard.press("Space")
    expect(page.get_by_text("50 selected")).to_be_visible()
    page.get_by_label("New category").fill("reviewed")
    page.keyboard.press("Enter")
    expect(page.get_by_text("50 memories moved to “reviewed”.")).to_be_visible()
    expect(row(page, 55)).to_contain_text("You · reviewed")
    box(page, 55).focus()
    page.keyboard.press("Space")
    page.keyboard.press("Tab")
    box(page, 53).focus()
    page.keyboard.press("Shift+Space")
    expect(page.get_by_text("3 selected")).to_be_visible()
    page.get_by_role("button", name="Pin", exact=True).click()
    expect(page.get_by_text("3 memories pinned.")).to_be_visible()
    assert Memory.objects.filter(number__in=[53, 54, 55], pinned=True).count() == 3
    box(page, 55).focus()
    page.keyboard.press("Space")
    page.keyboard.press("Escape")
    expect(page.locator("[data-bulk]")).to_be_hidden()
    assert Memory.objects.filter(category="reviewed").count() == 50


def test_deleted_memories_are_found_and_restored(alices: Visitor) -> None:
    alice = owner_of("alice")
    fill(alice, 4)
    page = open_memories(alices)
    for number in (1, 2, 3):
        row(page, number).get_by_role("button", name="Delete").click()
        expect(row(page, number).get_by_role("button", name="Restore")).to_be_focused()
    page.get_by_text("Deleted", exact=True).click()
    expect(
        page.get_by_text(re.compile("3 deleted, last deleted first. Each can be restored for 30 days"))
    ).to_be_visible()
    expect(page.locator(".mem")).to_have_count(3)
    expect(row(page, 3)).to_contain_text("Deleted by you today, kept until")
    page.reload()
    row(page, 3).get_by_role("button", name="Restore").click()
    expect(page.locator(".mem s")).to_have_count(2)
    page.get_by_label("Select all").check()
    page.locator("[data-bulk]").get_by_role("button", name="Restore").click()
    expect(page.get_by_text("Nothing deleted.")).to_be_visible()
    page.get_by_role("link", name="Clear filters").click()
    expect(page.locator(".mem")).to_have_count(4)


def test_all_live_memories_are_selected_beside_a_deleted_one_that_can_be_restored(alices: Visitor) -> None:
    fill(owner_of("alice"), 4)
    page = open_memories(alices)
    bulk = page.locator("[data-bulk]")
    row(page, 2).get_by_role("button", name="Delete").click()
    expect(row(page, 2).get_by_role("button", name="Restore")).to_be_focused()
    page.get_by_label("Select all").check()
    expect(bulk.get_by_text("3 selected")).to_be_visible()
    expect(page.get_by_label("Select all")).to_be_checked()
    expect(box(page, 2)).not_to_be_checked()
    expect(bulk.get_by_role("button", name="Restore")).to_be_hidden()
    row(page, 3).get_by_role("button", name="Delete").click()
    expect(bulk.get_by_text("2 selected")).to_be_visible()
    box(page, 2).check()
    expect(bulk.get_by_text("1 selected")).to_be_visible()
    expect(bulk.get_by_role("button", name="Restore")).to_be_visible()
    box(page, 4).check()
    box(page, 1).click(modifiers=["Shift"])
    expect(bulk.get_by_text("2 selected")).to_be_visible()
    bulk.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_text("2 memories deleted.")).to_be_visible()


def test_a_change_elsewhere_while_another_list_is_loading(alices: Visitor) -> None:
    alice = owner_of("alice")
    fill(alice, 3)
    page = open_memories(alices)
    row(page, 1).get_by_role("button", name="Delete").click()
    expect(row(page, 1).get_by_role("button", name="Restore")).to_be_focused()
    requests: list[Route] = []

    def delay_first_request(route: Route) -> None:
        requests.append(route)
        if len(requests) > 1:
            route.continue_()

    page.route(re.compile(r"/fragments/memories/\?.*deleted"), delay_first_request)
    with page.expect_response(re.compile(r"/fragments/memories/\?.*deleted")):
        page.get_by_text("Deleted", exact=True).click()
        run_in_thread(lambda: memory_make(alice, "Plays the cello."))
    requests[0].continue_()
    expect(page.locator(".mem")).to_have_count(1)


def test_a_clear_can_be_undone_from_its_banner(alices: Visitor) -> None:
    alice = owner_of("alice")
    book = fill(alice, 3)[0].book
    run_in_thread(lambda: book_clear(book, actor=f"user:{alice.user_id}"))
    page = open_memories(alices)
    expect(page.get_by_text("3 memories were deleted by /memory clear on")).to_be_visible()
    page.locator("[data-undo-clear]").click()
    expect(page.locator(".mem:not([data-gone])")).to_have_count(3)
    expect(page.locator("[data-undo-clear]")).to_have_count(0)
    expect(page.get_by_text("Undone: 3 memories are back")).to_be_visible()


def test_a_link_to_a_memory_finds_it_on_any_page(alices: Visitor) -> None:
    fill(owner_of("alice"), 60)
    page = open_memories(alices, "/memories/#memory-2")
    expect(row(page, 2)).to_be_in_viewport()
    expect(page.get_by_role("searchbox")).to_have_value("#2")
    page.get_by_role("link", name="Clear search").click()
    expect(page.locator(".mem")).to_have_count(50)
    page.get_by_role("searchbox").fill("#3")
    expect(page.get_by_text("Memory #3.")).to_be_visible()
    expect(page.locator(".mem")).to_have_count(1)
    page.goto(page.url.split("?")[0] + "?number=4")
    expect(row(page, 4)).to_be_visible()


def test_more_memories_are_loaded_and_the_sort_order_is_kept(alices: Visitor) -> None:
    fill(owner_of("alice"), 60)
    page = open_memories(alices)
    expect(page.locator(".mem")).to_have_count(50)
    page.get_by_role("link", name="Show more memories").click()
    expect(page.locator(".mem")).to_have_count(60)
    expect(page.get_by_role("link", name="Show more memories")).to_have_count(0)
    expect(box(page, 10)).to_be_focused()
    page.get_by_label("Sort").select_option("Oldest first")
    expect(page.locator(".mem").first).to_have_attribute("id", "memory-1")
    page.get_by_role("link", name="Show more memories").click()
    expect(page.locator(".mem")).to_have_count(60)
    expect(page.locator(".mem").last).to_have_attribute("id", "memory-60")
    page.get_by_role("searchbox").fill("dumps database")
    expect(page.get_by_text(re.compile("match “dumps database”, best first"))).to_be_visible()
    expect(page.get_by_label("Sort")).to_be_disabled()
    expect(page.locator(".mem").first).to_contain_text("You · ")


@pytest.mark.parametrize(
    ("options", "widths"),
    [({}, (1440,)), ({"has_touch": True, "is_mobile": True}, (390, 320))],
    ids=["wide", "phones"],
)
def test_axe_finds_nothing_serious_while_many_are_selected(
    visitor: NewVisitor, options: dict[str, Any], widths: tuple[int, ...]
) -> None:
    fill(owner_of("alice"), 4)
    page = open_memories(visitor("alice", **options))
    found: dict[str, list[str]] = {}

    def check(state: str) -> None:
        for width in widths:
            page.set_viewport_size({"width": width, "height": 800})
            found[f"{state} {width}"] = findings_light_and_dark(page)
            assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0

    row(page, 4).hover()
    check("hovered")
    box(page, 3).check()
    check("selected")
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_text("1 memory deleted.")).to_be_visible()
    page.locator("[data-bulk-done] [data-words]").evaluate("words => words.append(' 1 was left unchanged.')")
    check("done")
    page.goto(page.url + "?deleted=1")
    check("deleted")
    assert {state: findings for state, findings in found.items() if findings} == {}
