"""Signing in, in a real browser: single sign-on, invitations, a forgotten password, and the list of logins."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core import mail
from django.urls import reverse
from playwright.sync_api import expect

from gateway.accounts import logins, password_reset
from gateway.accounts.invitations import invitation_create
from gateway.models import Login
from tests.browser.axe import findings_wide_and_narrow, serious_findings
from tests.browser.conftest import NewVisitor, Visitor, owner_of
from tests.browser.page_actions import sign_in_with
from tests.factories import login_make, owner_make
from tests.gateway.test_password_reset import SERVER
from tests.live_server import LiveServer
from tests.openid_server import OpenIDServer
from tests.waiting import eventually

pytestmark = pytest.mark.browser
FITS = "document.documentElement.scrollWidth <= innerWidth"


@pytest.fixture
def provider(settings: Any) -> Iterator[OpenIDServer]:
    server = OpenIDServer()
    settings.OIDC = server.openid_settings()
    yield server
    server.close()


@pytest.fixture
def mailed_link(settings: Any, server: LiveServer, monkeypatch: pytest.MonkeyPatch) -> Callable[[], str]:
    """Configure mail; return a function that returns the link in the newest mail."""
    settings.MAIL = SERVER
    monkeypatch.setattr(password_reset, "enqueue_kept", lambda task, *args: password_reset.password_mail(*args))

    def newest_link() -> str:
        link = re.search(r"http://\S+", mail.outbox[-1].body)
        assert link
        return link[0]

    return newest_link


def invitation_link(server: LiveServer, **options: Any) -> str:
    root = User.objects.create_superuser("root")
    return invitation_create(**{"email": "", "role": "user", "days": 7, **options}, by=root, origin=server.address)[1]


def allow_provider(visitor: Visitor, provider: OpenIDServer) -> Visitor:
    """Allow a visitor's pages to send requests to the provider."""
    visitor.expect_error(f"request to another host: {provider.issuer}")
    return visitor


def test_single_sign_on_returns_to_the_requested_page(
    visitor: NewVisitor, provider: OpenIDServer, server: LiveServer
) -> None:
    page = allow_provider(visitor(), provider).open("/memories/")
    page.get_by_role("link", name="Sign in with Example").click()
    expect(page.get_by_role("heading", name="Memories")).to_be_visible()
    page.goto(f"{server.address}/account/")
    expect(page.get_by_text("Alice Woods · alice.w")).to_be_visible()
    expect(page.get_by_role("heading", name="Password", exact=True)).to_have_count(0)
    expect(page.locator("#logins")).to_contain_text("Chrome on Linux")


def test_the_admin_uses_the_same_sign_in_page(
    visitor: NewVisitor, provider: OpenIDServer, settings: Any, server: LiveServer
) -> None:
    settings.OIDC = provider.openid_settings(roles={"admins": "administrator"})
    provider.person["groups"] = ["admins"]
    page = allow_provider(visitor(), provider).open("/admin/")
    page.get_by_role("link", name="Sign in with Example").click()
    expect(page).to_have_url(f"{server.address}/admin/")


def test_after_a_refusal_by_the_provider_there_is_a_way_back(visitor: NewVisitor, provider: OpenIDServer) -> None:
    provider.authorization_error = "access_denied"
    stranger = allow_provider(visitor(), provider)
    stranger.expect_error("400")
    page = stranger.open("/login/")
    page.get_by_role("link", name="Sign in with Example").click()
    expect(page.get_by_role("heading", name="You are not signed in")).to_be_visible()
    assert serious_findings(page) == []
    page.get_by_role("link", name="Back to sign in").click()
    expect(page.get_by_role("link", name="Sign in with Example")).to_be_visible()


def test_an_invited_person_creates_an_account(visitor: NewVisitor, server: LiveServer) -> None:
    newcomer = visitor()
    newcomer.expect_error("400")
    page = newcomer.open(invitation_link(server).removeprefix(server.address))
    page.get_by_label("User name").fill("dora")
    page.get_by_label("Password", exact=True).fill("short")
    page.get_by_label("Confirm password").fill("short")
    page.get_by_role("button", name="Create account").click()
    expect(page.get_by_text("This password is too short.")).to_be_visible()
    page.get_by_label("Password", exact=True).fill("quite a long one")
    page.get_by_label("Confirm password").fill("quite a long one")
    page.get_by_role("button", name="Create account").click()
    expect(page.get_by_label("Message to assistant")).to_be_visible()


def test_a_forgotten_password_is_reset(visitor: NewVisitor, mailed_link: Callable[[], str]) -> None:
    owner_make("anna", email="anna@example.org")
    page = visitor().open("/login/")
    page.get_by_role("link", name="Forgot your password?").click()
    page.get_by_label("Email address of your account").fill("anna@example.org")
    page.get_by_role("button", name="Email me a link").click()
    expect(page.get_by_role("status")).to_contain_text("If an account has this address")
    page.goto(mailed_link())
    page.get_by_label("New password", exact=True).fill("an entirely new one")
    page.get_by_label("Confirm new password").fill("an entirely new one")
    page.get_by_role("button", name="Change password").click()
    expect(page.get_by_role("status")).to_contain_text("Password changed.")
    sign_in_with(page, "anna", "an entirely new one")
    expect(page.get_by_label("Message to assistant")).to_be_visible()


def test_another_browser_can_be_signed_out(visitor: NewVisitor) -> None:
    elsewhere = visitor("alice", user_agent="Mozilla/5.0 (iPhone; like Mac OS X) Version/18.5 Safari/604.1")
    elsewhere.expect_error("401")
    elsewhere.expect_error("403")  # its socket may reconnect before the page has changed
    logins._recent.clear()  # the fixture set the cookie without a request
    other = elsewhere.open("/memories/")
    expect(other.get_by_role("heading", name="Memories")).to_be_visible()
    # The device is stored shortly after the response.
    eventually(Login.objects.filter(device="Safari on iPhone").exists, within=15, description="the browser's name")
    page = visitor("alice").open("/account/")
    page.get_by_role("button", name="Sign out Safari on iPhone").click()
    expect(page.get_by_text("That browser is signed out.")).to_be_visible()
    expect(page.locator("#logins")).to_contain_text("You are not signed in anywhere else.")
    expect(other.get_by_role("button", name="Sign in")).to_be_visible(timeout=30_000)


def test_signing_out_everywhere_else_asks_for_confirmation(visitor: NewVisitor) -> None:
    login_make(owner_of("alice"))
    page = visitor("alice").open("/account/")
    page.get_by_role("button", name="Sign out everywhere else").click()
    dialog = page.get_by_role("dialog", name="Sign out every other browser?")
    dialog.get_by_role("button", name="Sign out").click()
    expect(page.get_by_text("Every other browser is signed out.")).to_be_visible()
    assert Login.objects.count() == 1


def test_an_unknown_address_has_a_link_back(visitor: NewVisitor) -> None:
    alice = visitor("alice")
    alice.expect_error("404")
    page = alice.open("/nowhere/")
    expect(page.get_by_role("heading", name="There is nothing here.")).to_be_visible()
    assert serious_findings(page) == []
    page.get_by_role("link", name="Go to your newest session").click()
    expect(page.get_by_label("Message to assistant")).to_be_visible()


def test_a_refused_form_has_a_link_back_and_looks_like_the_other_pages(visitor: NewVisitor) -> None:
    stranger = visitor()
    stranger.expect_error("status of 403")
    page = stranger.open("/login/")
    stranger.context.clear_cookies()
    sign_in_with(page, "alice", "wrong")
    expect(page.get_by_role("heading", name="This was not accepted")).to_be_visible()
    assert findings_wide_and_narrow(page, 320) == []
    assert "Daybook Title" in page.evaluate("getComputedStyle(document.querySelector('h1')).fontFamily")
    page.get_by_role("link", name="Go to Daybook").click()
    expect(page.get_by_role("button", name="Sign in")).to_be_visible()


def test_axe_finds_nothing_serious(
    visitor: NewVisitor, provider: OpenIDServer, mailed_link: Callable[[], str], server: LiveServer
) -> None:
    owner_make("anna", email="anna@example.org")
    password_reset.password_mail(str(User.objects.get(username="anna").pk), server.address)
    stranger, alice = visitor(), visitor("alice")
    stranger.expect_error("404")
    login_make(owner_of("alice"))
    pages = {
        "sign-in": (stranger, "/login/?done=password"),
        "forgotten": (stranger, reverse("password-forgotten")),
        "new": (stranger, mailed_link().removeprefix(server.address)),
        "invitation": (stranger, invitation_link(server, email="dora@example.org").removeprefix(server.address)),
        "over": (stranger, "/invitation/over/"),
        "unknown": (stranger, "/nowhere/"),
        "account": (alice, "/account/"),
    }
    found = {}
    for name, (who, path) in pages.items():
        page = who.open(path)
        found[name] = [*([] if page.evaluate(FITS) else ["scrolls sideways"]), *findings_wide_and_narrow(page, 320)]
    assert {name: findings for name, findings in found.items() if findings} == {}
