"""/api/sessions: creating, listing, searching, changing, exporting and deleting sessions, and their transcripts."""

from typing import Annotated, Any

from django.db.models.functions import Length
from django.http import HttpResponseBase
from ninja import Query, Router, Schema, Status
from pydantic import Field

from gateway import services
from gateway.agents.rows import agent_find
from gateway.api import answers
from gateway.api.session_export import ExportFormat, export_name, export_session
from gateway.api.session_json import found_json, message_json, session_json, with_runs
from gateway.attachments.reading import contents_read
from gateway.models import Message, Session
from gateway.runs.ending import complete_waiting_of
from gateway.runs.window import content_length
from gateway.sessions import keeping
from gateway.sessions.search import MAX_QUERY, search_sessions
from memories.api.answers import documented, list_of
from memories.api.bodies import Body
from memories.api.export import download
from memories.api.operations import reading, without_fields, writing
from memories.caller import ApiRequest, Caller
from memories.database.access import in_read_thread, in_thread
from memories.database.batches import in_slices_to_the_end
from memories.ids import parse_uuid
from memories.limits import PageSize, ShortText
from memories.models import Owner
from memories.pagination import DEFAULT_LIMIT, fitting, list_json, page_json, parse_cursor, parse_number

router = Router(tags=["Sessions"])
Title = Annotated[str, Field(max_length=services.MAX_TITLE)]
Tag = Annotated[str, Field(max_length=keeping.TAG_LENGTH)]
_CONTENT = {"text/markdown": {"schema": {"type": "string"}}, "application/json": {"schema": {"type": "object"}}}
_FILE: dict[str, Any] = {"responses": {200: {"content": _CONTENT}}}


class SessionIn(Body, json_schema_extra={"examples": [{"agent": "assistant", "title": "Kitchen"}]}):
    agent: ShortText
    title: Title = ""
    temporary: bool = False


class SessionPatch(Body, json_schema_extra={"examples": [{"title": "Kitchen"}]}):
    title: Title | None = None
    pinned: bool | None = None
    archived: bool | None = None
    tags: Annotated[
        list[Annotated[Tag, Field(json_schema_extra={"pattern": "^[^,]*$"})]] | None,
        Field(max_length=keeping.MAX_TAGS, description="Replaces all tags."),
    ] = None


class SessionQuery(Schema):
    limit: PageSize = DEFAULT_LIMIT
    after: ShortText | None = None
    search: Annotated[
        str | None,
        Field(
            max_length=MAX_QUERY,
            description="Sessions with all of these words in a message or the title; the last word may be incomplete.",
        ),
    ] = None
    archived: Annotated[bool | None, Field(description="Only archived sessions, or only those that are not.")] = None
    tag: Annotated[Tag | None, Field(description="Only sessions that have this tag.")] = None


@router.post("/sessions", response={201: documented(answers.Session)})
@writing
def session_create(request: ApiRequest, body: SessionIn) -> Status[Any]:
    """Begin a session with an agent."""
    agent = agent_find(request.auth, body.agent, param="agent")
    owner = Owner.objects.get(pk=request.auth.owner_id)
    session = services.session_create(owner, agent, title=body.title, temporary=body.temporary)
    return Status(201, session_json(session))


@router.get("/sessions", response=list_of(answers.ListedSession, "Sessions, newest first.", name="SessionList"))
@reading
def session_list(request: ApiRequest, query: Query[SessionQuery]) -> dict[str, Any]:
    """The owner's sessions, newest first. With `search`, the matching sessions by their newest match, with snippets."""
    caller = request.auth
    rows = Session.objects.filter(owner_id=caller.owner_id).select_related("agent")
    rows = caller.limits.filter(rows, agent="agent__name")
    if query.archived is not None:
        rows = rows.filter(archived_at__isnull=not query.archived)
    if query.tag:
        rows = keeping.tagged(rows, query.tag)
    if not (query.search or "").strip():
        return list_json(rows, limit=query.limit, after=query.after, show=session_json)
    found, more = search_sessions(
        rows,
        caller.owner_id,
        query.search or "",
        limit=query.limit,
        after=parse_cursor(query.after, parse_uuid),
        limits=caller.limits,
        narrowed=query.archived is not None or bool(query.tag),
    )
    return page_json([found_json(row) for row in found], has_more=more)


@router.get("/sessions/{session_id}", response=documented(answers.Session))
@reading
def session_get(request: ApiRequest, session_id: str) -> dict[str, Any]:
    """One session."""
    return session_json(_session(request.auth, session_id))


@router.patch("/sessions/{session_id}", response=documented(answers.Session))
@writing
def session_patch(request: ApiRequest, session_id: str, body: SessionPatch) -> dict[str, Any]:
    """Rename, tag, pin or archive a session. Fields that are left out do not change."""
    return session_json(keeping.session_change(_session(request.auth, session_id), **body.model_dump()))


@router.delete("/sessions/{session_id}", response={204: None})
@without_fields
async def session_delete(request: ApiRequest, session_id: str, restorable: bool = False) -> Status[Any]:
    """Delete a session and its transcript. Memories from it stay. With `restorable` it can be restored for a minute."""
    caller = request.auth
    if restorable:
        session = await in_thread(_session, caller, session_id)
        await in_thread(keeping.session_discard, session)
    else:
        key = parse_uuid(session_id)
        session = await in_thread(keeping.session_get_to_delete, caller.owner_id, key, limits=caller.limits)
        await in_slices_to_the_end(keeping.session_delete_slices(session))
    return Status(204, None)


@router.post("/sessions/{session_id}/restore", response=documented(answers.Session))
@without_fields
@writing
def session_restored(request: ApiRequest, session_id: str) -> dict[str, Any]:
    """Restore a session that was deleted as restorable less than a minute ago."""
    caller = request.auth
    return session_json(keeping.session_restore(caller.owner_id, parse_uuid(session_id), limits=caller.limits))


@router.post("/sessions/{session_id}/end", response=documented(answers.Session))
@without_fields
@writing
def session_end(request: ApiRequest, session_id: str) -> dict[str, Any]:
    """End a session and drop its snapshot. A turn that waits for results of tools ends as it is."""
    session = services.session_end(_session(request.auth, session_id))
    complete_waiting_of(session)
    return session_json(session)


@router.get("/sessions/{session_id}/export", openapi_extra=_FILE)
async def session_export(
    request: ApiRequest, session_id: str, format: ExportFormat = ExportFormat.MARKDOWN
) -> HttpResponseBase:
    """The conversation as a file, without turns that were replaced."""
    session = await in_read_thread(_session, request.auth, session_id)
    title = session.title or "Untitled session"
    lines = export_session(session, title, format)
    return download(lines, export_name(session, session.title, format), format.content_type)


@router.get("/sessions/{session_id}/messages", response=list_of(answers.Message, "A transcript, oldest first."))
async def message_list(
    request: ApiRequest, session_id: str, limit: PageSize = DEFAULT_LIMIT, after: ShortText | None = None
) -> dict[str, Any]:
    """The transcript, oldest first, without injected memories. A page of very long messages has fewer than `limit`."""
    page = await in_read_thread(_messages, request.auth, session_id, limit=limit, after=after)
    return {**page, "data": await contents_read(request.auth.owner_id, page["data"])}


def _messages(caller: Caller, session_id: str, *, limit: int, after: str | None) -> dict[str, Any]:
    session = _session(caller, session_id)
    rows = Message.objects.filter(owner_id=session.owner_id, session=session).order_by("seq")
    if (cursor := parse_cursor(after, parse_number)) is not None:
        rows = rows.filter(seq__gt=cursor)
    sizes = list(rows.values_list(Length("text"), flat=True)[: limit + 1])
    found = with_runs(rows)[: fitting(sizes[:limit])]
    data = [message_json(row) for row in found]
    shown = data[: fitting([content_length(message["content"]) for message in data])]
    return page_json(shown, has_more=len(sizes) > len(shown))


def _session(caller: Caller, session_id: str) -> Session:
    return services.session_get(caller.owner_id, parse_uuid(session_id), limits=caller.limits)
