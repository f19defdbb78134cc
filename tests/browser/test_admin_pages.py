"""Every page of the admin in a real browser: axe finds nothing serious, light and dark."""

import re

import pytest
from playwright.sync_api import expect

from tests.admin_pages import add_of, list_of, page_of, rows_make
from tests.browser.axe import NAVIGATION, dark_contrast_findings, serious_findings
from tests.browser.conftest import NewVisitor
from tests.factories import owner_make

pytestmark = pytest.mark.browser
# Looked at light and dark with more on them: in test_admin_turn.py, test_admin_consolidation.py and, the first page, in
# test_admin_dashboard.py.
LISTS_ELSEWHERE = {
    "gateway.run",
    "gateway.usageday",
    "memories.artifact",
    "memories.changeset",
    "memories.lease",
    "memories.memory",
    "reviews.consolidationrun",
    "reviews.extraction",
}
PAGES_ELSEWHERE = {
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
    """Each list, each kind of row's page, and each form for a new row, without those that are looked at elsewhere."""
    rows = rows_make()
    adds = ["auth.group", "auth.user", "gateway.agent", "gateway.apikey", "memories.memory"]
    return [
        *(list_of(name) for name in rows if name not in LISTS_ELSEWHERE),
        *(page_of(name, row) for name, row in rows.items() if name not in PAGES_ELSEWHERE),
        *(add_of(name) for name in adds),
    ]


def test_axe_finds_nothing_serious_light_and_dark(visitor: NewVisitor, addresses: list[str]) -> None:
    owner_make("root", is_staff=True, is_superuser=True)
    root = visitor("root")
    page = root.context.new_page()
    found = []
    for address in addresses:
        answer = page.goto(root.address + address)
        assert answer is not None
        assert answer.status == 200, address
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


def test_the_filters_are_opened_and_used_from_the_keyboard(visitor: NewVisitor, addresses: list[str]) -> None:
    owner_make("root", is_staff=True, is_superuser=True)
    page = visitor("root").open("/admin/memories/memory/")
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


def test_a_choice_by_typing_is_named_by_its_label(visitor: NewVisitor, addresses: list[str]) -> None:
    owner_make("root", is_staff=True, is_superuser=True)
    page = visitor("root").open(add_of("gateway.apikey"))
    choice = page.locator(".select2-selection")
    expect(choice).to_have_accessible_name("Owner*")
    choice.click()
    page.keyboard.type("ali")
    page.get_by_role("option", name="alice").click()
    expect(choice).to_have_accessible_name(re.compile(r"^Owner\* .*alice$"))
