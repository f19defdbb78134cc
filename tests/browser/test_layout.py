"""Layout: centred text and wide content on wide screens, and nothing broken on small ones."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from gateway.models import Agent, Run, Session
from memories.services import book_get_or_create
from tests.browser.conftest import NewVisitor, owner_of
from tests.browser.conversations import conversation_make
from tests.browser.test_memories_bulk import fill
from tests.browser.test_reviews_page import waiting_review
from tests.factories import memory_make, owner_make, session_make

pytestmark = pytest.mark.browser

WIDE = """Here it is:

| Setting | Default | Where it is set | What it changes | Unit | Since | Notes for operators |
|---|---|---|---|---|---|---|
| `retention_days` | 14 | `/etc/backup/nightly.toml` | How long dumps are kept on the NAS | days | 2.1 | Lower it last |

```python
def retention(dumps: list[Dump], days: int = 14, *, now: datetime | None = None) -> list[Dump]: return dumps[days:]
```

https://example.org/a/very/long/path/that/never/ends/and/has/no/place/to/break/because/it/is/one/word/only
"""
LONG_BOOK = "b" * 64
LONG_SEARCHES = (f"/memories/?q={'x' * 60}", f"/memories/?book={LONG_BOOK}")
PATHS = ("/new/", "/new/?temporary=1", "/memories/", *LONG_SEARCHES, "/reviews/", "/account/", "/login/")
SIDEWAYS = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
# Controls that overlap within a row.
OVERLAPPING = """() => [".topbar", ".composer__bar", ".page__head", ".tools__row", ".mem__acts"].flatMap((row) => {
  const seen = [...document.querySelectorAll(`${row} :is(a, button, select, input, .fill, .switch)`)]
    .filter((each) => each.checkVisibility({ visibilityProperty: true, opacityProperty: true }))
    .filter((each) => each.getBoundingClientRect().width > 2 && !each.matches(".switch input"));
  const boxes = seen.map((each) => [each.id || each.className || each.tagName, each.getBoundingClientRect()]);
  return boxes.flatMap(([name, a], at) => boxes.slice(at + 1)
    .filter(([, b]) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1)
    .map(([other]) => `${row}: ${name} on ${other}`));
})"""


def wide_conversation() -> Session:
    """Create a session of Alice's whose last answer has a wide table and wide code."""
    return conversation_make(owner_of("alice"), ("one", "Answer to one."), ("two", WIDE))


def bounding_box(page: Page, selector: str) -> Any:
    """Return the bounding box of the last matching element."""
    return page.locator(selector).last.bounding_box()


def right(bounding_box: Any) -> float:
    return float(bounding_box["x"] + bounding_box["width"])


def test_the_text_is_centred_and_tables_and_code_extend_into_the_gutter(visitor: NewVisitor, server: object) -> None:
    page = visitor("alice").open(f"/c/{wide_conversation().pk}/")
    for width in (1440, 1600, 1920, 2560):
        page.set_viewport_size({"width": width, "height": 900})
        text, log = bounding_box(page, "[data-answer] [data-prose] > p"), bounding_box(page, "#log")
        for wide in (bounding_box(page, ".prose > .table"), bounding_box(page, ".prose > .code")):
            assert wide["x"] == text["x"], width
            assert wide["width"] > 672, f"at {width} wider than a line of text may be"
            assert right(wide) <= right(log), width
        assert page.locator("#log").evaluate("log => log.scrollWidth - log.clientWidth") == 0
        message = bounding_box(page, ".entry--you .entry__body")  # the red line, 20 pixels left of the text
        assert 19 <= text["x"] - message["x"] <= 21, width
        if width == 1440:
            continue
        left = right(bounding_box(page, ".sessions"))
        assert abs(text["x"] + text["width"] / 2 - (left + width) / 2) <= 1, width
        padding = "element => parseFloat(getComputedStyle(element).paddingInlineStart)"
        title = bounding_box(page, "#session-title")["x"] + page.locator("#session-title").evaluate(padding)
        assert abs(text["x"] - title) <= 1, f"at {width} the title is aligned with the text"
        assert right(bounding_box(page, ".composer__box")) <= width
        assert page.evaluate(SIDEWAYS) == 0, width


def test_pages_fit_a_small_or_zoomed_screen(visitor: NewVisitor, server: object) -> None:
    session = wide_conversation()
    fill(owner_of("alice"), 3)
    memory_make(owner_of("alice"), "A-word-that-is-longer-than-most-lines-are-and-has-nowhere-to-break-" * 3)
    waiting_review(book_get_or_create(owner_of("alice").pk, "main"))
    book_get_or_create(owner_of("alice").pk, LONG_BOOK)
    small = visitor("alice", viewport={"width": 320, "height": 640}, has_touch=True)
    for path in (f"/c/{session.pk}/", *PATHS):
        page = small.open(path)
        expect(page.locator("#main")).to_be_visible()
        # The first: a phone of 390 pixels with a font of 32. The last two: a common screen at 400 and at 200 %.
        for width in (195, 320, 360, 720):
            page.set_viewport_size({"width": width, "height": 640})
            assert page.evaluate(SIDEWAYS) == 0, (path, width)
            assert page.evaluate(OVERLAPPING) == [], (path, width)
        page.close()


def test_long_words_in_a_memorys_details_are_wrapped(visitor: NewVisitor, server: object) -> None:
    memory_make(owner_of("alice"), "Likes tea.", category="W" * 40, keywords=["K" * 40], metadata={"m" * 40: "v" * 200})
    page = visitor("alice").open("/memories/")
    row = page.locator(".mem")
    for width in (320, 1280):
        page.set_viewport_size({"width": width, "height": 640})
        page.mouse.move(1, 1)
        about, whole = bounding_box(page, ".mem__about"), bounding_box(page, ".mem")
        assert about["y"] + about["height"] <= whole["y"] + whole["height"], width  # does not overlap the next row
        row.hover(position={"x": 8, "y": 8})
        assert page.evaluate(SIDEWAYS) == 0, width


def test_on_a_wide_touch_screen_the_details_of_a_memory_stay_in_its_row(visitor: NewVisitor, server: object) -> None:
    for text in ("Likes tea.", "Has a dog named Rex."):
        memory_make(owner_of("alice"), text, keywords=["drinks", "animals", "breakfast"], metadata={"from": "x" * 60})
    tablet = visitor("alice", viewport={"width": 1366, "height": 1024}, has_touch=True, is_mobile=True)
    page = tablet.open("/memories/")
    expect(page.locator(".mem")).to_have_count(2)
    details = page.locator(".mem__meta").first.bounding_box()
    assert details is not None
    assert details["y"] + details["height"] <= bounding_box(page, ".mem:nth-child(2)")["y"]
    page.get_by_role("button", name="History: ").first.click()
    expect(page.get_by_role("button", name="Close history")).to_be_focused()
    assert page.evaluate(SIDEWAYS) == 0


def test_admin_pages_fit_small_windows(visitor: NewVisitor, server: object) -> None:
    root = owner_make("root", is_staff=True, is_superuser=True)
    agent = Agent.objects.get(name="assistant")
    run = Run.objects.create(owner=root, session=session_make(root, agent), turn=1, request_id="0d" * 16)
    admin = visitor("root", has_touch=True)
    page = admin.open(f"/admin/gateway/session/{wide_conversation().pk}/change/")
    expect(page.locator(".db-prose table")).to_be_attached()
    for path, width in (
        ("", 320),
        ("/admin/", 320),
        (f"/admin/gateway/run/{run.pk}/change/", 1280),
        ("/admin/gateway/apikey/add/", 1200),
    ):
        page.set_viewport_size({"width": width, "height": 800})
        if path:
            page.goto(admin.address + path)
        page.evaluate("() => document.fonts.ready.then(() => true)")
        assert page.evaluate(SIDEWAYS) == 0, (path, width)
