"""/v1/messages: the Anthropic Messages API. A translation: the turns are those of chat completions."""

from dataclasses import replace
from functools import partial

from django.http import HttpResponse, HttpResponseBase
from ninja import Router

from gateway.api.anthropic_answer import PING, error_event, message_events, streamed, whole
from gateway.api.anthropic_body import read_messages, session_in
from gateway.api.anthropic_events import MessageEvents
from gateway.api.counting import tokens_given, tokens_sent
from gateway.api.openai_body import CompletionBody, read_aside
from gateway.api.openai_schemas import ANTHROPIC_MESSAGES, COUNT_TOKENS
from gateway.api.responding import json_response, respond
from gateway.api.v1_turn import begin_turn, v1_request_of
from gateway.authentication import require_writer
from gateway.passthrough import open_plain, plain_events
from gateway.runs.by_id import MAX_EXTERNAL_ID
from gateway.runs.requested import V1Request
from memories.caller import ApiRequest, Caller
from memories.database.access import in_read_thread

router = Router()


@router.post("/messages", openapi_extra=ANTHROPIC_MESSAGES)
async def messages(request: ApiRequest) -> HttpResponseBase:
    """A message, streamed or not."""
    caller: Caller = request.auth
    require_writer(caller)
    body, given = await read_aside(_read, request.body)
    message, context = MessageEvents(body.agent, body.names, given=given), None
    if body.is_turn(request.headers):
        turn = await begin_turn(caller, _v1_request(request, body), body)
        told, context = turn.events(), turn.context
    else:
        told = plain_events(await open_plain(caller, body), stream=body.stream)
    events = message_events(told, message, body.parameters)
    sent, pieces = partial(whole, events), partial(streamed, events)
    return await respond(sent, pieces, error_event, stream=body.stream, context=context, keep_alive=PING)


@router.post("/messages/count_tokens", openapi_extra=COUNT_TOKENS)
async def count_tokens(request: ApiRequest) -> HttpResponse:
    """About how many tokens a request would take, with what Daybook adds to it. Nothing is asked or stored."""
    body = await read_aside(read_messages, request.body)
    counted = await in_read_thread(tokens_sent, request.auth, body, turn=body.is_turn(request.headers))
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


def _read(raw: bytes) -> tuple[CompletionBody, int]:
    """Return what a request asks for and, for a stream, about how many tokens it holds. Raises InvalidRequest,
    TooLarge."""
    body = read_messages(raw)
    return body, tokens_given(body) if body.stream else 0
