"""The account page in a real browser: password, keys, time zone, and deleting the account."""

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from gateway.authentication import find_caller
from gateway.chat import account
from gateway.keys import key_hash
from gateway.models import ApiKey
from memories.errors import Unauthorized
from memories.forgetting import forgetting_sweep
from memories.models import Memory, Owner
from tests.browser.axe import findings_wide_and_narrow
from tests.browser.conftest import NewVisitor, Visitor, owner_of
from tests.browser.page_actions import ask, sign_in_with
from tests.factories import key_make, memory_make
from tests.waiting import eventually

pytestmark = pytest.mark.browser


def open_account(visitor: Visitor) -> Page:
    page = visitor.open("/account/")
    expect(page.get_by_role("heading", name="Account")).to_be_visible()
    return page


def test_a_new_password_signs_out_the_other_browser(visitor: NewVisitor) -> None:
    page, elsewhere = open_account(visitor("alice")), visitor("alice")
    elsewhere.expect_error("401")
    other = elsewhere.open("/memories/")
    page.get_by_label("Current password").fill("alice knows it")
    page.get_by_label("New password", exact=True).fill("a much longer one")
    page.get_by_label("Confirm new password").fill("a much longer one")
    page.get_by_role("button", name="Change password").click()
    expect(page.get_by_text("Password changed.")).to_be_visible()
    expect(other.get_by_role("button", name="Sign in")).to_be_visible(timeout=30_000)
    sign_in_with(other, "alice", "a much longer one")
    expect(other.get_by_role("heading", name="Memories")).to_be_visible()


def test_a_wrong_password_is_reported_at_its_field(alices: Visitor) -> None:
    alices.expect_error("400")
    page = open_account(alices)
    page.get_by_label("Current password").fill("wrong")
    page.get_by_label("New password", exact=True).fill("short")
    page.get_by_label("Confirm new password").fill("short")
    page.get_by_role("button", name="Change password").click()
    field = page.get_by_label("Current password")
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(field).to_have_accessible_description("The current password is not correct.")
    expect(field).to_have_value("")


def test_a_key_is_shown_once_used_and_revoked(alices: Visitor) -> None:
    page = open_account(alices)
    expect(page.get_by_text("No keys yet.")).to_be_visible()
    page.get_by_label("Name of a new key").fill("Open WebUI")
    page.get_by_label("Read only").check()
    page.get_by_role("button", name="Create key").click()
    plain = page.locator("#plain-key").inner_text()
    assert find_caller(key_hash(plain), "", "").owner_id == owner_of("alice").pk
    expect(page.get_by_text("it is shown once")).to_be_visible()
    page.reload()
    expect(page.locator("#plain-key")).to_have_count(0)
    expect(page.get_by_text("May read · created")).to_be_visible()
    page.get_by_role("button", name="Revoke Open WebUI").click()
    dialog = page.get_by_role("dialog", name="Revoke Open WebUI?")
    dialog.get_by_role("button", name="Cancel").click()
    assert not ApiKey.objects.filter(revoked_at__isnull=False).exists()
    page.get_by_role("button", name="Revoke Open WebUI").click()
    dialog.get_by_role("button", name="Revoke").click()
    expect(page.get_by_text("Key revoked.")).to_be_visible()
    with pytest.raises(Unauthorized):
        find_caller(key_hash(plain), "", "")


def test_the_browsers_time_zone_is_shown_and_used_from_the_first_visit(visitor: NewVisitor) -> None:
    memory_make(owner_of("alice"))
    Memory.objects.update(created_at="2025-03-09T20:00:00Z")
    traveller = visitor("alice", timezone_id="Pacific/Auckland")
    page = open_account(traveller)
    expect(page.get_by_label("Times are shown in")).to_have_value("Pacific/Auckland")
    expect(page.get_by_role("button", name="Use this browser’s")).to_have_count(0)
    eventually(lambda: Owner.objects.get().time_zone == "Pacific/Auckland", within=15)
    expect(traveller.open("/memories/").locator(".mem time")).to_have_text("10 Mar 2025")


def test_the_first_page_after_signing_in_shows_local_times(visitor: NewVisitor) -> None:
    memory_make(owner_of("alice"))
    Memory.objects.update(created_at="2025-03-09T20:00:00Z")
    page = visitor(timezone_id="Pacific/Auckland").open("/memories/")
    sign_in_with(page, "alice", "alice knows it")
    expect(page.locator(".mem time")).to_have_text("10 Mar 2025")


def test_times_are_shown_in_the_zone_of_the_first_browser_until_another_is_chosen(visitor: NewVisitor) -> None:
    owner_of("alice")
    first = visitor("alice", timezone_id="Pacific/Auckland").open("/")
    expect(first.locator("#main")).to_have_attribute("data-time-zone", "Pacific/Auckland")
    eventually(lambda: Owner.objects.get().time_zone == "Pacific/Auckland", within=15)
    first.wait_for_load_state("networkidle")  # the answer was read, so it keeps no connection
    traveller = visitor("alice", timezone_id="Europe/Lisbon")
    page = open_account(traveller)
    expect(page.get_by_label("Times are shown in")).to_have_value("Pacific/Auckland")
    page.get_by_role("button", name="Use this browser’s: Europe/Lisbon").click()
    expect(page.get_by_text("Time zone saved.")).to_be_visible()
    expect(page.get_by_label("Times are shown in")).to_have_value("Europe/Lisbon")


def test_a_browser_with_an_unknown_time_zone_is_shown_times_in_utc(visitor: NewVisitor) -> None:
    alices = visitor("alice", alone=True)
    alices.context.add_init_script(
        "Intl.DateTimeFormat.prototype.resolvedOptions = () => ({ timeZone: 'Etc/Unknown' })"
    )
    alices.expect_error("status of 400")
    with alices.context.expect_event("response", lambda response: response.url.endswith("/account/time-zone/")):
        chat = alices.open("/")
    ask(chat, "hello")  # formatting a time in that zone would fail
    expect(chat.locator("#main")).to_have_attribute("data-time-zone", "UTC")


def test_everything_is_deleted_after_typing_the_confirmation(visitor: NewVisitor) -> None:
    memory_make(owner_of("alice"), "Alice keeps bees.")
    memory_make(owner_of("charlie"), "Charlie keeps goats.")
    alice, charlie = visitor("alice"), visitor("charlie")
    keys = [f"daybook:draft:{owner_of(name).pk}:new" for name in ("alice", "charlie")]
    page = open_account(alice)
    page.evaluate("keys => keys.map(key => localStorage.setItem(key, 'I keep'))", [*keys, "daybook:draft:new"])
    search = f"daybook:session-list:{owner_of('alice').pk}"
    page.evaluate("key => sessionStorage.setItem(key, '{}')", search)
    button = page.get_by_role("button", name="Delete everything")
    expect(button).to_be_disabled()
    page.get_by_label("Type delete everything to continue").fill("delete everything")
    page.get_by_label("Your password").fill("alice knows it")
    alice.expect_error("/ws/notifications/")  # it may reconnect, and be refused, before the response arrives
    button.click()
    expect(page.get_by_role("heading", name="Everything is deleted.")).to_be_visible()
    expect(page.locator(".receipt")).to_contain_text("memories")
    page.wait_for_function("keys => Object.keys(localStorage).join() === keys.join()", arg=keys[1:])  # drafts of others
    assert page.evaluate("key => sessionStorage.getItem(key)", search) is None
    assert not User.objects.filter(username="alice").exists()
    page.goto(f"{alice.address}/memories/")
    expect(page.get_by_role("button", name="Sign in")).to_be_visible()
    expect(charlie.open("/memories/").get_by_text("Charlie keeps goats.")).to_be_visible()


def test_a_long_deletion_shows_its_progress(visitor: NewVisitor, monkeypatch: pytest.MonkeyPatch) -> None:
    memory_make(owner_of("alice"), "Alice keeps bees.")
    monkeypatch.setattr(account, "DELETE_SECONDS", 0)
    page = open_account(visitor("alice"))
    page.get_by_label("Type delete everything to continue").fill("delete everything")
    page.get_by_label("Your password").fill("alice knows it")
    page.get_by_role("button", name="Delete everything").click()
    expect(page.get_by_role("heading", name="Everything is being deleted.")).to_be_visible()
    expect(page.get_by_role("status").first).to_contain_text("deleted so far.")
    forgetting_sweep()
    expect(page.get_by_role("heading", name="Everything is deleted.")).to_be_visible(timeout=10_000)
    expect(page.locator(".receipt")).to_contain_text("memories1")


def test_axe_finds_nothing_serious(visitor: NewVisitor) -> None:
    name = "alice@" + "department." * 6 + "example"
    key_make(owner_of(name))
    page = open_account(visitor(name))
    page.get_by_label("Name of a new key").fill("Phone " + "k" * 70)
    page.get_by_role("button", name="Create key").click()
    expect(page.locator("#plain-key")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert findings_wide_and_narrow(page, 320) == []
