"""The admin's dashboard in a real browser: its charts, in colours that follow the theme."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from playwright.sync_api import Page, expect

from gateway.models import Agent, Run
from memories.models import ScanDay
from tests.browser.axe import dark_contrast_findings, serious_findings
from tests.browser.conftest import LiveServer, NewVisitor, owner_of
from tests.factories import memory_make, session_make

pytestmark = pytest.mark.browser

# The rendered colours of the first chart's lines.
COLOURS = """() => [...document.querySelector('.db-chart').querySelectorAll('polyline')].map(
  (line) => getComputedStyle(line).stroke)"""
LIGHT, DARK = ["rgb(28, 77, 141)", "rgb(154, 35, 32)"], ["rgb(156, 193, 244)", "rgb(244, 165, 156)"]


@pytest.fixture
def busy(server: LiveServer) -> None:
    """Create a day with turns, tokens, writes and refusals, and a turn that hangs."""
    alice = owner_of("alice")
    User.objects.filter(pk=alice.user_id).update(is_staff=True, is_superuser=True)
    session = session_make(alice, Agent.objects.get(name="assistant"), title="Tea")
    for turn, state in enumerate(("completed", "failed", "running")):
        Run.objects.create(
            owner=alice,
            session=session,
            turn=turn,
            state=state,
            request_id="r",
            usage={"prompt_tokens": 1000, "completion_tokens": 234, "total_tokens": 1234},
        )
    Run.objects.filter(state="running").update(started_at=timezone.now() - timedelta(minutes=3))
    memory_make(alice)
    ScanDay.objects.create(day=timezone.now().date(), rule="password", kind="secret", number=2)


def with_charts(page: Page) -> Page:
    """Wait until the charts are drawn."""
    page.wait_for_selector(".db-chart polyline")
    return page


@pytest.mark.usefixtures("busy")
def test_the_charts_are_drawn_under_the_admins_csp_and_show_a_periods_numbers(visitor: NewVisitor) -> None:
    page = with_charts(visitor("alice").open("/admin/"))
    assert page.locator(".db-chart").count() == 4  # without reviews, their chart is replaced by a sentence
    turns = page.get_by_role("region", name="Turns", exact=True)
    expect(turns.get_by_role("listitem")).to_have_text(["Turns 3", "Failed 1"])
    turns.get_by_text("Numbers by day").click()
    expect(turns.get_by_role("row").nth(1).get_by_role("cell")).to_have_text(["3", "1"])
    assert page.evaluate("() => [...document.querySelectorAll('.db-chart__lines')].every((c) => c.clientHeight > 100)")
    expect(page.get_by_role("region", name="Now", exact=True)).to_contain_text("Turn 2 of alice: open")
    page.get_by_role("link", name="Last 30 days").click()
    expect(page.get_by_role("link", name="Last 30 days")).to_have_attribute("aria-current", "page")
    expect(page.get_by_role("heading", name="Tokens by owner, last 30 days")).to_be_visible()
    with_charts(page).get_by_text("Numbers by day: Turns").click()
    expect(page.get_by_role("region", name="Turns", exact=True).get_by_role("row")).to_have_count(31)


@pytest.mark.usefixtures("busy")
def test_the_dashboard_passes_axe_fits_the_window_and_follows_the_theme(visitor: NewVisitor) -> None:
    page = with_charts(visitor("alice", color_scheme="light").open("/admin/"))
    for summary in page.locator("summary").all():
        summary.click()
    scrolls_sideways = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
    for width in (390, 1440):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate(COLOURS) == LIGHT
        assert serious_findings(page) == [], width
        assert not page.evaluate(scrolls_sideways), width
    assert dark_contrast_findings(page) == []
    assert page.evaluate(COLOURS) == DARK
    assert not page.evaluate(scrolls_sideways)
    page.evaluate("document.documentElement.classList.remove('dark')")
    assert page.evaluate(COLOURS) == LIGHT
    page.emulate_media(color_scheme="dark")  # the page follows the system's theme when it is opened
    page.reload()
    assert with_charts(page).evaluate(COLOURS) == DARK


def test_staff_without_permissions_see_no_charts(server: LiveServer, visitor: NewVisitor) -> None:
    User.objects.filter(pk=owner_of("bob").user_id).update(is_staff=True)
    page = visitor("bob").open("/admin/")
    expect(page.locator("h1, h2").first).to_be_attached()
    assert page.locator(".db-chart").count() == 0
