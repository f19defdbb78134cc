"""/v1: the OpenAI-compatible API. The request's messages are the whole context; Daybook adds what it injects."""

import asyncio
import json
import time
from dataclasses import replace
from typing import Any

from django.http import HttpResponse, HttpResponseBase
from ninja import Router

from gateway import sse
from gateway.agents.rows import agent_find, require_key
from gateway.api.openai_answer import completion_chunks, error_line, whole_completion
from gateway.api.openai_body import CompletionBody, read_aside, read_body
from gateway.api.openai_command import command_completion
from gateway.api.openai_plain import plain_answer
from gateway.api.openai_schemas import CHAT_COMPLETIONS, MODEL, MODELS
from gateway.authentication import require_writer
from gateway.command_syntax import answered_command, without_commands
from gateway.commands import answer_v1, command_in
from gateway.errors import SessionBusy
from gateway.models import Agent
from gateway.passthrough import PlainRequest
from gateway.requests import request_id
from gateway.runs.context import TurnContext
from gateway.runs.fingerprint import read_conversation
from gateway.runs.opening import open_run
from gateway.runs.resolve import V1Request
from gateway.runs.v1 import open_v1, split_system
from gateway.turns import Turn, TurnOptions
from memories.batches import in_slices_to_the_end
from memories.caller import ApiRequest, Caller
from memories.database import in_read_thread

router = Router()
BUSY_SECONDS = 2.0
_BUSY_POLL = 0.1
_MAX_KEY = 255
_MANY_MESSAGES = 500


@router.get("/models", openapi_extra=MODELS)
async def models(request: ApiRequest) -> HttpResponse:
    """The agents this key may use."""
    agents = await in_read_thread(_agents, request.auth)
    return _json({"object": "list", "data": [_model_json(agent) for agent in agents]})


@router.get("/models/{path:name}", openapi_extra=MODEL)
async def model(request: ApiRequest, name: str) -> HttpResponse:
    """One agent."""
    agent = await in_read_thread(agent_find, request.auth, name)
    return _json(_model_json(agent))


@router.post("/chat/completions", openapi_extra=CHAT_COMPLETIONS)
async def chat_completions(request: ApiRequest) -> HttpResponseBase:
    """A chat completion, streamed or not."""
    caller: Caller = request.auth
    require_writer(caller)
    body = await read_aside(read_body, request.body)
    if not body.is_turn:
        return await _plain(caller, body)
    if command_in(body.messages):
        answered = await in_slices_to_the_end(answer_v1(caller, _v1_request(request, body)))
        return command_completion(answered, stream=body.stream, include_usage=body.include_usage)
    v1_request = _v1_request(request, body)
    context = await _open(caller, replace(v1_request, messages=without_commands(v1_request.messages)))
    turn = Turn(context, TurnOptions(stream=body.stream, parameters=body.parameters, client_tools=body.tools))
    if not body.stream:
        return _headed(_json(await whole_completion(turn)), context)
    # The first chunk is waited for here: what goes wrong before it is answered with a status, not with a 200.
    chunks = await sse.begin(completion_chunks(turn, include_usage=body.include_usage), error_line)
    return _headed(sse.response(chunks), context)


def _v1_request(request: ApiRequest, body: CompletionBody) -> V1Request:
    client_system, messages = split_system(body.messages)
    header, caller = request.headers.get, request.auth
    named = body.metadata.get("session_id")
    session_ref = header("x-daybook-session", "") or (str(named) if isinstance(named, str | int) else "")
    chat_id = header("x-openwebui-chat-id", "")
    return V1Request(
        agent=body.agent,
        messages=messages,
        client_system=client_system,
        session_ref=session_ref or chat_id,
        shared_ref=bool(chat_id) and not session_ref,
        temporary=str(body.metadata.get("temporary", "")).lower() == "true" or not caller.remembers,
        idempotency_key=header("idempotency-key", "")[:_MAX_KEY],
        is_retry=header("x-stainless-retry-count", "0") not in {"", "0"},
        request_id=request_id.get(),
        after_command=answered_command(messages),
    )


async def _open(caller: Caller, v1_request: V1Request) -> TurnContext:
    """Open the run; while another one of its session is open wait a little, then go on as a fork."""
    deadline = time.monotonic() + BUSY_SECONDS
    conversation = None
    if len(v1_request.messages) > _MANY_MESSAGES:  # reading them takes a while: not in the thread that writes
        conversation = await in_read_thread(read_conversation, caller.owner_id, v1_request.agent, v1_request.messages)
    while True:
        last_try = time.monotonic() >= deadline
        try:
            return await open_run(open_v1, caller, v1_request, fork_if_busy=last_try, conversation=conversation)
        except SessionBusy:
            if last_try:  # tool results for a session that is busy with something else: no fork can take them
                raise
            await asyncio.sleep(_BUSY_POLL)


async def _plain(caller: Caller, body: CompletionBody) -> HttpResponseBase:
    """Answer a request that is not a turn of a conversation."""
    asked = PlainRequest(
        agent=body.agent,
        messages=body.messages,
        tools=body.tools,
        parameters=body.parameters,
        request_id=request_id.get(),
    )
    return await plain_answer(caller, asked, stream=body.stream, include_usage=body.include_usage)


def _headed(response: HttpResponseBase, context: TurnContext) -> HttpResponseBase:
    response["x-daybook-session"] = str(context.session_id)
    response["x-daybook-run"] = str(context.run_id)
    return response


def _agents(caller: Caller) -> list[Agent]:
    require_key(caller)
    agents = Agent.objects.order_by("name")
    return [agent for agent in agents if not caller.agents or agent.name in caller.agents]


def _model_json(agent: Agent) -> dict[str, Any]:
    return {
        "id": agent.name,
        "object": "model",
        "created": int(agent.created_at.timestamp()),
        "owned_by": "daybook",
    }


def _json(data: Any) -> HttpResponse:
    return HttpResponse(json.dumps(data, ensure_ascii=False), content_type="application/json")
