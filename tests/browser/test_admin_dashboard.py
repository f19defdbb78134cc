"""The admin's first page in a real browser: charts that are drawn, in colours that follow the theme."""

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

# The colours of the first chart's lines, as they are drawn now.
COLOURS = """() => [...document.querySelector('.db-chart').querySelectorAll('polyline')].map(
  (line) => getComputedStyle(line).stroke)"""
LIGHT, DARK = ["rgb(28, 77, 141)", "rgb(154, 35, 32)"], ["rgb(156, 193, 244)", "rgb(244, 165, 156)"]


@pytest.fixture
def busy(server: LiveServer) -> None:
    """A day with turns, tokens, writes and refusals, and one turn that hangs."""
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


def ready(page: Page) -> Page:
    """Once the charts are drawn."""
    page.wait_for_selector(".db-chart polyline")
    return page


@pytest.mark.usefixtures("busy")
def test_the_charts_are_drawn_under_the_admins_policy_and_tell_the_numbers_of_a_period(visitor: NewVisitor) -> None:
    page = ready(visitor("alice").open("/admin/"))
    assert page.locator(".db-chart").count() == 4  # no review, so its chart is a sentence
    turns = page.get_by_role("region", name="Turns", exact=True)
    expect(turns.get_by_role("listitem")).to_have_text(["Turns 3", "Failed 1"])
    turns.get_by_text("Numbers by day").click()
    expect(turns.get_by_role("row").nth(1).get_by_role("cell")).to_have_text(["3", "1"])
    assert page.evaluate("() => [...document.querySelectorAll('.db-chart__lines')].every((c) => c.clientHeight > 100)")
    expect(page.get_by_role("region", name="Now", exact=True)).to_contain_text("Turn 2 of alice: open")
    page.get_by_role("link", name="Last 30 days").click()
    expect(page.get_by_role("link", name="Last 30 days")).to_have_attribute("aria-current", "page")
    expect(page.get_by_role("heading", name="Tokens by owner, last 30 days")).to_be_visible()
    ready(page).get_by_text("Numbers by day: Turns").click()
    expect(page.get_by_role("region", name="Turns", exact=True).get_by_role("row")).to_have_count(31)


@pytest.mark.usefixtures("busy")
def test_axe_finds_nothing_serious_nothing_goes_sideways_and_the_lines_follow_the_theme(visitor: NewVisitor) -> None:
    page = ready(visitor("alice", color_scheme="light").open("/admin/"))
    for shut in page.locator("summary").all():
        shut.click()
    sideways = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
    for width in (390, 1440):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate(COLOURS) == LIGHT
        assert serious_findings(page) == [], width
        assert not page.evaluate(sideways), width
    assert dark_contrast_findings(page) == []
    assert page.evaluate(COLOURS) == DARK
    assert not page.evaluate(sideways)
    page.evaluate("document.documentElement.classList.remove('dark')")
    assert page.evaluate(COLOURS) == LIGHT
    page.emulate_media(color_scheme="dark")  # which the page follows when it is opened
    page.reload()
    assert ready(page).evaluate(COLOURS) == DARK


def test_somebody_without_runs_sees_pages_and_no_numbers(server: LiveServer, visitor: NewVisitor) -> None:
    User.objects.filter(pk=owner_of("bob").user_id).update(is_staff=True)
    page = visitor("bob").open("/admin/")
    expect(page.locator("h1, h2").first).to_be_attached()
    assert page.locator(".db-chart").count() == 0
