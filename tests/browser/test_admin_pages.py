"""Every page of the admin in a real browser: axe finds nothing serious, light and dark."""

import re

import pytest
from playwright.sync_api import expect

from tests.admin_pages import add_of, list_of, page_of, rows_make
from tests.browser.axe import NAVIGATION, contrast_findings_in_the_dark, serious_findings
from tests.browser.conftest import NewVisitor
from tests.factories import owner_make

pytestmark = pytest.mark.browser


@pytest.fixture
def addresses(server: object) -> list[str]:
    """The first page, each list, each kind of row's page, and each form for a new row."""
    rows = rows_make()
    adds = ["auth.group", "auth.user", "gateway.agent", "gateway.apikey", "memories.memory"]
    return [
        "/admin/",
        *(list_of(name) for name in rows),
        *(page_of(name, row) for name, row in rows.items()),
        *(add_of(name) for name in adds),
    ]


def test_axe_finds_nothing_serious_light_and_dark(visitor: NewVisitor, addresses: list[str]) -> None:
    owner_make("root", is_staff=True, is_superuser=True)
    page = visitor("root").open("/admin/")
    found = []
    for address in addresses:
        answer = page.goto(page.url.split("/admin/")[0] + address)
        assert answer is not None
        assert answer.status == 200, address
        page.wait_for_function(
            "() => ![...document.querySelectorAll('select.unfold-admin-autocomplete, "
            "select.admin-autocomplete')].some((select) => !select.matches('.select2-hidden-accessible'))"
        )
        without = "" if address == addresses[0] else NAVIGATION
        findings = [
            *serious_findings(page, without=without),
            *contrast_findings_in_the_dark(page, without=without),
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
