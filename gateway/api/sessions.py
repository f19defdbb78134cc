"""/api/sessions/{id}/turns: sending messages in a session, and following and stopping their turns."""

from collections.abc import AsyncGenerator, Callable
from contextlib import ExitStack, aclosing
from dataclasses import replace
from functools import partial
from typing import Annotated, Any
from uuid import UUID

from django.http import HttpResponseBase
from ninja import Header, Router

from gateway import commands, sse
from gateway.api import answers
from gateway.api.responding import errors_name_run, json_response, with_run_headers
from gateway.api.session_json import session_json
from gateway.api.turn_body import Render, ToolResultsIn, TurnIn
from gateway.attachments.storing import AttachmentStore
from gateway.chat.live_html import as_html
from gateway.command_syntax import command_text, parse_command
from gateway.limits.allowances import Allowance, allowed
from gateway.limits.watchers import watching
from gateway.requests import request_id
from gateway.runs.branches import branch_choose
from gateway.runs.context import TurnContext
from gateway.runs.ending import stop_turn
from gateway.runs.native import open_answered, open_native
from gateway.runs.opening import open_run
from gateway.runs.requested import OtherBranchShown
from gateway.runs.session_rows import run_get
from gateway.turns import live
from gateway.turns.events import TurnOptions, run_json
from gateway.watching import turn_shown, watched_by
from memories.api.answers import documented
from memories.api.operations import reading, without_fields
from memories.caller import ApiRequest
from memories.database.access import in_read_thread
from memories.database.batches import in_slices_to_the_end
from memories.errors import NotFound
from memories.ids import parse_uuid
from memories.limits import MAX_NUMBER, AfterNumber

router = Router(tags=["Sessions"])
# The schema of each server-sent event, for the OpenAPI document.
_EVENT = {
    "type": "object",
    "required": ["event", "data"],
    "properties": {
        "id": {"type": "string", "description": "The value of `after` to continue from here."},
        "event": {
            "type": "string",
            "description": "`started` first, `delta`, `reasoning`, `tool`, `recalled`, `done` or `error` last.",
        },
        "data": {"type": "string", "contentMediaType": "application/json"},
    },
}
_LastEventId = Annotated[
    int,
    Header(
        0, alias="Last-Event-ID", ge=0, le=MAX_NUMBER, description="Takes precedence over `after`. Browsers send it."
    ),
]
_EVENTS: dict[str, Any] = {"responses": {200: {"content": {"text/event-stream": {"schema": _EVENT}}}}}


@router.post("/sessions/{session_id}/turns", response=documented(answers.Turn), openapi_extra=_EVENTS)
async def turn_create(request: ApiRequest, session_id: str, body: TurnIn) -> Any:
    """Send a message. With `stream` the answer comes as server-sent events. If the client disconnects, the turn
    continues."""
    content, options = body.checked_content(), body.options()
    command = command_text(content)
    if parse_command(command, native=True):
        return await _command(request, session_id, command, stream=bool(body.stream), render=body.render)
    replaces = parse_uuid(body.replaces)
    if body.replaces is not None and replaces is None:
        raise NotFound("There is no such turn in this session to replace.")
    async with allowed(request.auth) as allowance, AttachmentStore(request.auth.owner_id) as attachments:
        opening = partial(
            open_native,
            request.auth,
            session_id=parse_uuid(session_id),
            content=await attachments.content(content),
            replaces=replaces,
            keep_attached=body.keep_attached,
            last_turn=body.last_turn,
            request_id=request_id.get(),
        )
        try:
            context = await open_run(opening)
        except OtherBranchShown as refused:  # another device chose it
            run = refused.run
            await in_slices_to_the_end(branch_choose(request.auth, run.session_id, run.pk, only_to=True))
            context = await open_run(opening)
    return await _answer(request, context, options, allowance, stream=bool(body.stream), render=body.render)


@router.post("/sessions/{session_id}/turns/{turn_id}/results", response=documented(answers.Turn), openapi_extra=_EVENTS)
async def turn_results(request: ApiRequest, session_id: str, turn_id: str, body: ToolResultsIn) -> Any:
    """Send the results of the client's own tools that a turn waits for (`awaiting_client_tools`).
    The turn continues."""
    options, results = body.options(), body.messages()
    async with allowed(request.auth) as allowance, AttachmentStore(request.auth.owner_id) as attachments:
        context = await open_run(
            open_answered,
            request.auth,
            session_id=parse_uuid(session_id),
            run_id=parse_uuid(turn_id),
            results=await attachments.messages(results),
        )
    return await _answer(request, context, options, allowance, stream=bool(body.stream))


@router.get("/sessions/{session_id}/turns/{turn_id}", response=documented(answers.Turn))
@reading
def turn_get(request: ApiRequest, session_id: str, turn_id: str) -> dict[str, Any]:
    """One turn."""
    caller, session, turn = request.auth, parse_uuid(session_id), parse_uuid(turn_id)
    try:
        return turn_shown(run_json(run_get(caller.owner_id, session, turn, limits=caller.limits)), caller)
    except NotFound:
        if command := commands.stored_command(caller.owner_id, session, turn, limits=caller.limits):
            return command
        raise


@router.get("/sessions/{session_id}/turns/{turn_id}/events", openapi_extra=_EVENTS)
async def turn_events(
    request: ApiRequest,
    session_id: str,
    turn_id: str,
    last_event_id: _LastEventId,
    after: AfterNumber = 0,
    render: Render = "text",
) -> HttpResponseBase:
    """The events of a running turn after the number `after`, as server-sent events. As HTML, always all of them."""
    after = last_event_id or after
    caller, session, turn = request.auth, parse_uuid(session_id), parse_uuid(turn_id)
    row = await in_read_thread(run_get, caller.owner_id, session, turn, limits=caller.limits)
    watch = ExitStack()
    watch.enter_context(watching(row.owner_id))
    running, after = live.find(row.pk), 0 if render == "html" else after
    events = running.watch(after) if running else live.watch_elsewhere(row.owner_id, row.session_id, row.pk, after)
    return _streamed(request, row.session_id, row.pk, events, render, ended=watch.close)


@router.post("/sessions/{session_id}/turns/{turn_id}/stop", response=documented(answers.StoppedTurn))
@without_fields
async def turn_stop(request: ApiRequest, session_id: str, turn_id: str) -> dict[str, Any]:
    """Stop a turn and wait until it has ended. The text so far is kept."""
    caller, session, turn = request.auth, parse_uuid(session_id), parse_uuid(turn_id)
    row = await stop_turn(caller.owner_id, session, turn, limits=caller.limits)
    return {"id": str(row.pk), "object": "turn", "session_id": str(row.session_id), "state": row.state}


@router.post("/sessions/{session_id}/turns/{turn_id}/choose", response=documented(answers.Session))
@without_fields
async def turn_choose(request: ApiRequest, session_id: str, turn_id: str) -> dict[str, Any]:
    """Show the branch of a turn that was replaced, up to its newest turn. The next message continues from there. The
    branch that was shown before can be chosen again."""
    caller, session, turn = request.auth, parse_uuid(session_id), parse_uuid(turn_id)
    return session_json(await in_slices_to_the_end(branch_choose(caller, session, turn)))


async def _answer(
    request: ApiRequest,
    context: TurnContext,
    options: TurnOptions,
    allowance: Allowance,
    *,
    stream: bool,
    render: str = "text",
) -> Any:
    turn = live.LiveTurn(replace(context, allowance=allowance))
    turn.start(options)
    sent = len(context.earlier.text)
    if stream:
        return _streamed(request, context.session_id, context.run_id, turn.watch(sent), render)
    with errors_name_run(context):
        response = json_response(await _outcome(turn, sent))
    return with_run_headers(response, context.session_id, context.run_id)


async def _outcome(turn: live.LiveTurn, sent: int) -> Any:
    """Wait for the end of a turn and return it as JSON. Raises its error."""
    async with aclosing(turn.watch(sent)) as events:
        async for _, (name, data) in events:
            if name == "done":
                return data
            if name == "error":
                break
    raise turn.failure or NotFound("This turn no longer exists.")


def _streamed(
    request: ApiRequest,
    session_id: UUID,
    run_id: UUID,
    events: AsyncGenerator[tuple[int, live.LiveEvent]],
    render: str,
    *,
    ended: Callable[[], None] = lambda: None,
) -> HttpResponseBase:
    """Return a response with the events of a turn. `ended` is called when the stream is over, however it ends."""
    events = watched_by(request, run_id, events)
    if render == "html":
        events = as_html(events, scope=str(run_id))

    async def stream() -> AsyncGenerator[bytes]:
        try:
            yield sse.event("started", {"turn": {"id": str(run_id), "session_id": str(session_id), "state": "running"}})
            async with aclosing(events) as watched:
                async for number, (name, data) in watched:
                    yield sse.event(name, data, id=number)
        finally:
            ended()

    return with_run_headers(sse.EventStream(sse.KeepAliveStream(stream())), session_id, run_id)


async def _command(request: ApiRequest, session_id: str, line: str, *, stream: bool, render: str) -> Any:
    reply = await in_slices_to_the_end(commands.answer_native(request.auth, parse_uuid(session_id), line))
    context, text = reply.context, reply.result.output.text
    if not stream:
        return with_run_headers(json_response(reply.as_json()), context.session_id, context.run_id)

    async def events() -> AsyncGenerator[tuple[int, live.LiveEvent]]:
        yield len(text), ("delta", {"text": text})
        yield len(text), ("done", reply.as_json())

    return _streamed(request, context.session_id, context.run_id, events(), render)
