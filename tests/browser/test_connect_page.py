"""Connecting an app in a real browser: from the app to the sign-in, the consent, and back to the app."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from gateway.models import ApiKey
from gateway.oauth.registration import client_register
from tests.browser.axe import findings_wide_and_narrow
from tests.browser.conftest import NewVisitor, Visitor, owner_of
from tests.browser.page_actions import sign_in_with
from tests.callback_listener import CallbackListener, listening
from tests.factories import memory_make
from tests.gateway.oauth_app import App

pytestmark = pytest.mark.browser


@pytest.fixture
def listener() -> Iterator[CallbackListener]:
    with listening() as server:
        yield server


def consent_of(visitor: Visitor, listener: CallbackListener) -> str:
    """Return the consent address that an app on this computer opens."""
    app = App()
    app.redirects = (listener.address,)
    app.client_id = client_register("Notebook", app.redirects).client_id
    visitor.expect_error("/callback")
    return app.address(resource=f"{visitor.address}/mcp")


def test_a_person_signs_in_grants_access_and_is_redirected_to_the_app(
    visitor: NewVisitor, listener: CallbackListener
) -> None:
    memory_make(owner_of("alice"), "Tests with pytest.", book="code")
    stranger = visitor()
    page = stranger.open(consent_of(stranger, listener))
    sign_in_with(page, "alice", "alice knows it")
    expect(page.get_by_role("heading", name="Connect an app")).to_be_visible()
    expect(page.get_by_text("an app on this computer")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert findings_wide_and_narrow(page, 320) == []
    page.get_by_label("Book", exact=True).select_option("code")
    page.get_by_label("Read Search your memories and change nothing.").check()
    page.get_by_role("button", name="Connect").click()
    page.wait_for_url(f"{listener.address}?**")
    callback = listener.callbacks.get(timeout=10)
    assert (callback["state"], callback["iss"], bool(callback["code"])) == ("s1", stranger.address, True)
    key = ApiKey.objects.get()
    assert (key.name, key.books, key.read_only) == ("Notebook", ["code"], True)


def test_a_person_cancels_or_connects_and_disconnects(alices: Visitor, listener: CallbackListener) -> None:
    page = alices.open(consent_of(alices, listener))
    page.get_by_role("button", name="Cancel").click()
    page.wait_for_url(f"{listener.address}?**")
    assert listener.callbacks.get(timeout=10)["error"] == "access_denied"
    page = alices.open(consent_of(alices, listener))
    page.get_by_role("button", name="Connect").click()
    page.wait_for_url(f"{listener.address}?**")
    page = alices.open("/account/")
    expect(page.get_by_text("May read and write the book main")).to_be_visible()
    page.get_by_role("button", name="Disconnect Notebook").click()
    page.get_by_role("dialog").get_by_role("button", name="Disconnect").click()
    expect(page.get_by_text("App disconnected.")).to_be_visible()
    expect(page.get_by_text("No apps yet.")).to_be_visible()
