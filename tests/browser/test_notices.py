"""Notices: how long they stay, what holds them, and taking back what they tell. The page's clock is the test's."""

import pytest
from playwright.sync_api import Locator, Page, expect

from memories.messaging.outbox import notify
from memories.models import Book, Memory, Notification
from memories.services import book_get_or_create
from reviews.models import ReviewRun
from tests.browser.conftest import LiveServer, NewVisitor, owner_of, run_in_thread
from tests.browser.test_reviews_page import saved_review

pytestmark = pytest.mark.browser

TWO = "Saved 2 memories from your last conversation."
SECOND = 1000


@pytest.fixture
def book(server: LiveServer) -> Book:
    return book_get_or_create(owner_of("alice").pk, "main")


@pytest.fixture
def page(visitor: NewVisitor, book: Book) -> Page:
    """The chat, with a clock that goes only when the test says so."""
    alices = visitor("alice", alone=True)
    alices.context.clock.install(time="2026-01-01T08:00:00Z")
    page = alices.open("/")
    expect(page.get_by_role("button", name="Send message")).to_be_enabled()
    page.clock.pause_at("2026-01-01T08:10:00Z")
    return page


@pytest.fixture
def review(book: Book) -> ReviewRun:
    return saved_review(book, "Nightly backups", "Keeps dumps for 14 days.", "The NAS is at home.")


def told_of(review: ReviewRun, page: Page) -> Locator:
    """The notice of that review, once it is there."""
    told = {"kind": Notification.Kind.REVIEW_SAVED, "text": TWO, "review_id": review.pk}
    run_in_thread(lambda: notify(owner_id=review.owner_id, **told))
    toast = page.locator(".toast")
    expect(toast.get_by_role("listitem")).to_have_text(["Keeps dumps for 14 days.", "The NAS is at home."])
    return toast


def test_a_notice_stays_for_twelve_seconds_and_as_long_as_somebody_is_at_it(page: Page, review: ReviewRun) -> None:
    toast = told_of(review, page)
    page.clock.run_for(11 * SECOND)
    expect(toast).to_be_visible()
    page.clock.run_for(2 * SECOND)
    expect(toast).to_have_count(0)

    toast = told_of(review, page)
    page.clock.run_for(5 * SECOND)
    toast.hover()  # its clock stands
    page.clock.run_for(60 * SECOND)
    expect(toast).to_be_visible()
    page.mouse.move(5, 5)
    page.clock.run_for(6 * SECOND)
    expect(toast).to_be_visible()
    page.clock.run_for(2 * SECOND)
    expect(toast).to_have_count(0)

    toast = told_of(review, page)
    toast.get_by_role("button", name="Close notice").focus()  # it never leaves meanwhile
    toast.hover()
    page.clock.run_for(60 * SECOND)
    page.mouse.move(5, 5)
    page.clock.run_for(60 * SECOND)
    expect(toast).to_be_visible()
    page.get_by_label("Message to assistant").focus()
    page.clock.run_for(13 * SECOND)
    expect(toast).to_have_count(0)

    toast = told_of(review, page)
    page.clock.run_for(1 * SECOND)
    toast.hover()  # pointing and focusing at once is waited for once
    page.clock.run_for(9 * SECOND)
    toast.get_by_role("button", name="Undo").focus()
    page.clock.run_for(9 * SECOND)
    page.mouse.move(5, 5)
    page.get_by_label("Message to assistant").focus()
    page.clock.run_for(10 * SECOND)
    expect(toast).to_be_visible()
    page.clock.run_for(2 * SECOND)
    expect(toast).to_have_count(0)


def test_what_it_tells_is_taken_back_and_put_back_with_the_keyboard_and_it_leads_to_its_review(
    page: Page, review: ReviewRun
) -> None:
    toast = told_of(review, page)
    toast.get_by_role("button", name="Undo").press("Enter")
    expect(toast).to_contain_text("Undone. 2 memories changed back.")
    assert not Memory.objects.filter(deleted_at=None).exists()
    back = toast.get_by_role("button", name="Restore")
    expect(back).to_be_focused()
    page.clock.run_for(60 * SECOND)
    back.press("Enter")
    expect(toast).to_contain_text("Restored 2 memories.")
    assert Memory.objects.filter(deleted_at=None).count() == 2
    expect(toast.get_by_role("button", name="Undo")).to_be_focused()
    toast.get_by_role("link", name="Open review").click()
    expect(page.get_by_role("article", name="Nightly backups")).to_be_focused()
