"""Responses of the APIs whose answers come from models: whole as JSON, or streamed."""

import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any
from uuid import UUID

from django.http import HttpResponse, HttpResponseBase

from gateway import sse
from gateway.runs.context import TurnContext
from memories.errors import DomainError


async def respond(
    whole: Callable[[], Awaitable[Any]],
    pieces: Callable[[], AsyncGenerator[bytes]],
    late_error: Callable[[Exception], bytes],
    *,
    stream: bool,
    context: TurnContext | None = None,
    keep_alive: bytes = sse.KEEP_ALIVE,
) -> HttpResponseBase:
    """Return the response to a request that a model answers: the JSON of `whole`, or with `stream` the server-sent
    events of `pieces`. `late_error` writes an error that is raised after the first piece.

    With the `context` of a turn, the response has the headers that name its session and run; so has the DomainError
    that is raised if the turn fails."""
    response: HttpResponseBase
    try:
        if stream:
            # Wait for the first piece, so that an error before it is answered with its own status.
            response = sse.EventStream(await sse.Alive(pieces(), late_error, keep_alive).begin())
        else:
            response = json_response(await whole())
    except DomainError as error:
        if context:
            error.headers |= _headers(context.session_id, context.run_id)
        raise
    return headed(response, context.session_id, context.run_id) if context else response


def headed(response: HttpResponseBase, session_id: UUID, run_id: UUID) -> HttpResponseBase:
    """Return the response with the headers that name a session and a run."""
    for name, value in _headers(session_id, run_id).items():
        response[name] = value
    return response


def _headers(session_id: UUID, run_id: UUID) -> dict[str, str]:
    return {"x-daybook-session": str(session_id), "x-daybook-run": str(run_id)}


def json_response(data: Any, *, status: int = 200) -> HttpResponse:
    """Return a JSON response. Letters of all scripts are written as they are, and not as escapes."""
    return HttpResponse(json.dumps(data, ensure_ascii=False), content_type="application/json", status=status)
