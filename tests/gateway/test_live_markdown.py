"""Live rendering of an answer: sanitised at every moment, limited in size, and equal to the final HTML at the end"""

import asyncio
import re
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.chat.live_html import as_html
from gateway.chat.live_markdown import LiveMarkdown
from gateway.chat.markdown import MAX_CHARS, MAX_MARKS, render_markdown
from tests.gateway.test_markdown import HOSTILE, PIECES, TOO_SLOW, Seen, assert_harmless

DOCUMENT = r"""# Title

A paragraph with **strong**, `code`, \(a^2\) and $x$,
on two lines; [x](https://a.example).

[named]: https://b.example

[^note]: A note, before it is used.

- one
  - two

  a paragraph of one
- [x] three

2026

| a | b |
|---|--:|
| 1 | 2 |

    indented

```python
def f(): return 'a'
```
---
> quoted
lazy

\[
a
- b
\]
Setext 😀
---
[named] again[^note].
"""


class Shown:
    """Applies the changes as static/gateway/live_answer.js does, and holds the HTML that a page shows."""

    def __init__(self, scope: str = "s") -> None:
        self.live = LiveMarkdown(scope)
        self.blocks: list[str] = []
        self.sent = 0

    def add(self, text: str, *, complete: bool = False) -> None:
        self.live.add(text)
        changes, count = self.live.changes(complete=complete)
        for change in changes:
            self.sent += len(change["html"])
            if change["block"] >= len(self.blocks):
                self.blocks.append("")
            kept = self.blocks[change["block"]].encode("utf-16-le")[: change["keep"] * 2].decode("utf-16-le")
            self.blocks[change["block"]] = kept + change["html"]
        del self.blocks[count:]

    def html(self) -> str:
        return "".join(self.blocks)


def without_spaces(html: str) -> str:
    return re.sub(r"\s+", "", html)


def rendered_in_pieces(text: str, sizes: list[int]) -> Shown:
    shown, at = Shown(), 0
    while at < len(text):
        size = sizes[at % len(sizes)]
        shown.add(text[at : at + size])
        assert_harmless(shown.html())
        at += size
    shown.add("", complete=True)
    return shown


@pytest.mark.parametrize("size", [1, 2, 3, 7, 40, 10_000])
def test_the_finished_blocks_equal_the_rendering_of_the_whole(size: int) -> None:
    shown = rendered_in_pieces(DOCUMENT, [size])
    assert without_spaces(shown.html()) == without_spaces(render_markdown(DOCUMENT, scope="s"))
    tags = {tag for tag, _ in Seen(shown.html()).elements}
    assert {"h3", "ul", "table", "math", "sup", "blockquote", "input"} <= tags


@given(st.lists(st.sampled_from([*HOSTILE, *PIECES]), max_size=8), st.lists(st.integers(1, 30), min_size=1, max_size=5))
@example(["a\n\n", "1. b\n\n", "2. c"], [1])
@example(["text\n", "$$", "a\n\n", "b"], [3])
@example(["😀 **a** 😀", "\n- b\r\n- c\r"], [2])
def test_pieces_are_harmless_at_any_moment_and_end_as_the_whole(pieces: list[str], sizes: list[int]) -> None:
    text = "".join(pieces)
    shown = rendered_in_pieces(text, sizes)
    if "[^" not in text:  # footnotes may be defined after their use
        assert without_spaces(shown.html()) == without_spaces(render_markdown(text, scope="s"))


@given(st.text("ab12|-:*_`[](){}$\\^#>~ \n\r\t!=+.</u", max_size=120), st.integers(1, 9))
def test_any_text_ends_as_the_rendering_of_the_whole(text: str, size: int) -> None:
    shown = rendered_in_pieces(text, [size])
    if "]:" not in text:  # a link may be defined after its use
        assert without_spaces(shown.html()) == without_spaces(render_markdown(text, scope="s"))


def test_incomplete_markup_is_not_shown() -> None:
    for text in (
        "a \\(x",
        "a $x^",
        "a **b",
        "a `b",
        "a [b](https://c",
        "a\n\n|b|c|\n|-",
        "a\n\n\\[\nx\n",
        "a\n\n- ",
        "a <sub>b</s",
        "a <br",
    ):
        shown = Shown()
        for sign in text:
            shown.add(sign)
        assert without_spaces(shown.html()) == "<p>a</p>", text


def test_a_finished_block_is_sent_once() -> None:
    shown = Shown()
    for number in range(200):
        shown.add(f"Paragraph {number} with some words.\n\n")
    assert shown.sent < 3 * len(shown.html())
    first, shown.sent = shown.blocks[0], 0
    shown.add("The last.")
    assert shown.sent < 100
    assert shown.blocks[0] == first


def test_only_the_new_part_of_a_long_open_block_is_sent() -> None:
    shown = Shown()
    shown.add("```python\n")
    for number in range(150):
        shown.add(f"x{number} = {number}\n")
    assert shown.sent < 12 * len(shown.html())  # code is highlighted again when it has grown by an eighth
    listed = Shown()
    for number in range(150):
        listed.add(f"- item {number}\n")
    assert listed.sent < 4 * len(listed.html())


def test_a_text_over_the_limits_is_shown_as_written() -> None:
    for text in ("x" * (MAX_CHARS + 1), "* " * (MAX_MARKS + 1)):
        shown = Shown()
        shown.add("First\n\nSecond " + text[:1000])
        assert shown.blocks[0] == "<p>First</p>"
        shown.add(text[1000:], complete=True)
        assert shown.html() == render_markdown("First\n\nSecond " + text)


@pytest.mark.parametrize("text", TOO_SLOW)
def test_a_text_that_takes_too_many_steps_is_shown_as_written(text: str) -> None:
    shown = Shown()
    shown.add("First\n\n")
    for start in range(0, len(text), 10_000):
        shown.add(text[start : start + 10_000])
    shown.add("end", complete=True)
    assert shown.html() == render_markdown("First\n\n" + text + "end")
    assert shown.html().startswith("<pre>First")


async def stream_of(*events: tuple[int, tuple[str, dict[str, Any]]]) -> AsyncGenerator[tuple[int, tuple[str, Any]]]:
    for event in events:
        yield event


async def test_text_events_become_html_events() -> None:
    deltas = [(at, ("delta", {"text": "word "})) for at in range(5, 505, 5)]
    tool = (500, ("tool", {"name": "read"}))
    events = [event async for event in as_html(stream_of(*deltas, tool, (500, ("done", {"id": "x"}))), "s")]
    assert [name for _, (name, _) in events if name != "html"] == ["tool", "done"]
    html = [data for _, (name, data) in events if name == "html"]
    assert len(html) < 20, "pieces that arrive together are rendered together"
    text = ""
    for data in html:
        (change,) = data["blocks"]
        text = text[: change["keep"]] + change["html"]
    assert text == f"<p>{('word ' * 100).strip()}</p>"
    assert events[-1] == (500, ("done", {"id": "x"}))


async def test_pending_text_is_shown_even_if_nothing_follows() -> None:
    may_finish = asyncio.Event()

    async def slow() -> AsyncGenerator[tuple[int, tuple[str, Any]]]:
        yield 1, ("delta", {"text": "a"})
        yield 2, ("delta", {"text": "b"})
        await may_finish.wait()

    events = as_html(slow(), "s")
    shown = ""
    while not shown.startswith("<p>ab"):
        _, (_, data) = await asyncio.wait_for(anext(events), 10)
        shown = shown[: data["blocks"][0]["keep"]] + data["blocks"][0]["html"]
    may_finish.set()
    assert [event async for event in events] == []
