"""Turns a request to /v1 into a turn: finds the session that it names and opens a run in it."""

import asyncio
import contextlib
import re
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from django.http.request import HttpHeaders

from gateway.api.openai_body import LARGE_BYTES, CompletionBody, read_async
from gateway.attachments.storing import AttachmentStore
from gateway.command_syntax import without_commands
from gateway.commands import answer_v1, command_in
from gateway.errors import SessionBusy
from gateway.limits.allowances import allowed
from gateway.messages import last_user_index
from gateway.models import Run
from gateway.requests import header_text, request_id
from gateway.runs.branches import branch_choose
from gateway.runs.by_id import MAX_EXTERNAL_ID
from gateway.runs.candidates import find_continuation
from gateway.runs.context import TurnContext
from gateway.runs.joined import ANSWERED_STATES, running_state
from gateway.runs.opening import open_run
from gateway.runs.own_messages import split_client_notes
from gateway.runs.requested import AttachmentsNotStored, ComparisonNeeded, OtherBranchShown, SameTurnRunning, V1Request
from gateway.runs.v1 import open_v1, split_system
from gateway.turns.engine import Turn
from gateway.turns.events import TurnOptions
from gateway.turns.joined import AnyTurn, JoinedTurn
from memories.caller import ApiRequest, Caller
from memories.database.access import in_read_thread
from memories.database.batches import in_slices_to_the_end
from memories.errors import InvalidRequest

BUSY_SECONDS = 2.0
_BUSY_POLL = 0.1
JOIN_SECONDS = 10.0
_MAX_KEY = 255
_MAX_SEARCHES = 50
_OPEN_WEBUI_CHAT = "x-openwebui-chat-id"
# Open WebUI does not store temporary chats and names them after the browser tab, so several chats share such an id.
_TEMPORARY_PREFIXES = ("local:", "temporary:")
_AFFINITY = "x-session-affinity"
# nanobot sends random bytes in that header, the same for all chats of its process.
_RANDOM = re.compile("[0-9a-f]{16}|[0-9a-f]{32}")
# Headers in which well-known clients send a conversation id, in order of precedence, as of November 2026.
_CONVERSATION_HEADERS = (
    _OPEN_WEBUI_CHAT,
    _AFFINITY,  # opencode
    "x-session-id",  # opencode, Crush
    "x-goose-session-id",
    "thread-id",  # Codex; its subagents have their own threads in one session
    "session-id",
)


def v1_request_of(request: ApiRequest, body: CompletionBody) -> V1Request:
    """Return the request for a turn, including what its headers and metadata say about the session."""
    client_system, messages = split_system(body.messages)
    header, caller = request.headers.get, request.auth
    session_id = body.metadata.get("session_id")
    is_id = isinstance(session_id, str | int) and not isinstance(session_id, bool)
    session_ref = header_text(header("x-daybook-session", "")) or (str(session_id) if is_id else "")
    chat_id = _conversation_id(request.headers)
    unsaved = header(_OPEN_WEBUI_CHAT, "").strip().startswith(_TEMPORARY_PREFIXES)
    return V1Request(
        caller=caller,
        agent=body.agent,
        messages=messages,
        client_system=client_system,
        session_ref=session_ref or chat_id,
        shared_ref=bool(chat_id) and not session_ref,
        temporary=_is_temporary(body.metadata) or unsaved or not caller.remembers,
        idempotency_key=header("idempotency-key", "")[:_MAX_KEY],
        is_retry=header("x-stainless-retry-count", "0") not in {"", "0"},
        request_id=request_id.get(),
        is_large=len(request.body) > LARGE_BYTES,
    )


def _is_temporary(metadata: Mapping[str, Any]) -> bool:
    """Return the value of `metadata.temporary`. Raises InvalidRequest unless it is true or false."""
    value = str(metadata.get("temporary") or "false").lower()
    if value not in {"true", "false"}:
        raise InvalidRequest('`metadata.temporary` must be "true" or "false".', param="metadata.temporary")
    return value == "true"


def _conversation_id(headers: HttpHeaders) -> str:
    """Return the id that a client gives its conversation, or "". If the client uses several agents in one conversation,
    each agent gets its own session with that id."""
    for name in _CONVERSATION_HEADERS:
        id = headers.get(name, "").strip()
        if name == _AFFINITY and _RANDOM.fullmatch(id):
            continue
        if id and len(id) <= MAX_EXTERNAL_ID and not id.startswith(_TEMPORARY_PREFIXES):
            return id
    return ""


async def begin_turn(caller: Caller, v1_request: V1Request, body: CompletionBody) -> AnyTurn:
    """Run a `/memory` command, or open the run of a turn if the key's limits allow it.

    While the session has another open run, wait for up to BUSY_SECONDS and then fork the session. A request that is
    already being answered joins that run. Raises the errors of open_v1, and RateLimited."""
    options = TurnOptions(
        stream=body.stream,
        parameters=body.parameters,
        client_tools=body.tools,
        functions_only=body.functions_only,
        searched=body.searched,
    )
    if command_in(body.messages):
        reply = await in_slices_to_the_end(answer_v1(v1_request))
        return JoinedTurn(reply.context, options, reply.result)
    async with allowed(caller) as allowance, AttachmentStore(caller.owner_id) as attachments:
        v1_request = await read_async(partial(_for_model, v1_request), is_large=v1_request.is_large)
        first = max(0, last_user_index(v1_request.messages))
        v1_request = replace(v1_request, messages=await attachments.messages(v1_request.messages, first=first))
        context = await _open(v1_request, attachments)
        turn = JoinedTurn if context.joined else Turn
        return turn(replace(context, allowance=allowance), options)


def _for_model(v1_request: V1Request) -> V1Request:
    """Return the request without commands, their answers, and what the client wrote after the results of its tools."""
    messages, after_command = without_commands(v1_request.messages)
    messages, notes = split_client_notes(messages)
    return replace(v1_request, messages=messages, notes=notes, after_command=after_command)


async def _open(v1_request: V1Request, attachments: AttachmentStore) -> TurnContext:
    deadline = time.monotonic() + BUSY_SECONDS
    continuation, searches = None, 0
    await _read_if_large(v1_request)
    while True:
        last_try = time.monotonic() >= deadline
        try:
            return await open_run(open_v1, v1_request, fork_if_busy=last_try, continuation=continuation)
        except ComparisonNeeded:  # compare turns outside the transaction, without a lock
            searches += 1
            if searches > _MAX_SEARCHES:
                raise
            continuation = await in_read_thread(find_continuation, v1_request)
        except AttachmentsNotStored:
            messages = await attachments.messages(v1_request.messages)
            v1_request = replace(v1_request, messages=messages, history_kept=True)
            await _read_if_large(v1_request)
        except OtherBranchShown as refused:
            continuation = None  # it is that of the branch shown so far
            with contextlib.suppress(SessionBusy):  # it is busy for this request, too, which then waits or is forked
                await in_slices_to_the_end(branch_choose(v1_request.caller, refused.run.session_id, refused.run.pk))
        except SameTurnRunning as running:
            if await _answers(running.context):
                await attachments.release()
                return running.context
        except SessionBusy:
            if last_try:  # tool results cannot go to a fork
                raise
            await asyncio.sleep(_BUSY_POLL)


async def _read_if_large(v1_request: V1Request) -> None:
    """Read the conversation of a large request, so that the database thread that writes is not kept waiting."""
    last_user = last_user_index(v1_request.messages)
    several = last_user > 0 and v1_request.messages[last_user - 1].get("role") == "user"
    if several or v1_request.is_large:
        await in_read_thread(lambda: (v1_request.conversation, v1_request.said_before))


async def _answers(context: TurnContext) -> bool:
    """Wait until the run that answers the same request has ended, for JOIN_SECONDS at most. Return False if it failed
    or was stopped, for example because its client disconnected: the request then gets a new run."""
    deadline = time.monotonic() + JOIN_SECONDS
    while (state := await in_read_thread(running_state, context.owner_id, context.run_id)) == Run.State.RUNNING:
        if time.monotonic() >= deadline:
            return True
        await asyncio.sleep(_BUSY_POLL)
    return state in ANSWERED_STATES
