"""What every operation of /v1 that begins a turn does: it names the session, opens the run and says which it was."""

import asyncio
import json
import time
from typing import Any

from django.http import HttpResponse, HttpResponseBase

from gateway.api.openai_body import CompletionBody
from gateway.command_syntax import answered_command
from gateway.errors import SessionBusy
from gateway.passthrough import PlainRequest
from gateway.requests import request_id
from gateway.runs.context import TurnContext
from gateway.runs.fingerprint import read_conversation
from gateway.runs.opening import open_run
from gateway.runs.resolve import V1Request
from gateway.runs.v1 import open_v1, split_system
from memories.caller import ApiRequest, Caller
from memories.database import in_read_thread

BUSY_SECONDS = 2.0
_BUSY_POLL = 0.1
_MAX_KEY = 255
_MANY_MESSAGES = 500


def v1_request_of(request: ApiRequest, body: CompletionBody) -> V1Request:
    """Return the request for a turn, with what its headers and metadata say of the session."""
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


async def open_turn(caller: Caller, v1_request: V1Request) -> TurnContext:
    """Open the run; while another one of its session is open wait a little, then go on as a fork.
    Raises what open_v1 raises."""
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


def headed(response: HttpResponseBase, context: TurnContext) -> HttpResponseBase:
    """Return the answer with the headers that name its session and run."""
    response["x-daybook-session"] = str(context.session_id)
    response["x-daybook-run"] = str(context.run_id)
    return response


def json_response(data: Any) -> HttpResponse:
    """Return JSON, readable in every script."""
    return HttpResponse(json.dumps(data, ensure_ascii=False), content_type="application/json")


def plain_request_of(body: CompletionBody) -> PlainRequest:
    """Return a request that is not a turn of a conversation, as it is passed on."""
    return PlainRequest(
        agent=body.agent,
        messages=body.messages,
        tools=body.tools,
        parameters=body.parameters,
        request_id=request_id.get(),
    )
