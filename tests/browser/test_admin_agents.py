"""An agent's admin page in a real browser: trying the agent without leaving the form."""

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect

from gateway.models import Agent, Session
from memories.errors import UpstreamError
from tests.browser.conftest import Visitor
from tests.browser.puppet_model import PuppetModel

pytestmark = pytest.mark.browser


@pytest.fixture
def page(root: Visitor) -> Page:
    return root.open(reverse("admin:gateway_agent_change", args=[Agent.objects.get().pk]))


def test_trying_an_agent_keeps_its_unsaved_form(page: Page, puppet: PuppetModel) -> None:
    page.get_by_label("Instructions").fill("Not saved yet.")
    page.get_by_label("Message").fill("How are you?")
    ask = page.get_by_role("button", name="Ask")
    ask.click()
    expect(ask).to_be_disabled()
    expect(page.get_by_text("Waiting for the answer…")).to_be_visible()
    puppet.answer("Quite well.")  # fails if the server does not run the model in its own loop
    expect(page.locator("#trial-result")).to_contain_text("Quite well.")
    expect(ask).to_be_enabled()
    expect(page.get_by_label("Instructions")).to_have_value("Not saved yet.")
    assert "Not saved yet." not in str(puppet.requests[0].messages)
    assert not Session.objects.exists()
    ask.click()
    puppet.fail(UpstreamError("The model server answered with an error (500)."))
    expect(page.get_by_role("alert")).to_contain_text("The model server answered with an error (500).")
