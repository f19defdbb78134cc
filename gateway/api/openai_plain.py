"""/v1/completions and /v1/embeddings, and requests to /v1/chat/completions that are not turns. They are passed to the
model server as they are, without session and memory."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from typing import Any

from django.http import HttpResponse, HttpResponseBase
from ninja import Router

from gateway import sse
from gateway.api.openai_answer import error_line
from gateway.api.openai_body import checked, read_aside, read_include_usage, read_object
from gateway.api.openai_schemas import COMPLETIONS as COMPLETIONS_SCHEMA
from gateway.api.openai_schemas import EMBEDDINGS as EMBEDDINGS_SCHEMA
from gateway.api.responding import respond
from gateway.authentication import require_writer
from gateway.passthrough import PlainCall, PlainRequest, open_plain, plain_chunks, plain_completion, plain_vectors
from gateway.upstream import COMPLETIONS, EMBEDDINGS
from memories.caller import ApiRequest, Caller
from memories.errors import InvalidRequest
from memories.limits import INPUTS

router = Router()


@router.post("/completions", openapi_extra=COMPLETIONS_SCHEMA)
async def completions(request: ApiRequest) -> HttpResponseBase:
    """What follows a text, or stands between `prompt` and `suffix`: for completions while typing."""
    require_writer(request.auth)
    body = await read_aside(partial(_read, "prompt"), request.body)
    stream, include_usage = bool(checked(body, "stream", bool)), read_include_usage(body)
    body.pop("stream", None)
    asked = PlainRequest(agent=body.pop("model"), parameters=body, path=COMPLETIONS)
    return await plain_answer(request.auth, asked, stream=stream, include_usage=include_usage)


@router.post("/embeddings", openapi_extra=EMBEDDINGS_SCHEMA)
async def embeddings(request: ApiRequest) -> HttpResponse:
    """Vectors of texts. `model` is an agent, for the configured embedding model on its upstream, or
    `upstream/model`."""
    require_writer(request.auth)
    body = await read_aside(partial(_read, "input"), request.body)
    asked = PlainRequest(agent=body.pop("model"), parameters=body, path=EMBEDDINGS)
    vectors = await plain_vectors(await open_plain(request.auth, asked))
    return HttpResponse(vectors, content_type="application/json")


async def plain_answer(caller: Caller, asked: PlainRequest, *, stream: bool, include_usage: bool) -> HttpResponseBase:
    """Answer a request with what the agent's model says, under the agent's name. Raises DomainErrors."""
    call = await open_plain(caller, asked)
    whole, chunks = partial(_plain_whole, call, asked.agent), partial(_plain_stream, call, asked.agent)
    return await respond(whole, partial(chunks, include_usage=include_usage), error_line, stream=stream)


async def _plain_whole(call: PlainCall, agent: str) -> dict[str, Any]:
    return {**await plain_completion(call), "model": agent}


async def _plain_stream(call: PlainCall, agent: str, *, include_usage: bool) -> AsyncGenerator[bytes]:
    async with aclosing(plain_chunks(call)) as chunks:
        async for chunk in chunks:
            if include_usage or chunk.get("choices"):
                yield sse.data_line({**chunk, "model": agent})
    yield sse.DONE_LINE


def _read(name: str, raw: bytes) -> dict[str, Any]:
    """Return a body whose field of that name is a text, a list of tokens, or a list of those. Raises InvalidRequest."""
    body = read_object(raw)
    given = body.get(name)
    if given is None and name == "prompt":  # a model may write from nothing
        return body
    if not isinstance(given, str | list) or (name == "input" and not given):
        raise InvalidRequest(f"`{name}` is a text, or a list of texts or of tokens.", param=name)
    if isinstance(given, list) and sum(not isinstance(item, int) for item in given) > INPUTS:
        raise InvalidRequest(f"A request has at most {INPUTS} texts in `{name}`.", param=name)
    return body
