"""The script's own small parsers, asked directly in the browser that runs them."""

from typing import Any

import pytest
from playwright.sync_api import Page

pytestmark = pytest.mark.browser


def called(page: Page, module: str, function: str, *given: Any) -> Any:
    script = "async ([module, name, given]) => (await import(`/static/gateway/${module}`))[name](...given)"
    return page.evaluate(script, [module, function, list(given)])


def drawn(page: Page, *texts: str) -> str:
    """The HTML after these versions of one growing text were drawn."""
    return str(
        page.evaluate(
            """async (texts) => {
                const { createProgressive } = await import("/static/gateway/markdown.js");
                const box = document.createElement("div");
                const draw = createProgressive(box);
                texts.forEach(draw);
                return box.innerHTML;
            }""",
            list(texts),
        )
    )


EVENTS = [
    ("event: delta\nid: 7\ndata: {}", {"type": "delta", "id": "7", "data": {}}),
    ('data: {"a":\ndata: 1}', {"type": "message", "id": None, "data": {"a": 1}}),
    (": keep-alive", None),
    ("event:done\ndata:[1]", {"type": "done", "id": None, "data": [1]}),
]
DRAWN = [
    ("<img src=x onerror=alert(1)>", "<p>&lt;img src=x onerror=alert(1)&gt;</p>"),
    ("a **b** *c* `d`", "<p>a <strong>b</strong> <em>c</em> <code>d</code></p>"),
    ("[words](javascript:alert(1))", "<p>words)</p>"),
    ("# Title\ntext", "<h3>Title</h3><p>text</p>"),
    ("- a\n- b\n  more", "<ul><li>a</li><li>b\nmore</li></ul>"),
    ("3. a\n4. b", '<ol start="3"><li>a</li><li>b</li></ol>'),
    ("> said", "<blockquote><p>said</p></blockquote>"),
    (
        "```py\nx = '<b>'\n\ny",
        '<div class="code"><div class="code__bar"><span>py</span></div>'
        "<pre><code>x = '&lt;b&gt;'\n\ny</code></pre></div>",
    ),
    ("2 * 3 * 4 and snake_case_name", "<p>2 * 3 * 4 and snake_case_name</p>"),
]


def test_events_are_read_as_the_standard_says(chat: Page) -> None:
    assert [(block, called(chat, "sse.js", "parseEvent", block)) for block, _ in EVENTS] == EVENTS


def test_markdown_that_arrives_is_drawn_from_text_only(chat: Page) -> None:
    assert [(text, drawn(chat, text)) for text, _ in DRAWN] == DRAWN


def test_text_that_grows_ends_like_text_that_came_at_once(chat: Page) -> None:
    text = "# One\n\nTwo **three**\n\n```js\nlet x\n```\n\n- four\n- five\n\n> six"
    assert drawn(chat, *(text[:end] for end in range(len(text) + 1))) == drawn(chat, text)
