"""Every admin page in a real browser: axe finds nothing serious in light and dark mode."""

import re

import pytest
from playwright.sync_api import expect

from tests.admin_pages import add_of, list_of, page_of, rows_make
from tests.browser.axe import NAVIGATION, dark_contrast_findings, serious_findings
from tests.browser.conftest import NewVisitor, Visitor
from tests.factories import owner_make

pytestmark = pytest.mark.browser
# Checked with more content in test_admin_turn.py and test_admin_consolidation.py. The dashboard is in
# test_admin_dashboard.py.
LISTS_CHECKED_ELSEWHERE = {
    "gateway.run",
    "gateway.usageday",
    "memories.artifact",
    "memories.changeset",
    "memories.lease",
    "memories.memory",
    "reviews.consolidationrun",
    "reviews.extraction",
}
PAGES_CHECKED_ELSEWHERE = {
    "auth.user",
    "gateway.agent",
    "gateway.run",
    "gateway.session",
    "memories.artifact",
    "memories.book",
    "memories.changeset",
    "memories.memory",
    "reviews.consolidationrun",
}


@pytest.fixture
def addresses(server: object) -> list[str]:
    """Return the addresses of all changelists, change pages and add forms that no other file checks."""
    rows = rows_make()
    adds = ["auth.group", "auth.user", "gateway.agent", "gateway.apikey", "memories.memory"]
    return [
        *(list_of(name) for name in rows if name not in LISTS_CHECKED_ELSEWHERE),
        *(page_of(name, row) for name, row in rows.items() if name not in PAGES_CHECKED_ELSEWHERE),
        *(add_of(name) for name in adds),
    ]


def test_axe_finds_nothing_serious_in_light_and_dark_mode(root: Visitor, addresses: list[str]) -> None:
    page = root.context.new_page()
    found = []
    for address in addresses:
        response = page.goto(root.address + address)
        assert response is not None
        assert response.status == 200, address
        page.wait_for_function(
            "() => ![...document.querySelectorAll('select.unfold-admin-autocomplete, "
            "select.admin-autocomplete')].some((select) => !select.matches('.select2-hidden-accessible'))"
        )
        findings = [
            *serious_findings(page, without=NAVIGATION),
            *dark_contrast_findings(page, without=NAVIGATION),
        ]
        found += [f"{address} {finding}" for finding in findings]
    assert not found, "\n".join(found)


def test_the_filters_can_be_used_with_the_keyboard(root: Visitor, addresses: list[str]) -> None:
    page = root.open("/admin/memories/memory/")
    button = page.get_by_role("button", name="Filters", exact=True)
    expect(button).to_have_attribute("aria-expanded", "false")
    button.focus()
    page.keyboard.press("Enter")
    expect(button).to_have_attribute("aria-expanded", "true")
    expect(page.get_by_role("button", name="Apply Filters")).to_be_visible()
    expect(page.locator(".select2-selection").first).to_have_accessible_name("By state Not deleted")
    assert serious_findings(page) == []
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Apply Filters")).to_be_hidden()


def test_lists_on_a_phone_name_their_columns_as_on_a_wide_screen(visitor: NewVisitor, addresses: list[str]) -> None:
    owner_make("root", is_staff=True, is_superuser=True)
    page = visitor("root", viewport={"width": 390, "height": 800}).open("/admin/memories/memory/")
    cell = page.locator("td[data-label='Owner and book']").first
    transformed = "cell => getComputedStyle(cell, '::before').textTransform"
    assert (cell.get_attribute("data-label"), cell.evaluate(transformed)) == ("Owner and book", "none")
    page.goto(page.url.replace("memories/memory", "auth/user"))
    labels = page.locator("[data-label]").evaluate_all("cells => cells.map((cell) => cell.dataset.label)")
    assert {"Email address", "Last sign-in"} <= set(labels)
    assert all(label[0].isupper() for label in labels)


def test_an_autocomplete_field_has_its_label_as_accessible_name(root: Visitor, addresses: list[str]) -> None:
    page = root.open(add_of("gateway.apikey"))
    choice = page.locator(".select2-selection")
    expect(choice).to_have_accessible_name("Owner*")
    choice.click()
    page.keyboard.type("ali")
    page.get_by_role("option", name="alice").click()
    expect(choice).to_have_accessible_name(re.compile(r"^Owner\* .*alice$"))
