"""The events of a turn with its text as HTML, for a page that shows it while it is written.

Each `delta` becomes an `html` event, `{"blocks": [{"block", "keep", "html"}, …], "count"}`: see
gateway.chat.live_markdown. Rendering runs in a thread, and takes at most a twentieth of the time of a stream."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import asdict
from typing import Any

from gateway.chat.live_markdown import LiveMarkdown

APART = 0.06
"""Seconds between two renderings of a text that grows."""
_SHARE = 20  # the pause after a rendering, as a multiple of its time

_Event = tuple[int, tuple[str, dict[str, Any]]]


async def as_html(events: AsyncGenerator[_Event], scope: str) -> AsyncGenerator[_Event]:
    """Yield the events of a turn from its first word on. `scope` becomes part of ids in the HTML."""
    live = LiveMarkdown(scope)
    clock = asyncio.get_running_loop().time
    due, at, waits = 0.0, 0, False
    async with aclosing(events):
        following = asyncio.ensure_future(anext(events, None))
        try:
            while True:
                await asyncio.wait({following}, timeout=max(0.0, due - clock()) if waits else None)
                name, final = "", False
                if following.done():
                    event = following.result()
                    if event is None:
                        return
                    following = asyncio.ensure_future(anext(events, None))
                    number, (name, data) = event
                    final = name in ("done", "error")
                    if name == "delta":
                        at, waits = number, True
                        live.add(data["text"])
                if final or (waits and clock() >= due):
                    html, cost = await asyncio.to_thread(_render, live, final)
                    due, waits = clock() + max(APART, _SHARE * cost), False
                    if html["blocks"]:
                        yield at, ("html", html)
                if name not in ("", "delta"):
                    yield number, (name, data)
        finally:
            following.cancel()
            await asyncio.wait({following})


def _render(live: LiveMarkdown, complete: bool) -> tuple[dict[str, Any], float]:
    """Return the data of an event, and the processor time of its rendering in seconds."""
    started = time.thread_time()
    changes, count = live.changes(complete=complete)
    return {"blocks": [asdict(change) for change in changes], "count": count}, time.thread_time() - started
