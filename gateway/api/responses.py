"""/v1/responses: the OpenAI Responses API, translated to the turns of chat completions. If a request names its previous
response, the conversation before it is the stored transcript."""

import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import Any, Literal

from django.http import HttpResponse, HttpResponseBase
from ninja import Router

from gateway.agents.rows import agent_find, agent_settings, require_key
from gateway.api.counting import tokens_sent
from gateway.api.openai_body import LARGE_BYTES, CompletionBody, read_aside
from gateway.api.openai_schemas import INPUT_ITEMS, INPUT_TOKENS, RESPONSE, RESPONSE_DELETED, RESPONSES
from gateway.api.responding import json_response, respond
from gateway.api.responses_answer import Answer
from gateway.api.responses_body import ResponsesBody, read_responses_body
from gateway.api.responses_items import as_messages
from gateway.api.responses_stored import input_items, items_shown, output_items, stored_response
from gateway.api.v1_turn import begin_turn, v1_request_of
from gateway.authentication import require_writer
from gateway.commands import command_in
from gateway.errors import UpstreamUnreachable
from gateway.passthrough import open_plain, plain_events
from gateway.runs import stopping
from gateway.runs.context import TurnContext
from gateway.runs.responses import Previous, previous_response, response_delete, response_find, stored_parts
from gateway.tokens import estimate_message
from gateway.turns.events import Event
from memories.api.operations import reading, writing
from memories.caller import ApiRequest, Caller
from memories.database.access import in_read_thread
from memories.errors import InvalidRequest, NotFound
from memories.ids import parse_uuid
from memories.pagination import page_json

router = Router()
_MOST_REFERRED = 100  # runs whose items one request may name
_LONGEST_PAGE = 100
_REFERENCE = re.compile(r"(?:msg|fc|ctc)_([0-9a-f]{32})_")


@router.post("/responses", openapi_extra=RESPONSES)
async def response_create(request: ApiRequest) -> HttpResponseBase:
    """A response, streamed or not."""
    caller: Caller = request.auth
    require_writer(caller)
    asked = await read_aside(read_responses_body, request.body)
    is_slow = len(request.body) > LARGE_BYTES or asked.truncate or asked.previous_response_id or _references(asked)
    body, after = await in_read_thread(_conversation, caller, asked) if is_slow else _conversation(caller, asked)
    if not body.is_turn(request.headers):  # nothing of it is stored
        told = plain_events(await open_plain(caller, body), stream=body.stream)
        return await _answered(told, Answer(asked.unstored()), body)
    v1_request = replace(v1_request_of(request, body), response=asked.kept())
    if after is not None:
        v1_request = replace(v1_request, after=after.run_id, session_ref=str(after.session_id), shared_ref=False)
    if command_in(body.messages):
        asked = asked.unstored()
    turn = await begin_turn(caller, v1_request, body)
    return await _answered(turn.events(), Answer(asked, turn.context), body, turn.context)


# These two stand before the addresses of a response, which would take their names for ids.
@router.post("/responses/input_tokens", openapi_extra=INPUT_TOKENS)
async def response_input_tokens(request: ApiRequest) -> HttpResponse:
    """About how many tokens a request would take, with what Daybook adds to it. Nothing is asked or stored."""
    asked = await read_aside(read_responses_body, request.body)
    body, _ = await in_read_thread(_conversation, request.auth, asked)
    counted = await in_read_thread(tokens_sent, request.auth, body, turn=body.is_turn(request.headers))
    return json_response({"object": "response.input_tokens", "input_tokens": counted})


@router.post("/responses/compact", include_in_schema=False)
async def response_compact(request: ApiRequest) -> HttpResponse:
    """Refuse to compact a conversation."""
    raise NotFound('Compacting is not offered here. `truncation: "auto"` leaves out the oldest turns.')


@router.get("/responses/{response_id}", openapi_extra=RESPONSE)
@reading
def response_get(request: ApiRequest, response_id: str, stream: bool = False) -> HttpResponse:
    """A stored response, as far as it is written; as JSON only."""
    if stream:
        raise InvalidRequest("`stream` is not offered here. Ask for the response without it.", param="stream")
    return json_response(_stored(request.auth, response_id))


@router.delete("/responses/{response_id}", openapi_extra=RESPONSE_DELETED)
@writing
def response_forget(request: ApiRequest, response_id: str) -> HttpResponse:
    """Forget a response. What was said stays in its session."""
    require_writer(request.auth)
    response_delete(request.auth, response_id)
    return json_response({"id": response_id, "object": "response", "deleted": True})


@router.get("/responses/{response_id}/input_items", openapi_extra=INPUT_ITEMS)
async def response_input(
    request: ApiRequest, response_id: str, limit: int = 20, after: str = "", order: Literal["asc", "desc"] = "desc"
) -> HttpResponse:
    """What a response was given: the conversation before it, its own input last; newest first, unless asked for in
    the other order."""
    if not 1 <= limit <= _LONGEST_PAGE:
        raise InvalidRequest(f"limit is a number from 1 to {_LONGEST_PAGE}.", param="limit")
    items = await in_read_thread(lambda: input_items(*response_find(request.auth, response_id)))
    listed = items if order == "asc" else items[::-1]
    if after:
        place = next((index for index, item in enumerate(listed) if item["id"] == after), None)
        if place is None:
            raise InvalidRequest("after is the id of an entry of this list.", param="after")
        listed = listed[place + 1 :]
    shown = await items_shown(request.auth.owner_id, listed[:limit])
    return json_response(page_json(shown, has_more=len(listed) > limit))


@router.post("/responses/{response_id}/cancel", openapi_extra=RESPONSE)
async def response_cancel(request: ApiRequest, response_id: str) -> HttpResponse:
    """Stop a response that is being written; what was said so far is kept."""
    caller: Caller = request.auth
    require_writer(caller)
    await in_read_thread(require_key, caller)
    stored = await in_read_thread(_stored, caller, response_id)
    if stored["status"] == "in_progress":
        run, _ = await in_read_thread(response_find, caller, response_id)
        await stopping.stop_turn(caller.owner_id, run.session_id, run.pk, limits=caller.limits)
        stored = await in_read_thread(_stored, caller, response_id)
    elif stored["status"] != "cancelled":
        # OpenAI's words: clients know them.
        over = "an incomplete" if stored["status"] == "incomplete" else f"a {stored['status']}"
        raise InvalidRequest(f"Cannot cancel {over} response.", param="response_id")
    return json_response(stored)


def _conversation(caller: Caller, asked: ResponsesBody) -> tuple[CompletionBody, Previous | None]:
    """Return the request with its whole conversation, and the previous response if there is one. The database is asked
    only for a previous response, for items that are referred to, and for the agent whose limit the conversation is cut
    to."""
    named = asked.previous_response_id
    after = previous_response(caller, named) if named else None
    runs = _references(asked)
    stored = {
        item["id"]: item
        for run_id, number, part in (stored_parts(caller, runs) if runs else ())
        for item in output_items(run_id, number, part.output)
    }
    messages = as_messages(after.messages if after else [], asked.items, stored)
    if asked.truncate:
        agent = agent_find(caller, asked.chat["model"])
        messages = _cut(messages, agent_settings(agent).context_token_limit)
    return asked.completion(messages), after


def _references(asked: ResponsesBody) -> list[Any]:
    named = (str(item.get("id")) for item in asked.items if item.get("type") == "item_reference")
    found = {match[1]: None for match in map(_REFERENCE.match, named) if match}
    return [parse_uuid(run_id) for run_id in list(found)[:_MOST_REFERRED]]


def _cut(messages: Sequence[dict[str, Any]], limit: int) -> list[dict[str, Any]]:
    """Return a conversation of at most about `limit` tokens, without its oldest turns. The last turn always stays."""
    begins = [index for index, message in enumerate(messages) if message["role"] == "user"]
    sizes = [estimate_message(message) for message in messages]
    left, cut = sum(sizes), 0
    for begin in begins[1:]:
        if left <= limit:
            break
        left -= sum(sizes[cut:begin])
        cut = begin
    return list(messages[cut:])


def _stored(caller: Caller, response_id: str) -> dict[str, Any]:
    return stored_response(*response_find(caller, response_id))


async def _answered(
    told: AsyncGenerator[Event], answer: Answer, body: CompletionBody, context: TurnContext | None = None
) -> HttpResponseBase:
    whole, events = partial(_whole, told, answer), partial(_streamed, told, answer)
    return await respond(whole, events, answer.fail, stream=body.stream, context=context)


async def _whole(told: AsyncGenerator[Event], answer: Answer) -> dict[str, Any]:
    """Run a turn to its end and return the response. Raises DomainErrors."""
    async with aclosing(told) as events:
        async for event in events:
            answer.take(event)
    if not answer.final:
        raise UpstreamUnreachable("The model server gave no answer.")
    return answer.final


async def _streamed(told: AsyncGenerator[Event], answer: Answer) -> AsyncGenerator[bytes]:
    """Run a turn to its end and yield the server-sent events. Raises DomainErrors."""
    async with aclosing(told) as events:
        async for event in events:
            answer.take(event)
            if news := answer.news():
                yield news
