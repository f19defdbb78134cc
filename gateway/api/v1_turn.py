"""How a request to /v1 becomes a turn: which session it names, and the run that is opened in it."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from django.http.request import HttpHeaders

from gateway.api.openai_body import CompletionBody
from gateway.attachments.storing import AttachmentStore
from gateway.command_syntax import without_commands
from gateway.commands import answer_v1, command_in
from gateway.errors import SessionBusy
from gateway.limits.allowances import allowed
from gateway.models import Run
from gateway.requests import request_id
from gateway.runs.by_id import MAX_EXTERNAL_ID
from gateway.runs.candidates import find_session
from gateway.runs.context import TurnContext
from gateway.runs.fingerprint import last_user_index, read_conversation
from gateway.runs.joined import ANSWERED_STATES, joined_context, running_state
from gateway.runs.opening import open_run
from gateway.runs.requested import AttachmentsNotStored, ComparisonNeeded, SameTurnRunning, V1Request
from gateway.runs.v1 import open_v1, split_system
from gateway.turns.events import TurnOptions
from gateway.turns.joined import AnyTurn, JoinedTurn, turn_of
from memories.caller import ApiRequest, Caller
from memories.database.access import in_read_thread
from memories.database.batches import in_slices_to_the_end
from memories.errors import InvalidRequest

BUSY_SECONDS = 2.0
_BUSY_POLL = 0.1
JOIN_SECONDS = 10.0
_MAX_KEY = 255
_MANY = 500
_MOST_SEARCHES = 50
_OPEN_WEBUI_CHAT = "x-openwebui-chat-id"
# Open WebUI names a temporary chat, which it does not store, after its browser tab, so several chats share such a name.
_UNSAVED = ("local:", "temporary:")
# Headers by which well-known clients name a conversation, in this order, as they sent them in November 2026.
_CONVERSATION_HEADERS = (
    _OPEN_WEBUI_CHAT,
    "x-session-affinity",  # opencode
    "x-session-id",  # opencode, Crush
    "x-goose-session-id",
    "thread-id",  # Codex; its helpers have threads of their own in one session
    "session-id",
)


def v1_request_of(request: ApiRequest, body: CompletionBody) -> V1Request:
    """Return the request for a turn, with what its headers and metadata say about the session."""
    client_system, messages = split_system(body.messages)
    header, caller = request.headers.get, request.auth
    named = body.metadata.get("session_id")
    session_ref = header("x-daybook-session", "") or (str(named) if isinstance(named, str | int) else "")
    chat_id = _conversation_id(request.headers)
    unsaved = header(_OPEN_WEBUI_CHAT, "").strip().startswith(_UNSAVED)
    return V1Request(
        agent=body.agent,
        messages=messages,
        client_system=client_system,
        session_ref=session_ref or chat_id,
        shared_ref=bool(chat_id) and not session_ref,
        temporary=_is_temporary(body.metadata) or unsaved or not caller.remembers,
        idempotency_key=header("idempotency-key", "")[:_MAX_KEY],
        is_retry=header("x-stainless-retry-count", "0") not in {"", "0"},
        request_id=request_id.get(),
    )


def _is_temporary(metadata: Mapping[str, Any]) -> bool:
    """Return True if `metadata.temporary` is true. Raises InvalidRequest for a value that is neither true nor false."""
    said = str(metadata.get("temporary") or "false").lower()
    if said not in {"true", "false"}:
        raise InvalidRequest('`metadata.temporary` is "true" or "false".', param="metadata.temporary")
    return said == "true"


def _conversation_id(headers: HttpHeaders) -> str:
    """Return the id by which a client names its conversation, or "". If a client asks several agents in one
    conversation, each agent has a session of its own with that id."""
    given = (headers.get(name, "").strip() for name in _CONVERSATION_HEADERS)
    return next((ref for ref in given if ref and len(ref) <= MAX_EXTERNAL_ID and not ref.startswith(_UNSAVED)), "")


async def begin_turn(caller: Caller, asked: V1Request, body: CompletionBody) -> AnyTurn:
    """Carry out a `/memory` command, or open the run of a turn if the key may still spend something.

    While another run of the session is open this waits for BUSY_SECONDS and then forks the session. A request that is
    being answered already is joined to that run. Raises what open_v1 raises, and RateLimited."""
    options = TurnOptions(
        stream=body.stream,
        parameters=body.parameters,
        client_tools=body.tools,
        functions_only=body.functions_only,
    )
    if command_in(body.messages):
        reply = await in_slices_to_the_end(answer_v1(caller, asked))
        return JoinedTurn(reply.context, options, reply.result)
    async with allowed(caller) as allowance, AttachmentStore(caller.owner_id) as attachments:
        kept, answered = without_commands(asked.messages)
        context = await _open(caller, replace(asked, messages=kept, after_command=answered), attachments)
        return turn_of(replace(context, allowance=allowance), options)


async def _open(caller: Caller, v1_request: V1Request, attachments: AttachmentStore) -> TurnContext:
    deadline = time.monotonic() + BUSY_SECONDS
    conversation, verdict, searches = None, None, 0
    newest = max(0, last_user_index(v1_request.messages))
    v1_request = replace(v1_request, messages=await attachments.messages(v1_request.messages, first=newest))
    if _takes_a_while(v1_request.messages, newest):  # the thread that writes must not wait for it
        conversation = await in_read_thread(read_conversation, caller.owner_id, v1_request.agent, v1_request.messages)
    while True:
        last_try = time.monotonic() >= deadline
        try:
            return await open_run(
                open_v1, caller, v1_request, fork_if_busy=last_try, conversation=conversation, verdict=verdict
            )
        except ComparisonNeeded:  # compare its turns outside of the transaction, without a lock
            searches += 1
            if searches > _MOST_SEARCHES:
                raise
            verdict = await in_read_thread(find_session, caller, v1_request, conversation)
        except AttachmentsNotStored:
            messages = await attachments.messages(v1_request.messages)
            v1_request = replace(v1_request, messages=messages, history_kept=True)
        except SameTurnRunning as running:
            if joined := await _joined(caller, UUID(running.details["run_id"])):
                await attachments.release()
                return joined
        except SessionBusy:
            if last_try:  # results of tools cannot go to a fork
                raise
            await asyncio.sleep(_BUSY_POLL)


def _takes_a_while(messages: Sequence[dict[str, Any]], newest: int) -> bool:
    """Return True for many messages, or many parts in the newest one."""
    content = messages[newest].get("content") if messages else None
    return len(messages) > _MANY or (isinstance(content, list) and len(content) > _MANY)


async def _joined(caller: Caller, run_id: UUID) -> TurnContext | None:
    """Return the run that answers the same request, once it is over or after JOIN_SECONDS. Return None if it failed or
    was stopped, for example because its client gave up: the turn is then asked for again."""
    deadline = time.monotonic() + JOIN_SECONDS
    while (state := await in_read_thread(running_state, caller.owner_id, run_id)) == Run.State.RUNNING:
        if time.monotonic() >= deadline:
            break
        await asyncio.sleep(_BUSY_POLL)
    ended_early = state != Run.State.RUNNING and state not in ANSWERED_STATES
    return None if ended_early else await in_read_thread(joined_context, caller.owner_id, run_id)
