"""Where things stand: a wide screen's middle, wide content beside the text, and nothing broken on a small one."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from gateway.models import Agent, Message, Run, Session
from tests.browser.conftest import NewVisitor, owner_of
from tests.browser.test_finding import long_session
from tests.browser.test_memories_many import fill
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
LONG_SEARCH = f"/memories/?q={'x' * 60}"
SIDEWAYS = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
# Controls that lie on each other, in the parts where they stand in a row.
ON_EACH_OTHER = """() => [".topbar", ".composer__bar", ".page__head", ".tools__row", ".mem__acts"].flatMap((row) => {
  const seen = [...document.querySelectorAll(`${row} :is(a, button, select, input, .fill, .switch)`)]
    .filter((each) => each.checkVisibility({ visibilityProperty: true, opacityProperty: true }))
    .filter((each) => each.getBoundingClientRect().width > 2 && !each.matches(".switch input"));
  const boxes = seen.map((each) => [each.id || each.className || each.tagName, each.getBoundingClientRect()]);
  return boxes.flatMap(([name, a], at) => boxes.slice(at + 1)
    .filter(([, b]) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1)
    .map(([other]) => `${row}: ${name} on ${other}`));
})"""


def talk() -> Session:
    """A session of alice whose last answer has a wide table and wide code."""
    session = long_session(owner_of("alice"), 2)
    Message.objects.filter(session=session, seq=4).update(text=WIDE)
    return session


def box(page: Page, selector: str) -> Any:
    """Where the last such element stands."""
    return page.locator(selector).last.bounding_box()


def right(place: Any) -> float:
    return float(place["x"] + place["width"])


@pytest.mark.parametrize("width", [1600, 1920, 2560])
def test_on_a_wide_screen_the_text_is_in_the_middle(visitor: NewVisitor, server: object, width: int) -> None:
    page = visitor("alice", viewport={"width": width, "height": 900}).open(f"/c/{talk().pk}/")
    text = box(page, "[data-answer] [data-prose] > p")
    left = right(box(page, ".sessions"))
    assert abs(text["x"] + text["width"] / 2 - (left + width) / 2) <= 1
    assert (
        abs(
            text["x"]
            - box(page, "#session-title")["x"]
            - page.locator("#session-title").evaluate(
                "element => parseFloat(getComputedStyle(element).paddingInlineStart)"
            )
        )
        <= 1
    ), "the title stands above the text"
    assert right(box(page, ".composer__box")) <= width
    assert page.evaluate(SIDEWAYS) == 0


@pytest.mark.parametrize("width", [1440, 1920])
def test_tables_and_code_grow_into_the_gutter_and_no_further(visitor: NewVisitor, server: object, width: int) -> None:
    page = visitor("alice", viewport={"width": width, "height": 900}).open(f"/c/{talk().pk}/")
    text, log = box(page, "[data-answer] [data-prose] > p"), box(page, "#log")
    for wide in (box(page, ".prose > .table"), box(page, ".prose > .code")):
        assert wide["x"] == text["x"]
        assert wide["width"] > 672, "wider than a line of text may be"
        assert right(wide) <= right(log)
    assert page.locator("#log").evaluate("log => log.scrollWidth - log.clientWidth") == 0


def test_the_text_keeps_its_distance_from_the_red_line(visitor: NewVisitor, server: object) -> None:
    page = visitor("alice").open(f"/c/{talk().pk}/")
    said = box(page, ".entry--you .entry__body")  # its box begins at the line
    assert 19 <= box(page, "[data-answer] [data-prose] > p")["x"] - said["x"] <= 21


def test_nothing_breaks_at_320_pixels(visitor: NewVisitor, server: object) -> None:
    session = talk()
    fill(owner_of("alice"), 3)
    small = visitor("alice", viewport={"width": 320, "height": 640}, has_touch=True)
    for path in (
        f"/c/{session.pk}/",
        "/new/",
        "/new/?temporary=1",
        "/memories/",
        LONG_SEARCH,
        "/reviews/",
        "/account/",
        "/login/",
    ):
        page = small.open(path)
        expect(page.locator("#main")).to_be_visible()
        assert page.evaluate(SIDEWAYS) == 0, path
        assert page.evaluate(ON_EACH_OTHER) == [], path
        page.close()


@pytest.mark.parametrize("width", [320, 1280])
def test_long_words_beside_a_memory_break(visitor: NewVisitor, server: object, width: int) -> None:
    memory_make(owner_of("alice"), "Likes tea.", category="W" * 40, keywords=["K" * 40], metadata={"m" * 40: "v" * 200})
    page = visitor("alice", viewport={"width": width, "height": 640}).open("/memories/")
    row = page.locator(".mem")
    page.mouse.move(1, 1)
    about, whole = box(page, ".mem__about"), box(page, ".mem")
    assert about["y"] + about["height"] <= whole["y"] + whole["height"]  # not over the next one
    row.hover()
    assert page.evaluate(SIDEWAYS) == 0


def test_a_transcript_with_a_table_fits_the_admin_on_a_phone(visitor: NewVisitor) -> None:
    owner_make("root", is_staff=True, is_superuser=True)
    address = f"/admin/gateway/session/{talk().pk}/change/"
    page = visitor("root", viewport={"width": 320, "height": 640}, has_touch=True).open(address)
    expect(page.locator(".db-prose table")).to_be_attached()
    page.wait_for_load_state("networkidle")
    assert page.evaluate(SIDEWAYS) == 0


def test_the_page_of_a_turn_fits_a_small_window(visitor: NewVisitor) -> None:
    root = owner_make("root", is_staff=True, is_superuser=True)
    agent = Agent.objects.get(name="assistant")
    run = Run.objects.create(owner=root, session=session_make(root, agent), turn=1, request_id="0d" * 16)
    address = f"/admin/gateway/run/{run.pk}/change/"
    page = visitor("root", viewport={"width": 1280, "height": 800}).open(address)
    page.wait_for_load_state("networkidle")
    assert page.evaluate(SIDEWAYS) == 0


def test_the_dashboard_of_the_admin_fits_320_pixels(visitor: NewVisitor) -> None:
    owner_make("root", is_staff=True, is_superuser=True)
    talk()
    page = visitor("root", viewport={"width": 320, "height": 640}, has_touch=True).open("/admin/")
    expect(page.get_by_role("heading", name="Now")).to_be_visible()
    page.wait_for_load_state("networkidle")
    assert page.evaluate(SIDEWAYS) == 0


def test_the_form_of_a_new_key_fits_a_small_window(visitor: NewVisitor) -> None:
    owner_make("root", is_staff=True, is_superuser=True)
    page = visitor("root", viewport={"width": 1200, "height": 800}).open("/admin/gateway/apikey/add/")
    page.wait_for_load_state("networkidle")
    assert page.evaluate(SIDEWAYS) == 0
