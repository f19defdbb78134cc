"""/v1: the OpenAI-compatible API. The request's messages are the whole context, to which Daybook adds memories."""

from functools import partial
from typing import Any

from django.http import HttpResponse, HttpResponseBase
from ninja import Router

from gateway.agents.rows import agent_find, require_key
from gateway.api.openai_answer import completion_chunks, error_line, whole_completion
from gateway.api.openai_body import parse_async, read_body
from gateway.api.openai_plain import plain_answer
from gateway.api.openai_schemas import CHAT_COMPLETIONS, MODEL, MODELS
from gateway.api.responding import json_response, respond
from gateway.api.v1_turn import begin_turn, v1_request_of
from gateway.authentication import require_writer
from gateway.models import Agent
from memories.api.operations import reading
from memories.caller import ApiRequest, Caller
from memories.json_output import json_time
from memories.pagination import page_json

router = Router(tags=["Chat completions"])


@router.get("/models", openapi_extra=MODELS)
@reading
def models(request: ApiRequest) -> HttpResponse:
    """The agents this key may use."""
    caller = request.auth
    require_key(caller)
    agents = Agent.objects.order_by("name")
    data = [_model_json(agent) for agent in agents if not caller.limits or agent.name in caller.agents]
    return json_response(page_json(data))  # a form that clients of either API can read


@router.get("/models/{path:name}", openapi_extra=MODEL)
@reading
def model(request: ApiRequest, name: str) -> HttpResponse:
    """One agent."""
    return json_response(_model_json(agent_find(request.auth, name)))


@router.post("/chat/completions", openapi_extra=CHAT_COMPLETIONS)
async def chat_completions(request: ApiRequest) -> HttpResponseBase:
    """A chat completion, streamed or not."""
    caller: Caller = request.auth
    require_writer(caller)
    body = await parse_async(read_body, request.body)
    if not body.is_turn(request.headers):
        return await plain_answer(caller, body, stream=body.stream, include_usage=body.include_usage)
    turn = await begin_turn(caller, v1_request_of(request, body), body)
    return await respond(
        partial(whole_completion, turn),
        partial(completion_chunks, turn, include_usage=body.include_usage),
        error_line,
        stream=body.stream,
        context=turn.context,
    )


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
