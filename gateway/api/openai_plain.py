"""/v1/completions and /v1/embeddings, and requests to /v1/chat/completions that are not turns. They are forwarded to
the model server without a session and without memory."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from typing import Any

from django.http import HttpResponse, HttpResponseBase
from ninja import Router

from gateway import sse
from gateway.api.openai_answer import error_line
from gateway.api.openai_body import parse_async, read_include_usage, read_object, typed_field
from gateway.api.openai_schemas import COMPLETIONS as COMPLETIONS_SCHEMA
from gateway.api.openai_schemas import EMBEDDINGS as EMBEDDINGS_SCHEMA
from gateway.api.responding import respond
from gateway.authentication import require_writer
from gateway.passthrough import PlainCall, PlainRequest, open_plain, plain_chunks, plain_completion, plain_vectors
from gateway.upstream import COMPLETIONS, EMBEDDINGS
from memories.caller import ApiRequest, Caller
from memories.errors import InvalidRequest
from memories.limits import INPUTS

router = Router(tags=["Completions and embeddings"])


@router.post("/completions", openapi_extra=COMPLETIONS_SCHEMA)
async def completions(request: ApiRequest) -> HttpResponseBase:
    """Complete a text after `prompt`, or between `prompt` and `suffix`: for completions while typing."""
    require_writer(request.auth)
    body = await parse_async(partial(_read, "prompt"), request.body)
    stream, include_usage = bool(typed_field(body, "stream", bool)), read_include_usage(body)
    body.pop("stream", None)
    plain_request = PlainRequest(agent=body.pop("model"), parameters=body, path=COMPLETIONS)
    return await plain_answer(request.auth, plain_request, stream=stream, include_usage=include_usage)


@router.post("/embeddings", openapi_extra=EMBEDDINGS_SCHEMA)
async def embeddings(request: ApiRequest) -> HttpResponse:
    """Return vectors of texts. `model` is an agent, for the configured embedding model on its upstream, or
    `upstream/model`."""
    require_writer(request.auth)
    body = await parse_async(partial(_read, "input"), request.body)
    plain_request = PlainRequest(agent=body.pop("model"), parameters=body, path=EMBEDDINGS)
    vectors = await plain_vectors(await open_plain(request.auth, plain_request))
    return HttpResponse(vectors, content_type="application/json")


async def plain_answer(
    caller: Caller, plain_request: PlainRequest, *, stream: bool, include_usage: bool
) -> HttpResponseBase:
    """Return the answer of the agent's model, with the agent's name as the model. Raises DomainErrors."""
    call, agent = await open_plain(caller, plain_request), plain_request.agent
    chunks = partial(_chunks, call, agent, include_usage=include_usage)
    return await respond(partial(_completion, call, agent), chunks, error_line, stream=stream)


async def _completion(call: PlainCall, agent: str) -> dict[str, Any]:
    return {**await plain_completion(call), "model": agent}


async def _chunks(call: PlainCall, agent: str, *, include_usage: bool) -> AsyncGenerator[bytes]:
    async with aclosing(plain_chunks(call)) as chunks:
        async for chunk in chunks:
            if include_usage or chunk.get("choices"):
                yield sse.data_line({**chunk, "model": agent})
    yield sse.DONE_LINE


def _read(name: str, raw: bytes) -> dict[str, Any]:
    """Parse a body in which the field `name` is a text, a list of tokens, or a list of those. Raises InvalidRequest."""
    body = read_object(raw)
    value = body.get(name)
    if value is None and name == "prompt":  # a model may write without a prompt
        return body
    if not isinstance(value, str | list) or (name == "input" and not value):
        raise InvalidRequest(f"`{name}` must be a text, or a list of texts or of tokens.", param=name)
    if isinstance(value, list) and sum(not isinstance(item, int) for item in value) > INPUTS:
        raise InvalidRequest(f"A request has at most {INPUTS} texts in `{name}`.", param=name)
    return body
