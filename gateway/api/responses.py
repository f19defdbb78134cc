"""/v1/responses: the OpenAI Responses API, translated to and from chat completions. If a request has a
`previous_response_id`, the stored transcript is the conversation before it."""

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate
from typing import Annotated, Any, Literal

from django.conf import settings
from django.http import HttpResponse, HttpResponseBase
from ninja import Router
from pydantic import Field

from gateway.agents.rows import agent_find, agent_settings, require_key
from gateway.api.answer_builder import respond_built
from gateway.api.counting import estimate_with_memory
from gateway.api.openai_body import LARGE_BYTES, CompletionBody, parse_async, read_async
from gateway.api.openai_schemas import INPUT_ITEMS, INPUT_TOKENS, RESPONSE, RESPONSE_DELETED, RESPONSES
from gateway.api.responding import json_response
from gateway.api.responses_answer import ResponseBuilder
from gateway.api.responses_body import ResponsesBody, read_responses_body
from gateway.api.responses_items import as_messages, length_of_references
from gateway.api.responses_stored import input_items, items_shown, output_items, stored_response
from gateway.api.v1_turn import begin_turn, v1_request_of
from gateway.authentication import require_writer
from gateway.commands import command_in
from gateway.messages import text_of
from gateway.passthrough import open_plain, plain_events
from gateway.runs.ending import stop_turn
from gateway.runs.requested import V1Request
from gateway.runs.responses import Previous, previous_response, response_delete, response_find, stored_parts
from gateway.runs.window import content_length
from gateway.tokens import estimate_message
from memories.api.operations import reading, writing
from memories.caller import ApiRequest, Caller
from memories.database.access import in_read_thread
from memories.errors import InvalidRequest, NotFound, TooLarge
from memories.ids import parse_uuid
from memories.pagination import fitting, page_json

router = Router(tags=["Responses"])
_MAX_REFERENCED_RUNS = 100
_Limit = Annotated[int, Field(ge=1, le=100)]
_ITEM_ID = re.compile(r"(?:msg|fc|ctc)_([0-9a-f]{32})_")


@router.post("/responses", openapi_extra=RESPONSES)
async def response_create(request: ApiRequest) -> HttpResponseBase:
    """A response, streamed or not."""
    caller: Caller = request.auth
    require_writer(caller)
    parsed = await parse_async(read_responses_body, request.body)
    is_slow = len(request.body) > LARGE_BYTES or parsed.truncate or parsed.previous_response_id or _references(parsed)
    is_large = bool(is_slow)
    body, v1_request = await read_async(partial(_read, request, parsed, is_large=is_large), is_large=is_large)
    if v1_request is None:
        events = plain_events(await open_plain(caller, body), stream=body.stream)
        return await respond_built(events, ResponseBuilder(parsed.without_store()), stream=body.stream)
    if command_in(body.messages):
        parsed = parsed.without_store()
    turn = await begin_turn(caller, v1_request, body)
    builder = ResponseBuilder(parsed, turn.context)
    return await respond_built(turn.events(), builder, stream=body.stream, context=turn.context)


# These two must come before the paths with a response id, which would match them, too.
@router.post("/responses/input_tokens", openapi_extra=INPUT_TOKENS)
async def response_input_tokens(request: ApiRequest) -> HttpResponse:
    """Estimate the input tokens of a request, including what Daybook adds. No model is called and nothing is stored."""
    parsed = await parse_async(read_responses_body, request.body)
    body, _ = await in_read_thread(_conversation, request.auth, parsed)
    tokens = await in_read_thread(estimate_with_memory, request.auth, body, turn=body.is_turn(request.headers))
    return json_response({"object": "response.input_tokens", "input_tokens": tokens})


@router.post("/responses/compact", include_in_schema=False)
async def response_compact(request: ApiRequest) -> HttpResponse:
    raise NotFound('Compacting is not supported. `truncation: "auto"` leaves out the oldest turns.')


@router.get("/responses/{response_id}", openapi_extra=RESPONSE)
@reading
def response_get(request: ApiRequest, response_id: str, stream: bool = False) -> HttpResponse:
    """A stored response, or the part written so far. JSON only."""
    if stream:
        raise InvalidRequest("`stream` is not supported. Request the response without it.", param="stream")
    return json_response(_stored(request.auth, response_id))


@router.delete("/responses/{response_id}", openapi_extra=RESPONSE_DELETED)
@writing
def response_forget(request: ApiRequest, response_id: str) -> HttpResponse:
    """Delete a response. Its messages stay in the session."""
    require_writer(request.auth)
    response_delete(request.auth, response_id)
    return json_response({"id": response_id, "object": "response", "deleted": True})


@router.get("/responses/{response_id}/input_items", openapi_extra=INPUT_ITEMS)
async def response_input(
    request: ApiRequest, response_id: str, limit: _Limit = 20, after: str = "", order: Literal["asc", "desc"] = "desc"
) -> HttpResponse:
    """The input of a response, including the conversation before it. Newest first by default."""
    items = await in_read_thread(lambda: input_items(*response_find(request.auth, response_id)))
    listed = items if order == "asc" else items[::-1]
    if after:
        position = next((index for index, item in enumerate(listed) if item["id"] == after), None)
        if position is None:
            raise InvalidRequest("after must be the id of an entry of this list.", param="after")
        listed = listed[position + 1 :]
    page = listed[:limit]
    page = page[: fitting(map(content_length, page))]  # their attachments are read and sent at once
    shown = await items_shown(request.auth.owner_id, page)
    return json_response(page_json(shown, has_more=len(listed) > len(page)))


@router.post("/responses/{response_id}/cancel", openapi_extra=RESPONSE)
async def response_cancel(request: ApiRequest, response_id: str) -> HttpResponse:
    """Stop a response that is being written. The text so far is kept."""
    caller: Caller = request.auth
    require_writer(caller)
    await in_read_thread(require_key, caller)
    stored = await in_read_thread(_stored, caller, response_id)
    if stored["status"] == "in_progress":
        run, _ = await in_read_thread(response_find, caller, response_id)
        await stop_turn(caller.owner_id, run.session_id, run.pk, limits=caller.limits)
        stored = await in_read_thread(_stored, caller, response_id)
    elif stored["status"] != "cancelled":
        # OpenAI's message, which clients recognise.
        status = "an incomplete" if stored["status"] == "incomplete" else f"a {stored['status']}"
        raise InvalidRequest(f"Cannot cancel {status} response.", param="response_id")
    return json_response(stored)


def _read(request: ApiRequest, parsed: ResponsesBody, *, is_large: bool) -> tuple[CompletionBody, V1Request | None]:
    """Return the request with its whole conversation and, if it is a turn, the request for it. `is_large` is True if
    the conversation may be, whose body need not be. Raises DomainErrors."""
    body, after = _conversation(request.auth, parsed)
    if not body.is_turn(request.headers):
        return body, None
    response = parsed.to_store(after.system_from if after else ())
    v1_request = replace(v1_request_of(request, body), response=response, is_large=is_large)
    if after is None:
        return body, v1_request
    return body, replace(v1_request, after=after.run_id, session_ref=str(after.session_id), shared_ref=False)


def _conversation(caller: Caller, parsed: ResponsesBody) -> tuple[CompletionBody, Previous | None]:
    """Return the request with its whole conversation, and the previous response if it has one. The database is queried
    only for a previous response, for item references, and for truncation."""
    response_id = parsed.previous_response_id
    after = previous_response(caller, response_id) if response_id else None
    runs = _references(parsed)
    stored = {
        item["id"]: item
        for run_id, number, part in (stored_parts(caller, runs) if runs else ())
        for item in output_items(run_id, number, part.output)
    }
    _require_room(length_of_references(parsed.items, stored))
    messages = as_messages(after.messages if after else [], parsed.items, stored)
    if after:
        _require_room(sum(len(text_of(message.get("content"))) for message in messages))
    if parsed.truncate:
        agent = agent_find(caller, parsed.chat["model"])
        messages = _truncated(messages, agent_settings(agent).context_token_limit)
    return parsed.completion(messages), after


def _require_room(length: int) -> None:
    """Raise TooLarge if a conversation that is partly stored has much more text than a request may have: the results of
    a turn's tools add up, and so do items that are referred to often."""
    limit = 2 * settings.DAYBOOK_MAX_BODY
    if length > limit:
        raise TooLarge(f"This conversation has more than {limit} characters. Send shorter outputs.", param="input")


def _references(parsed: ResponsesBody) -> list[Any]:
    """Return the ids of the runs whose items the request refers to."""
    item_ids = (str(item.get("id")) for item in parsed.items if item.get("type") == "item_reference")
    run_ids = {match[1]: None for match in map(_ITEM_ID.match, item_ids) if match}
    return [parse_uuid(run_id) for run_id in list(run_ids)[:_MAX_REFERENCED_RUNS]]


def _truncated(messages: Sequence[dict[str, Any]], limit: int) -> list[dict[str, Any]]:
    """Remove the oldest turns until at most about `limit` tokens are left. The last turn always stays."""
    turn_starts = [index for index, message in enumerate(messages) if message["role"] == "user"]
    starts = [0, *turn_starts[1:]]
    tokens_from = [*accumulate(map(estimate_message, reversed(messages)), initial=0)][::-1]
    return list(messages[next((start for start in starts if tokens_from[start] <= limit), starts[-1]) :])


def _stored(caller: Caller, response_id: str) -> dict[str, Any]:
    return stored_response(*response_find(caller, response_id))
