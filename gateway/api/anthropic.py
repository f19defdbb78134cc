"""/v1/messages: the Anthropic Messages API, translated to and from chat completions."""

from dataclasses import replace
from functools import partial

from django.http import HttpResponse, HttpResponseBase
from ninja import Router

from gateway.api.answer_builder import respond_built
from gateway.api.anthropic_answer import MessageBuilder
from gateway.api.anthropic_body import read_messages, session_in
from gateway.api.counting import estimate_request, estimate_with_memory
from gateway.api.openai_body import CompletionBody, parse_async
from gateway.api.openai_schemas import ANTHROPIC_MESSAGES, COUNT_TOKENS
from gateway.api.responding import json_response
from gateway.api.v1_turn import begin_turn, v1_request_of
from gateway.authentication import require_writer
from gateway.passthrough import open_plain, plain_events
from gateway.runs.by_id import MAX_EXTERNAL_ID
from gateway.runs.requested import V1Request
from memories.caller import ApiRequest, Caller
from memories.database.access import in_read_thread

router = Router(tags=["Messages"])


@router.post("/messages", openapi_extra=ANTHROPIC_MESSAGES)
async def messages(request: ApiRequest) -> HttpResponseBase:
    """A message, streamed or not."""
    caller: Caller = request.auth
    require_writer(caller)
    body, v1_request, input_tokens = await parse_async(partial(_read, request), request.body)
    builder, context = MessageBuilder(body, input_tokens=input_tokens), None
    if v1_request is not None:
        turn = await begin_turn(caller, v1_request, body)
        events, context = turn.events(), turn.context
    else:
        events = plain_events(await open_plain(caller, body), stream=body.stream)
    return await respond_built(events, builder, stream=body.stream, context=context)


@router.post("/messages/count_tokens", openapi_extra=COUNT_TOKENS)
async def count_tokens(request: ApiRequest) -> HttpResponse:
    """Estimate the input tokens of a request, including what Daybook adds. No model is called and nothing is stored."""
    body = await parse_async(read_messages, request.body)
    tokens = await in_read_thread(estimate_with_memory, request.auth, body, turn=body.is_turn(request.headers))
    return json_response({"input_tokens": tokens})


def _v1_request(request: ApiRequest, body: CompletionBody) -> V1Request:
    """Return the request for a turn. Claude Code sends the id of its session and that of a subagent. It may use several
    of our agents in one session."""
    v1_request = v1_request_of(request, body)
    if v1_request.session_ref:
        return v1_request
    header = request.headers.get
    session_id = header("x-claude-code-session-id", "") or session_in(body.metadata)
    session_ref = " ".join(id for id in (session_id, header("x-claude-code-agent-id", "")) if id)
    if not session_id or len(session_ref) > MAX_EXTERNAL_ID:
        return v1_request
    return replace(v1_request, session_ref=session_ref, shared_ref=True)


def _read(request: ApiRequest, raw: bytes) -> tuple[CompletionBody, V1Request | None, int]:
    """Return the request, that for a turn if it is one, and for a stream an estimate of its tokens. Raises
    InvalidRequest, TooLarge."""
    body = read_messages(raw)
    v1_request = _v1_request(request, body) if body.is_turn(request.headers) else None
    return body, v1_request, estimate_request(body) if body.stream else 0
