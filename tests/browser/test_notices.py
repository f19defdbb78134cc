"""Notices: how long they stay, what keeps them open, and undoing a review from them. Tests control the page's clock."""

import pytest
from playwright.sync_api import Locator, Page, expect

from memories.messaging.outbox import notify
from memories.models import Book, Memory, Notification
from reviews.models import ReviewRun
from tests.browser.conftest import run_in_thread
from tests.browser.test_reviews_page import saved_review

pytestmark = pytest.mark.browser

TEXT = "Saved 2 memories from your last conversation."
SECOND = 1000


@pytest.fixture
def review(book: Book) -> ReviewRun:
    return saved_review(book, "Nightly backups", "Keeps dumps for 14 days.", "The NAS is at home.")


def show_notice(review: ReviewRun, page: Page) -> Locator:
    """Send the review's notice and wait until it is shown."""
    notice = {"kind": Notification.Kind.REVIEW_SAVED, "text": TEXT, "review_id": review.pk}
    run_in_thread(lambda: notify(owner_id=review.owner_id, **notice))
    toast = page.locator(".toast")
    expect(toast.get_by_role("listitem")).to_have_text(["Keeps dumps for 14 days.", "The NAS is at home."])
    return toast


def test_a_notice_stays_twelve_seconds_and_longer_while_hovered_or_focused(paused: Page, review: ReviewRun) -> None:
    toast = show_notice(review, paused)
    paused.clock.run_for(11 * SECOND)
    expect(toast).to_be_visible()
    paused.clock.run_for(2 * SECOND)
    expect(toast).to_have_count(0)

    toast = show_notice(review, paused)
    paused.clock.run_for(5 * SECOND)
    toast.hover()  # its timer pauses
    paused.clock.run_for(60 * SECOND)
    expect(toast).to_be_visible()
    paused.mouse.move(5, 5)
    paused.clock.run_for(6 * SECOND)
    expect(toast).to_be_visible()
    paused.clock.run_for(2 * SECOND)
    expect(toast).to_have_count(0)

    toast = show_notice(review, paused)
    toast.get_by_role("button", name="Close notice").focus()  # it stays while it is focused
    toast.hover()
    paused.clock.run_for(60 * SECOND)
    paused.mouse.move(5, 5)
    paused.clock.run_for(60 * SECOND)
    expect(toast).to_be_visible()
    paused.get_by_label("Message to assistant").focus()
    paused.clock.run_for(13 * SECOND)
    expect(toast).to_have_count(0)

    toast = show_notice(review, paused)
    paused.clock.run_for(1 * SECOND)
    toast.hover()  # time both hovered and focused counts once
    paused.clock.run_for(9 * SECOND)
    toast.get_by_role("button", name="Undo").focus()
    paused.clock.run_for(9 * SECOND)
    paused.mouse.move(5, 5)
    paused.get_by_label("Message to assistant").focus()
    paused.clock.run_for(10 * SECOND)
    expect(toast).to_be_visible()
    paused.clock.run_for(2 * SECOND)
    expect(toast).to_have_count(0)


def test_a_notices_review_can_be_undone_restored_and_opened_with_the_keyboard(paused: Page, review: ReviewRun) -> None:
    toast = show_notice(review, paused)
    toast.get_by_role("button", name="Undo").press("Enter")
    expect(toast).to_contain_text("Undone. 2 memories changed back.")
    assert not Memory.objects.filter(deleted_at=None).exists()
    back = toast.get_by_role("button", name="Restore")
    expect(back).to_be_focused()
    paused.clock.run_for(60 * SECOND)
    back.press("Enter")
    expect(toast).to_contain_text("Restored 2 memories.")
    assert Memory.objects.filter(deleted_at=None).count() == 2
    expect(toast.get_by_role("button", name="Undo")).to_be_focused()
    toast.get_by_role("link", name="Open review").click()
    expect(paused.get_by_role("article", name="Nightly backups")).to_be_focused()


def test_notices_can_be_closed_by_fast_clicks(paused: Page, review: ReviewRun) -> None:
    show_notice(review, paused)
    run_in_thread(lambda: notify(owner_id=review.owner_id, kind=Notification.Kind.REVIEW_SAVED, text=TEXT))
    close = paused.get_by_role("button", name="Close notice")
    expect(close).to_have_count(2)
    close.first.click()
    close.hover()
    paused.mouse.down(click_count=2)
    paused.mouse.up(click_count=2)
    expect(close).to_have_count(0)


def test_a_double_click_on_undo_does_not_restore(paused: Page, review: ReviewRun) -> None:
    toast = show_notice(review, paused)
    undo = toast.get_by_role("button", name="Undo")
    undo.click()
    expect(toast).to_contain_text("Undone. 2 memories changed back.")
    back = toast.get_by_role("button", name="Restore")
    back.hover()
    paused.mouse.down(click_count=2)  # the second click of a double click
    paused.mouse.up(click_count=2)
    assert back.is_enabled()
    back.click()
    expect(toast).to_contain_text("Restored 2 memories.")
