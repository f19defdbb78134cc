"""/v1/messages: the Anthropic Messages API. A translation: the turns are those of chat completions."""

import json
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from django.http import HttpResponse, HttpResponseBase
from ninja import Router

from gateway.agents.rows import agent_find
from gateway.api.anthropic_answer import PING, error_event, plain_events, streamed, turn_events, whole
from gateway.api.anthropic_body import read_messages, session_in
from gateway.api.anthropic_events import Event
from gateway.api.openai_body import CompletionBody, read_aside
from gateway.api.openai_schemas import ANTHROPIC_MESSAGES, COUNT_TOKENS
from gateway.api.responding import json_response, respond
from gateway.api.v1_turn import begin_turn, v1_request_of
from gateway.authentication import require_writer
from gateway.injection import injected_blocks
from gateway.passthrough import open_plain
from gateway.runs.by_id import MAX_EXTERNAL_ID
from gateway.runs.context import TurnContext, agent_config
from gateway.runs.requested import V1Request
from gateway.tokens import estimate
from memories import tools as memory_tools
from memories.books import book_state_if_made
from memories.caller import ApiRequest, Caller
from memories.database import in_read_thread
from memories.tokens import text_tokens

router = Router()


@router.post("/messages", openapi_extra=ANTHROPIC_MESSAGES)
async def messages(request: ApiRequest) -> HttpResponseBase:
    """A message, streamed or not."""
    caller: Caller = request.auth
    require_writer(caller)
    body, given = await read_aside(_read, request.body)
    if not body.is_turn(request.headers):
        return await _plain(caller, body, given)
    turn = await begin_turn(caller, _v1_request(request, body), body)
    return await _answered(turn_events(turn, body.names, given=given), body, turn.context)


@router.post("/messages/count_tokens", openapi_extra=COUNT_TOKENS)
async def count_tokens(request: ApiRequest) -> HttpResponse:
    """About how many tokens a request would take, with what Daybook adds to it. Nothing is asked or stored."""
    body = await read_aside(read_messages, request.body)
    counted = await in_read_thread(_estimate, request.auth, body, turn=body.is_turn(request.headers))
    return json_response({"input_tokens": counted})


def _v1_request(request: ApiRequest, body: CompletionBody) -> V1Request:
    """Return the request for a turn. Claude Code names its session, and the subagent that asks, if one does. It may ask
    several of our agents within one session."""
    asked = v1_request_of(request, body)
    if asked.session_ref:
        return asked
    header = request.headers.get
    named = header("x-claude-code-session-id", "") or session_in(body.metadata)
    session_ref = " ".join(name for name in (named, header("x-claude-code-agent-id", "")) if name)
    if not named or len(session_ref) > MAX_EXTERNAL_ID:
        return asked
    return replace(asked, session_ref=session_ref, shared_ref=True)


async def _plain(caller: Caller, body: CompletionBody, given: int) -> HttpResponseBase:
    """Answer a request that is not a turn of a conversation."""
    call = await open_plain(caller, body)
    events = plain_events(call, body.agent, body.names, stream=body.stream, given=given)
    return await _answered(events, body)


async def _answered(
    events: AsyncGenerator[Event], body: CompletionBody, context: TurnContext | None = None
) -> HttpResponseBase:
    sent, told = partial(whole, events), partial(streamed, events)
    return await respond(sent, told, error_event, stream=body.stream, context=context, keep_alive=PING)


def _estimate(caller: Caller, body: CompletionBody, *, turn: bool) -> int:
    """Return about how many tokens the first model step would get. Raises ModelNotFound, Unauthorized."""
    agent = agent_find(caller, body.agent)
    counted = _given(body)
    if not turn:
        return counted
    config = agent_config(agent)
    counted += text_tokens(config.settings.instructions)
    book = book_state_if_made(caller.owner_id, agent.book) if caller.remembers else None
    if caller.remembers and (config.settings.memory_tools or config.consolidation.enabled):
        ours = memory_tools.tools_of_turn(memory=config.settings.memory_tools)
        counted += _tokens_of(memory_tools.definitions(ours))
    return counted + (text_tokens(injected_blocks(book, config)) if book else 0)


def _read(raw: bytes) -> tuple[CompletionBody, int]:
    """Return what a request asks for and, for a stream, about how many tokens it holds. Raises InvalidRequest,
    TooLarge."""
    body = read_messages(raw)
    return body, _given(body) if body.stream else 0


def _given(body: CompletionBody) -> int:
    """Return about how many tokens a request holds, without what Daybook adds to it."""
    return estimate(body.messages) + _tokens_of(body.tools)


def _tokens_of(tools: Sequence[dict[str, Any]]) -> int:
    return text_tokens(json.dumps(tools, ensure_ascii=False)) if tools else 0
