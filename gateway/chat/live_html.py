"""Converts the text of a turn's event stream to HTML for a page that shows the answer while it is streamed.

`delta` events become `html` events, `{"blocks": [{"block", "keep", "html"}, …], "count"}`: see
gateway.chat.live_markdown. Rendering runs in a thread and takes at most a twentieth of the stream's duration."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from gateway.chat.live_markdown import LiveMarkdown
from gateway.sse import with_pauses

MIN_INTERVAL_SECONDS = 0.06
"""Minimum time between two renderings."""
_PAUSE_FACTOR = 20  # the pause after a rendering, as a multiple of its processor time

_Event = tuple[int, tuple[str, dict[str, Any]]]


async def as_html(events: AsyncGenerator[_Event], scope: str) -> AsyncGenerator[_Event]:
    """Yield a turn's events with `delta` replaced by `html`. `scope` becomes part of ids in the HTML."""
    live = LiveMarkdown(scope)
    clock = asyncio.get_running_loop().time
    due, delta_number, pending = 0.0, 0, False
    pauses = with_pauses(events, lambda: max(0.0, due - clock()) if pending else None)
    async with aclosing(pauses):
        async for event in pauses:
            name, final = "", False
            if event is not None:
                number, (name, data) = event
                final = name in ("done", "error")
                if name == "delta":
                    delta_number, pending = number, True
                    live.add(data["text"])
            if final or (pending and clock() >= due):
                html, cost = await asyncio.to_thread(_render, live, final)
                due, pending = clock() + max(MIN_INTERVAL_SECONDS, _PAUSE_FACTOR * cost), False
                if html["blocks"]:
                    yield delta_number, ("html", html)
            if name not in ("", "delta"):
                yield number, (name, data)


def _render(live: LiveMarkdown, complete: bool) -> tuple[dict[str, Any], float]:
    """Return the data of an `html` event and the processor seconds spent on it."""
    started = time.thread_time()
    blocks, count = live.changes(complete=complete)
    return {"blocks": blocks, "count": count}, time.thread_time() - started
