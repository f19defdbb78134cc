"""/v1: the OpenAI-compatible API. The messages of a chat completion are the whole context, to which Daybook adds
memories. Text completions, embeddings, and chat completions that are not turns are forwarded to the model server
without a session and without memory."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from typing import Any

from django.http import HttpResponse, HttpResponseBase
from ninja import Router

from gateway import sse
from gateway.agents.rows import agent_find, require_key
from gateway.api import openai_schemas as schemas
from gateway.api.openai_answer import completion_chunks, error_line, whole_completion
from gateway.api.openai_body import CompletionBody, parse_async, read_body, read_include_usage, read_object, typed_field
from gateway.api.responding import json_response, respond
from gateway.api.v1_turn import begin_turn, v1_request_of
from gateway.authentication import require_writer
from gateway.models import Agent
from gateway.passthrough import PlainCall, PlainRequest, open_plain, plain_chunks, plain_completion, plain_vectors
from gateway.runs.requested import V1Request
from gateway.upstream import COMPLETIONS, EMBEDDINGS
from memories.api.operations import reading
from memories.caller import ApiRequest, Caller
from memories.errors import InvalidRequest
from memories.json_output import json_time
from memories.limits import INPUTS
from memories.pagination import page_json

router = Router(tags=["Chat completions"])
_PLAIN = "Completions and embeddings"


@router.get("/models", openapi_extra=schemas.MODELS)
@reading
def models(request: ApiRequest) -> HttpResponse:
    """The agents this key may use."""
    caller = request.auth
    require_key(caller)
    agents = Agent.objects.order_by("name")
    data = [_model_json(agent) for agent in agents if not caller.limits or agent.name in caller.agents]
    return json_response(page_json(data))  # a form that clients of either API can read


@router.get("/models/{path:name}", openapi_extra=schemas.MODEL)
@reading
def model(request: ApiRequest, name: str) -> HttpResponse:
    """One agent."""
    return json_response(_model_json(agent_find(request.auth, name)))


@router.post("/chat/completions", openapi_extra=schemas.CHAT_COMPLETIONS)
async def chat_completions(request: ApiRequest) -> HttpResponseBase:
    """A chat completion, streamed or not."""
    caller: Caller = request.auth
    require_writer(caller)
    body, v1_request = await parse_async(partial(_read, request), request.body)
    if v1_request is None:
        return await _plain_answer(caller, body, stream=body.stream, include_usage=body.include_usage)
    turn = await begin_turn(caller, v1_request, body)
    return await respond(
        partial(whole_completion, turn),
        partial(completion_chunks, turn, include_usage=body.include_usage),
        error_line,
        stream=body.stream,
        context=turn.context,
    )


@router.post("/completions", tags=[_PLAIN], openapi_extra=schemas.COMPLETIONS)
async def completions(request: ApiRequest) -> HttpResponseBase:
    """Complete a text after `prompt`, or between `prompt` and `suffix`: for completions while typing."""
    require_writer(request.auth)
    body = await parse_async(partial(_read_plain, "prompt"), request.body)
    stream, include_usage = bool(typed_field(body, "stream", bool)), read_include_usage(body)
    body.pop("stream", None)
    plain_request = PlainRequest(agent=body.pop("model"), parameters=body, path=COMPLETIONS)
    return await _plain_answer(request.auth, plain_request, stream=stream, include_usage=include_usage)


@router.post("/embeddings", tags=[_PLAIN], openapi_extra=schemas.EMBEDDINGS)
async def embeddings(request: ApiRequest) -> HttpResponse:
    """Return vectors of texts. `model` is an agent, for the configured embedding model on its upstream, or
    `upstream/model`."""
    require_writer(request.auth)
    body = await parse_async(partial(_read_plain, "input"), request.body)
    plain_request = PlainRequest(agent=body.pop("model"), parameters=body, path=EMBEDDINGS)
    vectors = await plain_vectors(await open_plain(request.auth, plain_request))
    return HttpResponse(vectors, content_type="application/json")


def _read(request: ApiRequest, raw: bytes) -> tuple[CompletionBody, V1Request | None]:
    """Return a chat completion and, if it is a turn, the request for it. Raises InvalidRequest, TooLarge."""
    body = read_body(raw)
    return body, v1_request_of(request, body) if body.is_turn(request.headers) else None


def _model_json(agent: Agent) -> dict[str, Any]:
    """Return an agent as a model, with the fields of both OpenAI's and Anthropic's API."""
    return {
        "id": agent.name,
        "object": "model",
        "created": int(agent.created_at.timestamp()),
        "owned_by": "daybook",
        "type": "model",
        "display_name": agent.name,
        "created_at": json_time(agent.created_at),
    }


async def _plain_answer(
    caller: Caller, plain_request: PlainRequest, *, stream: bool, include_usage: bool
) -> HttpResponseBase:
    """Return the answer of the agent's model, with the agent's name as the model. Raises DomainErrors."""
    call, agent = await open_plain(caller, plain_request), plain_request.agent
    chunks = partial(_plain_chunks, call, agent, include_usage=include_usage)
    return await respond(partial(_plain_completion, call, agent), chunks, error_line, stream=stream)


async def _plain_completion(call: PlainCall, agent: str) -> dict[str, Any]:
    return {**await plain_completion(call), "model": agent}


async def _plain_chunks(call: PlainCall, agent: str, *, include_usage: bool) -> AsyncGenerator[bytes]:
    async with aclosing(plain_chunks(call)) as chunks:
        async for chunk in chunks:
            if include_usage or chunk.get("choices"):
                yield sse.data_line({**chunk, "model": agent})
    yield sse.DONE_LINE


def _read_plain(name: str, raw: bytes) -> dict[str, Any]:
    """Parse a body in which the field `name` is a text, a list of tokens, or a list of those. Raises InvalidRequest."""
    body = read_object(raw)
    body.pop("messages", None)  # they would be read as those of a chat completion
    value = body.get(name)
    if value is None and name == "prompt":  # a model may write without a prompt
        return body
    if not isinstance(value, str | list) or (name == "input" and not value):
        raise InvalidRequest(f"`{name}` must be a text, or a list of texts or of tokens.", param=name)
    if isinstance(value, list) and sum(not isinstance(item, int) for item in value) > INPUTS:
        raise InvalidRequest(f"A request has at most {INPUTS} texts in `{name}`.", param=name)
    return body
