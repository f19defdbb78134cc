"""Server-sent events: how a stream is written and which headers keep proxies from holding it back."""

import json
from collections.abc import AsyncIterator
from typing import Any

from django.http import StreamingHttpResponse


def event(name: str, data: Any, *, id: int | None = None) -> bytes:
    """One event of the native API."""
    head = f"id: {id}\n" if id is not None else ""
    return f"{head}event: {name}\ndata: {json.dumps(data, ensure_ascii=False, default=str)}\n\n".encode()


def data_line(data: Any) -> bytes:
    """One chunk as the OpenAI API writes it."""
    return b"data: " + json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode() + b"\n\n"


DONE_LINE = b"data: [DONE]\n\n"


def response(stream: AsyncIterator[bytes]) -> StreamingHttpResponse:
    """A streamed answer, never buffered."""
    return StreamingHttpResponse(
        stream,
        content_type="text/event-stream",
        headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"},
    )
