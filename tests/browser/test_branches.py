"""Versions of a turn: editing an earlier message and switching between versions."""

import re

import pytest
from playwright.sync_api import Page, expect

from gateway.models import Run, Session
from tests.browser.axe import findings_light_and_dark
from tests.browser.conftest import Visitor, owner_of
from tests.browser.conversations import conversation_make
from tests.browser.page_actions import ask, expect_status, send
from tests.browser.puppet_model import PuppetModel

pytestmark = pytest.mark.browser


def say(page: Page, puppet: PuppetModel, text: str, answer: str) -> None:
    puppet.answer(answer)
    ask(page, text)


def edit(page: Page, puppet: PuppetModel, index: int, text: str, answer: str) -> None:
    """Edit a turn's message and wait for the answer."""
    turn = page.locator(".turn").nth(index)
    turn.locator(".entry--you").hover()
    turn.get_by_role("button", name="Edit your message").click()
    page.get_by_role("textbox", name="Edit your message").fill(text)
    puppet.answer(answer)
    page.keyboard.press("Enter")
    expect_status(page, "Answer complete")
    expect(page.locator(".turn").nth(index)).to_have_attribute("data-state", "completed")


def messages(page: Page) -> list[str]:
    return page.locator(".turn .entry--you .prose").all_inner_texts()


@pytest.fixture
def chat(alices: Visitor) -> Page:
    """A conversation with two completed turns."""
    session = conversation_make(owner_of("alice"), ("one", "Answer to one."), ("two", "Answer to two."))
    return alices.open(f"/c/{session.pk}/")


def path(page: Page) -> str:
    return re.sub(r"^https?://[^/]+", "", page.url)


def test_after_editing_an_earlier_message_both_versions_are_shown_in_every_tab(
    chat: Page, alices: Visitor, puppet: PuppetModel
) -> None:
    say(chat, puppet, "three", "Answer to three.")
    edit(chat, puppet, 1, "zwei", "Answer to zwei.")
    assert messages(chat) == ["one", "zwei"]
    versions = chat.get_by_role("group", name="Versions of this turn")
    expect(versions).to_have_text("2/2")
    other = alices.open(path(chat))
    expect(other.locator(".turn")).to_have_count(2)
    versions.get_by_role("button", name="Earlier version").click()
    expect(versions).to_have_text("1/2")
    assert messages(chat) == ["one", "two", "three"]
    expect_status(chat, "Version 1 of 2")
    expect(versions.get_by_role("button", name="Later version")).to_be_focused()
    expect(other.locator(".turn")).to_have_count(3)
    assert messages(other) == ["one", "two", "three"]
    chat.reload()
    expect(versions).to_have_text("1/2")
    assert messages(chat) == ["one", "two", "three"]
    assert chat.locator(".dayline h2").count() == 1
    say(chat, puppet, "four", "Answer to four.")
    assert [m["content"] for m in puppet.requests[-1].messages if m["role"] == "user"] == [
        "one",
        "two",
        "three",
        "four",
    ]
    versions.get_by_role("button", name="Later version").press("Enter")
    expect(versions).to_have_text("2/2")
    assert messages(chat) == ["one", "zwei"]
    assert chat.locator(".dayline h2").count() == 1
    assert Run.objects.count() == 5
    for width in (1440, 390):
        chat.set_viewport_size({"width": width, "height": 844})
        assert findings_light_and_dark(chat) == []
        assert chat.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_next_message_continues_the_version_that_is_shown(chat: Page, puppet: PuppetModel) -> None:
    puppet.answer("Blue.")
    chat.get_by_role("button", name="Answer again").last.click()
    expect(chat.get_by_text("Blue.")).to_be_visible()
    versions = chat.get_by_role("group", name="Versions of this turn")
    expect(versions).to_have_text("2/2")
    versions.get_by_role("button", name="Earlier version").click()
    expect(chat.get_by_text("Answer to two.")).to_be_visible()
    send(chat, "Another")
    for button in ("Later version", "Answer again", "Edit your message"):  # too early
        chat.get_by_role("button", name=button).first.click()
        expect(chat.locator(".toast")).to_contain_text("Wait until the answer is complete, or stop it.")
        chat.get_by_role("button", name="Close notice").click()
    versions.get_by_role("button", name="Later version").click(click_count=2)
    expect(chat.locator(".toast")).to_have_count(1)
    puppet.answer("Green.")
    expect_status(chat, "Answer complete")
    answers = [m["content"] for m in puppet.requests[-1].messages if m["role"] == "assistant"]
    assert answers == ["Answer to one.", "Answer to two."]


def test_an_edit_in_another_tab_removes_the_later_turns_from_this_page(
    chat: Page, alices: Visitor, puppet: PuppetModel
) -> None:
    other = alices.open(path(chat))
    expect(other.locator(".turn")).to_have_count(2)
    edit(chat, puppet, 0, "eins", "Answer to eins.")
    expect(other.locator(".turn")).to_have_count(1)
    expect(other.get_by_text("Answer to eins.")).to_be_visible()


def test_a_refused_edit_can_be_reverted(chat: Page, alices: Visitor) -> None:
    alices.expect_error("status of 409")
    Session.objects.update(state="ended")
    chat.locator(".entry--you").first.hover()
    chat.locator(".turn").first.get_by_role("button", name="Edit your message").click()
    chat.get_by_role("textbox", name="Edit your message").fill("eins")
    chat.keyboard.press("Enter")
    alert = chat.get_by_role("alert")
    expect(alert).to_be_visible()
    expect(chat.locator(".turn")).to_have_count(1)
    alert.get_by_role("button", name="Edit message").click()
    assert messages(chat) == ["one", "two"]
