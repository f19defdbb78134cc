"""/v1/messages: the Anthropic Messages API. A translation: the turns are those of chat completions."""

import json
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from typing import Any

from django.http import HttpResponse, HttpResponseBase
from ninja import Router

from gateway import sse
from gateway.agents.rows import agent_find
from gateway.api.anthropic_answer import (
    PING,
    error_event,
    plain_events,
    streamed,
    text_events,
    turn_events,
    whole,
    whole_message,
)
from gateway.api.anthropic_body import read_messages, session_in
from gateway.api.anthropic_events import Event
from gateway.api.openai_body import CompletionBody, read_aside
from gateway.api.openai_schemas import ANTHROPIC_MESSAGES, COUNT_TOKENS
from gateway.api.v1_turn import headed, json_response, open_turn, plain_request_of, v1_request_of
from gateway.authentication import require_writer
from gateway.command_syntax import without_commands
from gateway.commands import CommandTurn, answer_v1, command_in
from gateway.injection import injected_blocks
from gateway.joined import turn_of
from gateway.passthrough import open_plain
from gateway.runs.by_id import MAX_EXTERNAL_ID
from gateway.runs.context import agent_config
from gateway.runs.requested import V1Request
from gateway.tokens import estimate
from gateway.turn_events import TurnOptions
from memories import tools as memory_tools
from memories.batches import in_slices_to_the_end
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
    body = await read_aside(read_messages, request.body)
    if not body.is_turn(request.headers):
        return await _plain(caller, body)
    asked = _v1_request(request, body)
    if command_in(body.messages):
        answered = await in_slices_to_the_end(answer_v1(caller, asked))
        return _command_message(answered, stream=body.stream)
    context = await open_turn(caller, replace(asked, messages=without_commands(asked.messages)))
    turn = turn_of(context, TurnOptions(stream=body.stream, parameters=body.parameters, client_tools=body.tools))
    if not body.stream:
        return headed(json_response(await whole(turn_events(turn))), context)
    # The first event is waited for here: what goes wrong before it is answered with a status, not with a 200.
    events = await sse.begin(streamed(turn_events(turn)), error_event, PING)
    return headed(sse.response(events), context)


@router.post("/messages/count_tokens", openapi_extra=COUNT_TOKENS)
async def count_tokens(request: ApiRequest) -> HttpResponse:
    """About how many tokens a request would take, with what Daybook adds to it. Nothing is asked or stored."""
    body = await read_aside(read_messages, request.body)
    counted = await in_read_thread(_estimate, request.auth, body, turn=body.is_turn(request.headers))
    return json_response({"input_tokens": counted})


def _v1_request(request: ApiRequest, body: CompletionBody) -> V1Request:
    """Return the request for a turn. Claude Code names its session, and a part of it that another of its agents works
    on; it asks several of ours within one session."""
    asked = v1_request_of(request, body)
    if asked.session_ref:
        return asked
    header = request.headers.get
    named = header("x-claude-code-session-id", "") or session_in(body.metadata)
    session_ref = " ".join(name for name in (named, header("x-claude-code-agent-id", "")) if name)
    if not named or len(session_ref) > MAX_EXTERNAL_ID:
        return asked
    return replace(asked, session_ref=session_ref, shared_ref=True)


async def _plain(caller: Caller, body: CompletionBody) -> HttpResponseBase:
    """Answer a request that is not a turn of a conversation."""
    asked = plain_request_of(body)
    events = plain_events(await open_plain(caller, asked), body.agent, stream=body.stream)
    if not body.stream:
        return json_response(await whole(events))
    return sse.response(await sse.begin(streamed(events), error_event, PING))


def _command_message(answered: CommandTurn, *, stream: bool) -> HttpResponseBase:
    events = list(text_events(answered.agent_name, answered.text))
    response: HttpResponseBase = json_response(whole_message(events))
    if stream:
        response = sse.response(_sent(events))
    response["x-daybook-session"] = str(answered.session_id)
    response["x-daybook-run"] = str(answered.turn_id)
    return response


async def _sent(events: list[Event]) -> AsyncGenerator[bytes]:
    for event in events:
        yield sse.event(event["type"], event)


def _estimate(caller: Caller, body: CompletionBody, *, turn: bool) -> int:
    """Return about how many tokens the first model step would get. Raises ModelNotFound, Unauthorized."""
    agent = agent_find(caller, body.agent)
    counted = estimate(body.messages) + _tokens_of(body.tools)
    if not turn:
        return counted
    config = agent_config(agent)
    counted += text_tokens(config.settings.instructions)
    book = book_state_if_made(caller.owner_id, agent.book) if caller.remembers else None
    if caller.remembers and (config.settings.memory_tools or config.consolidation.enabled):
        ours = memory_tools.tools_of_turn(memory=config.settings.memory_tools)
        counted += _tokens_of(memory_tools.definitions(ours))
    return counted + (text_tokens(injected_blocks(book, config)) if book else 0)


def _tokens_of(tools: Sequence[dict[str, Any]]) -> int:
    return text_tokens(json.dumps(tools, ensure_ascii=False)) if tools else 0
