"""/v1: the OpenAI-compatible API. The request's messages are the whole context; Daybook adds what it injects."""

from dataclasses import replace
from typing import Any

from django.http import HttpResponse, HttpResponseBase
from ninja import Router

from gateway import sse
from gateway.agents.rows import agent_find, require_key
from gateway.api.openai_answer import completion_chunks, error_line, whole_completion
from gateway.api.openai_body import read_aside, read_body
from gateway.api.openai_command import command_completion
from gateway.api.openai_plain import plain_answer
from gateway.api.openai_schemas import CHAT_COMPLETIONS, MODEL, MODELS
from gateway.api.v1_turn import headed, json_response, open_turn, plain_request_of, v1_request_of
from gateway.authentication import require_writer
from gateway.command_syntax import without_commands
from gateway.commands import answer_v1, command_in
from gateway.joined import turn_of
from gateway.models import Agent
from gateway.turn_events import TurnOptions
from memories.batches import in_slices_to_the_end
from memories.caller import ApiRequest, Caller
from memories.database import in_read_thread

router = Router()


@router.get("/models", openapi_extra=MODELS)
async def models(request: ApiRequest) -> HttpResponse:
    """The agents this key may use."""
    agents = await in_read_thread(_agents, request.auth)
    data = [_model_json(agent) for agent in agents]
    # The last three are of Anthropic's form, whose clients read this list, too.
    ends = {"first_id": data[0]["id"] if data else None, "last_id": data[-1]["id"] if data else None}
    return json_response({"object": "list", "data": data, "has_more": False, **ends})


@router.get("/models/{path:name}", openapi_extra=MODEL)
async def model(request: ApiRequest, name: str) -> HttpResponse:
    """One agent."""
    agent = await in_read_thread(agent_find, request.auth, name)
    return json_response(_model_json(agent))


@router.post("/chat/completions", openapi_extra=CHAT_COMPLETIONS)
async def chat_completions(request: ApiRequest) -> HttpResponseBase:
    """A chat completion, streamed or not."""
    caller: Caller = request.auth
    require_writer(caller)
    body = await read_aside(read_body, request.body)
    if not body.is_turn(request.headers):
        asked = plain_request_of(body)
        return await plain_answer(caller, asked, stream=body.stream, include_usage=body.include_usage)
    if command_in(body.messages):
        answered = await in_slices_to_the_end(answer_v1(caller, v1_request_of(request, body)))
        return command_completion(answered, stream=body.stream, include_usage=body.include_usage)
    v1_request = v1_request_of(request, body)
    context = await open_turn(caller, replace(v1_request, messages=without_commands(v1_request.messages)))
    turn = turn_of(context, TurnOptions(stream=body.stream, parameters=body.parameters, client_tools=body.tools))
    if not body.stream:
        return headed(json_response(await whole_completion(turn)), context)
    # The first chunk is waited for here: what goes wrong before it is answered with a status, not with a 200.
    chunks = await sse.begin(completion_chunks(turn, include_usage=body.include_usage), error_line)
    return headed(sse.response(chunks), context)


def _agents(caller: Caller) -> list[Agent]:
    require_key(caller)
    agents = Agent.objects.order_by("name")
    return [agent for agent in agents if not caller.limits or agent.name in caller.agents]


def _model_json(agent: Agent) -> dict[str, Any]:
    """Return an agent as a model, in the forms of OpenAI and of Anthropic at once."""
    return {
        "id": agent.name,
        "object": "model",
        "created": int(agent.created_at.timestamp()),
        "owned_by": "daybook",
        "type": "model",
        "display_name": agent.name,
        "created_at": agent.created_at.isoformat(),
    }
