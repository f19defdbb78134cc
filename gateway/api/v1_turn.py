"""What every operation of /v1 that begins a turn does: it names the session, opens the run and says which it was."""

import asyncio
import json
import time
from dataclasses import replace
from typing import Any
from uuid import UUID

from django.http import HttpResponse, HttpResponseBase

from gateway.api.client_ids import conversation_id
from gateway.api.openai_body import CompletionBody
from gateway.command_syntax import answered_command
from gateway.errors import SessionBusy
from gateway.limits.allowances import allowed
from gateway.models import Run
from gateway.passthrough import PlainRequest
from gateway.requests import request_id
from gateway.runs.candidates import find_session
from gateway.runs.context import TurnContext
from gateway.runs.fingerprint import read_conversation
from gateway.runs.joined import SAID, joined_context, running_state
from gateway.runs.opening import open_run
from gateway.runs.requested import SameTurnRunning, SessionUnknown, V1Request
from gateway.runs.v1 import open_v1, split_system
from memories.caller import ApiRequest, Caller
from memories.database import in_read_thread

BUSY_SECONDS = 2.0
_BUSY_POLL = 0.1
JOIN_SECONDS = 10.0
_MAX_KEY = 255
_MANY_MESSAGES = 500
_MOST_LOOKS = 50


def v1_request_of(request: ApiRequest, body: CompletionBody) -> V1Request:
    """Return the request for a turn, with what its headers and metadata say of the session."""
    client_system, messages = split_system(body.messages)
    header, caller = request.headers.get, request.auth
    named = body.metadata.get("session_id")
    session_ref = header("x-daybook-session", "") or (str(named) if isinstance(named, str | int) else "")
    chat_id = conversation_id(request.headers)
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
    """Open the run, if the key may still spend something; while another one of its session is open wait a little, then
    go on as a fork. A request that is being answered gets that answer.

    Raises what open_v1 raises, and RateLimited."""
    async with allowed(caller) as allowance:
        return replace(await _open(caller, v1_request), allowance=allowance)


async def _open(caller: Caller, v1_request: V1Request) -> TurnContext:
    deadline = time.monotonic() + BUSY_SECONDS
    conversation, finding, looks = None, None, 0
    if len(v1_request.messages) > _MANY_MESSAGES:  # reading them takes a while: not in the thread that writes
        conversation = await in_read_thread(read_conversation, caller.owner_id, v1_request.agent, v1_request.messages)
    while True:
        last_try = time.monotonic() >= deadline
        try:
            return await open_run(
                open_v1, caller, v1_request, fork_if_busy=last_try, conversation=conversation, finding=finding
            )
        except SessionUnknown:  # its turns are compared beside the writes of others, and without a lock
            looks += 1
            if looks > _MOST_LOOKS:
                raise
            finding = await in_read_thread(find_session, caller, v1_request)
        except SameTurnRunning as running:
            if joined := await _joined(caller, UUID(running.details["run_id"])):
                return joined
        except SessionBusy:
            if last_try:  # tool results for a session that is busy with something else: no fork can take them
                raise
            await asyncio.sleep(_BUSY_POLL)


async def _joined(caller: Caller, run_id: UUID) -> TurnContext | None:
    """Return the run that answers the same request, when it is over, or when it takes long; then its end is waited for
    with the answer. None if it was stopped, as the client that gave the first request up has it done, or failed: then
    the turn is asked for again."""
    deadline = time.monotonic() + JOIN_SECONDS
    while (state := await in_read_thread(running_state, caller.owner_id, run_id)) == Run.State.RUNNING:
        if time.monotonic() >= deadline:
            break
        await asyncio.sleep(_BUSY_POLL)
    over_without = state != Run.State.RUNNING and state not in SAID
    return None if over_without else await in_read_thread(joined_context, caller.owner_id, run_id)


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
