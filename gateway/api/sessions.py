"""/api/sessions: sessions, their transcripts and their turns."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated, Any
from uuid import UUID

from django.http import HttpResponseBase
from ninja import Router, Schema, Status
from pydantic import Field

from gateway import commands, live, services, sse
from gateway.agents.rows import agent_find
from gateway.api.turn_body import ToolResultsIn, TurnIn
from gateway.command_syntax import parse_command
from gateway.models import Message, Session
from gateway.requests import request_id
from gateway.runs import leases, stopping
from gateway.runs.context import TurnContext
from gateway.runs.native import open_answered, open_native
from gateway.runs.opening import open_run
from gateway.turn_events import TurnOptions
from gateway.turn_json import run_json
from memories.batches import in_slices_to_the_end
from memories.caller import ApiRequest, Caller
from memories.database import in_read_thread, in_thread
from memories.errors import NotFound
from memories.ids import parse_uuid
from memories.limits import AfterNumber, PageSize, ShortText
from memories.models import Owner
from memories.pagination import DEFAULT_LIMIT, list_json, number

router = Router()
# An answer that comes as server-sent events, in the OpenAPI document: the schema is that of each event.
_EVENT = {
    "type": "object",
    "required": ["event", "data"],
    "properties": {
        "id": {"type": "string", "description": "What `after` names to go on from here."},
        "event": {"type": "string", "description": "`started` first, `done` or `error` last."},
        "data": {"type": "string", "contentMediaType": "application/json"},
    },
}
_EVENTS: dict[str, Any] = {"responses": {200: {"content": {"text/event-stream": {"schema": _EVENT}}}}}
Title = Annotated[str, Field(max_length=services.MAX_TITLE)]


class SessionIn(Schema):
    agent: ShortText
    title: Title = ""
    temporary: bool = False


class SessionPatch(Schema):
    title: Title


@router.post("/sessions", response={201: Any})
async def session_create(request: ApiRequest, body: SessionIn) -> Status[Any]:
    """Begin a session with an agent."""
    return Status(201, await in_thread(_create, request.auth, body))


@router.get("/sessions")
async def session_list(
    request: ApiRequest, limit: PageSize = DEFAULT_LIMIT, after: ShortText | None = None
) -> dict[str, Any]:
    """The owner's sessions, newest first."""
    return await in_read_thread(_list, request.auth, limit, after)


@router.get("/sessions/{session_id}")
async def session_get(request: ApiRequest, session_id: str) -> dict[str, Any]:
    """One session."""
    return session_json(await in_read_thread(_session, request.auth, session_id))


@router.patch("/sessions/{session_id}")
async def session_patch(request: ApiRequest, session_id: str, body: SessionPatch) -> dict[str, Any]:
    """Rename a session."""
    return session_json(await in_thread(_rename, request.auth, session_id, body.title))


@router.delete("/sessions/{session_id}", response={204: None})
async def session_delete(request: ApiRequest, session_id: str) -> Status[Any]:
    """Delete a session and its transcript; the memories it gave stay."""
    session = await in_read_thread(_session, request.auth, session_id)
    await in_thread(services.session_delete, session)
    return Status(204, None)


@router.post("/sessions/{session_id}/end")
async def session_end(request: ApiRequest, session_id: str) -> dict[str, Any]:
    """End a session; its snapshot is dropped."""
    session = await in_read_thread(_session, request.auth, session_id)
    return session_json(await in_thread(services.session_end, session))


@router.get("/sessions/{session_id}/messages")
async def message_list(
    request: ApiRequest, session_id: str, limit: PageSize = DEFAULT_LIMIT, after: ShortText | None = None
) -> dict[str, Any]:
    """The transcript, oldest first, without anything that was injected."""
    return await in_read_thread(_messages, request.auth, session_id, limit, after)


@router.post("/sessions/{session_id}/turns", response={200: Any}, openapi_extra=_EVENTS)
async def turn_create(request: ApiRequest, session_id: str, body: TurnIn) -> Any:
    """Say something. With `stream` the answer comes as server-sent events; a disconnect only detaches."""
    content, options = body.checked_content(), body.options()
    if isinstance(content, str) and parse_command(content, native=True):
        return await _command(request.auth, session_id, content, stream=body.stream)
    replaces = parse_uuid(body.replaces) if body.replaces else None
    if body.replaces and replaces is None:
        raise NotFound("There is no such turn in this session to replace.")
    context = await open_run(
        open_native,
        request.auth,
        session_id=parse_uuid(session_id),
        content=content,
        replaces=replaces,
        keep_attached=body.keep_attached,
        request_id=request_id.get(),
    )
    return await _answer(context, options, stream=body.stream)


@router.post("/sessions/{session_id}/turns/{turn_id}/results", response={200: Any}, openapi_extra=_EVENTS)
async def turn_results(request: ApiRequest, session_id: str, turn_id: str, body: ToolResultsIn) -> Any:
    """Bring the results of the client's own tools, for which a turn waits (`awaiting_client_tools`); it goes on."""
    options, results = body.options(), body.messages()
    context = await open_run(
        open_answered,
        request.auth,
        session_id=parse_uuid(session_id),
        run_id=parse_uuid(turn_id),
        results=results,
    )
    return await _answer(context, options, stream=body.stream)


@router.get("/sessions/{session_id}/turns/{turn_id}")
async def turn_get(request: ApiRequest, session_id: str, turn_id: str) -> dict[str, Any]:
    """One turn."""
    return await in_read_thread(_turn, request.auth, session_id, turn_id)


@router.get("/sessions/{session_id}/turns/{turn_id}/events", openapi_extra=_EVENTS)
async def turn_events(request: ApiRequest, session_id: str, turn_id: str, after: AfterNumber = 0) -> HttpResponseBase:
    """The rest of a running turn as server-sent events, from the number `after` on."""
    caller, session, turn = request.auth, parse_uuid(session_id), parse_uuid(turn_id)
    row = await in_read_thread(leases.run_get, caller.owner_id, session, turn, limits=caller.limits)
    running = live.find(row.pk)
    events = running.watch(after) if running else live.watch_elsewhere(row.owner_id, row.session_id, row.pk, after)
    return _streamed(row.session_id, row.pk, events)


@router.post("/sessions/{session_id}/turns/{turn_id}/stop")
async def turn_stop(request: ApiRequest, session_id: str, turn_id: str) -> dict[str, Any]:
    """Stop answering; what was said so far is kept. Answered when the turn is over."""
    caller, session, turn = request.auth, parse_uuid(session_id), parse_uuid(turn_id)
    row = await stopping.stop_turn(caller.owner_id, session, turn, limits=caller.limits)
    return {"id": str(row.pk), "object": "turn", "session_id": str(row.session_id), "state": row.state}


def session_json(session: Session) -> dict[str, Any]:
    """Return a session as the API shows it. The row comes with its agent."""
    return {
        "id": str(session.pk),
        "object": "session",
        "agent": session.agent.name,
        "title": session.title,
        "state": session.state,
        "temporary": session.temporary,
        "turns": session.turns,
        "turns_since_memory_review": session.turns_since_memory_review,
        "created_at": session.created_at,
        "last_active_at": session.last_active_at,
    }


def message_json(message: Message) -> dict[str, Any]:
    """Return a message as the API shows it. The row comes with its run."""
    return {
        "id": str(message.seq),
        "object": "message",
        "role": message.role,
        "content": message.parts or message.text,
        "tool_calls": message.tool_calls,
        "tool_call_id": message.tool_call_id or None,
        "kind": message.kind,
        "turn_id": str(message.run_id) if message.run_id else None,
        "superseded": bool(message.run and message.run.superseded),
        "created_at": message.created_at,
    }


async def _answer(context: TurnContext, options: TurnOptions, *, stream: bool) -> Any:
    turn = live.LiveTurn(context)
    turn.start(options)
    said = len(context.resumed_text)
    if stream:
        return _streamed(context.session_id, context.run_id, turn.watch(said))
    async with aclosing(turn.watch(said)) as events:
        async for _, (name, data) in events:
            if name == "done":
                return data
            if name == "error":
                raise turn.failure or NotFound("The turn has gone.")
    raise NotFound("The turn has gone.")


def _streamed(session_id: UUID, run_id: UUID, events: AsyncGenerator[tuple[int, live.Note]]) -> HttpResponseBase:
    async def stream() -> AsyncGenerator[bytes]:
        yield sse.event("started", {"turn": {"id": str(run_id), "session_id": str(session_id), "state": "running"}})
        async with aclosing(events) as watched:
            async for at, (name, data) in watched:
                yield sse.event(name, data, id=at)

    response = sse.response(sse.Alive(stream()))
    response["x-daybook-session"] = str(session_id)
    response["x-daybook-run"] = str(run_id)
    return response


def _session(caller: Caller, session_id: str) -> Session:
    return services.session_get(caller.owner_id, parse_uuid(session_id), limits=caller.limits)


def _create(caller: Caller, body: SessionIn) -> dict[str, Any]:
    agent = agent_find(caller, body.agent)
    owner = Owner.objects.get(pk=caller.owner_id)
    return session_json(services.session_create(owner, agent, title=body.title, temporary=body.temporary))


def _list(caller: Caller, limit: int, after: str | None) -> dict[str, Any]:
    rows = Session.objects.filter(owner_id=caller.owner_id).select_related("agent")
    rows = caller.limits.filter(rows, agent="agent__name")
    return list_json(rows, limit=limit, after=after, key="id", show=session_json, parse=parse_uuid)


def _rename(caller: Caller, session_id: str, title: str) -> Session:
    return services.session_rename(_session(caller, session_id), title)


def _messages(caller: Caller, session_id: str, limit: int, after: str | None) -> dict[str, Any]:
    session = _session(caller, session_id)
    rows = Message.objects.filter(owner_id=caller.owner_id, session=session).select_related("run")
    return list_json(rows, limit=limit, after=after, key="seq", show=message_json, parse=number, oldest_first=True)


async def _command(caller: Caller, session_id: str, line: str, *, stream: bool) -> Any:
    answered = await in_slices_to_the_end(commands.answer_native(caller, parse_uuid(session_id), line))
    if not stream:
        return answered.as_json()

    async def events() -> AsyncGenerator[tuple[int, live.Note]]:
        yield len(answered.text), ("delta", {"text": answered.text})
        yield len(answered.text), ("done", answered.as_json())

    return _streamed(answered.session_id, answered.turn_id, events())


def _turn(caller: Caller, session_id: str, turn_id: str) -> dict[str, Any]:
    session, turn = parse_uuid(session_id), parse_uuid(turn_id)
    try:
        return run_json(leases.run_get(caller.owner_id, session, turn, limits=caller.limits))
    except NotFound:
        if found := commands.stored_command(caller.owner_id, session, turn, limits=caller.limits):
            return found
        raise
