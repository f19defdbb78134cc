"""HTTP responses for answers of models: JSON, or a stream of server-sent events."""

import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from django.http import HttpResponse, HttpResponseBase

from gateway import sse
from gateway.runs.context import TurnContext
from memories.errors import DomainError
from memories.json_output import LongTextEncoder


async def respond(
    whole: Callable[[], Awaitable[Any]],
    pieces: Callable[[], AsyncGenerator[bytes]],
    late_error: Callable[[Exception], bytes],
    *,
    stream: bool,
    context: TurnContext | None = None,
    keep_alive: bytes = sse.KEEP_ALIVE,
) -> HttpResponseBase:
    """Return the JSON of `whole`, or with `stream` the server-sent events of `pieces`. `late_error` encodes an error
    that is raised after the first piece.

    With the `context` of a turn, the response has headers with the ids of its session and run. A DomainError raised
    here has them, too."""
    response: HttpResponseBase
    with errors_name_run(context):
        if stream:
            # Wait for the first piece, so that an error before it gets its own HTTP status.
            response = sse.EventStream(await sse.KeepAliveStream(pieces(), late_error, keep_alive).begin())
        else:
            response = json_response(await whole())
    return with_run_headers(response, context.session_id, context.run_id) if context else response


@contextmanager
def errors_name_run(context: TurnContext | None) -> Iterator[None]:
    """Give a DomainError raised in the block the headers that `with_run_headers` sets."""
    try:
        yield
    except DomainError as error:
        if context:
            error.headers |= _run_headers(context.session_id, context.run_id)
        raise


def with_run_headers(response: HttpResponseBase, session_id: UUID, run_id: UUID) -> HttpResponseBase:
    for name, value in _run_headers(session_id, run_id).items():
        response[name] = value
    return response


def _run_headers(session_id: UUID, run_id: UUID) -> dict[str, str]:
    return {"x-daybook-session": str(session_id), "x-daybook-run": str(run_id)}


def json_response(data: Any, *, status: int = 200) -> HttpResponse:
    """Return a JSON response, with escapes for lone surrogates and no other non-ASCII characters."""
    content = json.dumps(data, ensure_ascii=False, cls=LongTextEncoder).encode(errors="backslashreplace")
    return HttpResponse(content, content_type="application/json", status=status)
