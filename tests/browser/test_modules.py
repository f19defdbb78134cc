"""The page script's parsers, called directly in the browser."""

from typing import Any

import pytest
from django.templatetags.static import static
from playwright.sync_api import Page

pytestmark = pytest.mark.browser


def call(page: Page, module: str, function: str, *args: Any) -> Any:
    script = "async ([module, name, args]) => (await import(module))[name](...args)"
    return page.evaluate(script, [static(f"gateway/{module}"), function, list(args)])


def draw(page: Page, *events: dict[str, Any]) -> str:
    """Draw a live answer after each of these events; return its HTML."""
    return str(
        page.evaluate(
            """async ([module, events]) => {
                const { LiveAnswer } = await import(module);
                const section = document.getElementById("live-turn").content.cloneNode(true).querySelector(".turn");
                const answer = new LiveAnswer(section, { onDrawn() {} });
                for (const data of events) {
                  answer.show({ type: "html", data });
                  answer.draw();
                }
                answer.end();
                return section.querySelector("[data-prose]").innerHTML;
            }""",
            [static("gateway/live_answer.js"), list(events)],
        )
    )


def changes(count: int, *blocks: tuple[int, int, str]) -> dict[str, Any]:
    return {"count": count, "blocks": [{"block": block, "keep": keep, "html": html} for block, keep, html in blocks]}


EVENTS = [
    ("event: delta\nid: 7\ndata: {}", {"type": "delta", "id": "7", "data": {}}),
    ('data: {"a":\ndata: 1}', {"type": "message", "id": None, "data": {"a": 1}}),
    (": keep-alive", None),
    ("event:done\ndata:[1]", {"type": "done", "id": None, "data": [1]}),
]


def test_server_sent_events_are_parsed_as_the_standard_says(chat: Page) -> None:
    assert [(block, call(chat, "sse.js", "parseEvent", block)) for block, _ in EVENTS] == EVENTS


def test_changes_of_a_live_answer_are_drawn_in_place(chat: Page) -> None:
    first = changes(2, (0, 0, "<p>a</p>"), (1, 0, "<p>\U0001f600</p>"))
    assert draw(chat, first) == "<p>a</p><p>\U0001f600</p>"
    assert draw(chat, first, changes(2, (1, 5, " b</p>"))) == "<p>a</p><p>\U0001f600 b</p>"
    assert draw(chat, first, changes(2, (0, 3, "c</p>"))) == "<p>c</p><p>\U0001f600</p>"
    assert draw(chat, first, changes(1, (0, 0, "<ul><li>d</li></ul>"))) == "<ul><li>d</li></ul>"
    assert draw(chat, first, changes(3, (0, 0, ""), (2, 0, "<hr>"))) == "<p>\U0001f600</p><hr>"
    assert draw(chat, first, changes(2, (0, 0, "<p>a</p>"), (1, 0, "<p>b</p>"))) == "<p>a</p><p>b</p>"
