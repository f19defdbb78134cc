"""The chat page and its fragments. All views are read-only; changes go through the native API."""

from functools import wraps
from math import ceil
from typing import Any
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone

from gateway.agents.settings import AgentSettings
from gateway.attachments.decoding import PICTURES, media_type
from gateway.attachments.reading import bytes_of
from gateway.chat.held_notes import held_of_review
from gateway.chat.labels import ERROR_WORDS, margin_day, review_words
from gateway.chat.memory_notes import written_by_review
from gateway.chat.pages import COMMAND_LINES
from gateway.chat.session_list import MOST_PAGES, PAGE_SESSIONS, found_page, page_cursor, session_page, title_of, titled
from gateway.chat.transcript import TranscriptPage, conversation, turn_of_run, turns_since
from gateway.limits.transcript_pages import transcript_page
from gateway.models import Agent, Message, Run, Session
from gateway.sessions.keeping import MAX_TAGS, TAG_LENGTH, clean_tag
from gateway.sessions.search import MAX_QUERY
from memories.ids import parse_uuid
from memories.pagination import parse_number
from memories.tools import TOOLS
from memories.viewers import View, Viewer, fragment_view, page_view

EXAMPLES = (
    "I prefer short answers with the command first. Keep that in mind.",
    "Plan a vegetarian dinner for six, no hazelnuts.",
    "What do you remember about me so far?",
)
_CHARACTERS_PER_TOKEN = 4


def _of_transcript(view: View) -> View:
    """Limit how many of these views work for an owner at once."""

    @wraps(view)
    def limited(request: HttpRequest, viewer: Viewer, *args: Any, **kwargs: Any) -> HttpResponse:
        with transcript_page(viewer.owner.pk):
            return view(request, viewer, *args, **kwargs)

    return limited


@page_view
@_of_transcript
def chat(request: HttpRequest, viewer: Viewer) -> HttpResponse:
    """`/`: the session that was used last, or the page for a new session."""
    sessions = _sessions(viewer).filter(temporary=False, archived_at=None)
    newest = sessions.order_by("-last_active_at", "-id").first()
    return _chat_page(request, viewer, newest)


@page_view
def chat_new(request: HttpRequest, viewer: Viewer) -> HttpResponse:
    """`/new/`: a page on which the first message creates a session."""
    return _chat_page(request, viewer, None)


@page_view
@_of_transcript
def chat_session(request: HttpRequest, viewer: Viewer, session_id: UUID) -> HttpResponse:
    """`/c/<session>/`: one session; 404 for another owner's."""
    return _chat_page(request, viewer, get_object_or_404(_sessions(viewer), pk=session_id))


@fragment_view
@_of_transcript
def chat_attachment(request: HttpRequest, viewer: Viewer, session_id: UUID, seq: int, index: int) -> HttpResponse:
    """Serve a picture of a message, with the media type detected from its bytes; 404 for any other attachment."""
    messages = Message.objects.filter(
        owner_id=viewer.owner.pk, session=session_id, seq=min(seq, 2**31 - 1), session__deleted_at=None
    )
    parts = messages.values_list("parts", flat=True).first() or ()
    data = bytes_of(viewer.owner.pk, parts[index]) if index < len(parts) else None
    kind = media_type(data) if isinstance(data, bytes) else ""
    if kind not in PICTURES:
        return HttpResponse(status=404)
    response = HttpResponse(data, content_type=kind)
    response.headers["Content-Security-Policy"] = "default-src 'none'; sandbox"
    return response


@fragment_view
def sessions_fragment(request: HttpRequest, viewer: Viewer) -> HttpResponse:
    """The list of sessions, or the results of a search (`q`). `before` selects the next page, `archived` the archived
    sessions, and `tag` those with a tag. `n` sessions are shown already: as many are returned, in whole pages."""
    search = " ".join(request.GET.get("q", "").split())[:MAX_QUERY]
    before, archived = request.GET.get("before", ""), request.GET.get("archived") == "1"
    tag = clean_tag(request.GET.get("tag", "")[: 2 * TAG_LENGTH])
    if search:
        listed = found_page(viewer.owner.pk, viewer.zone, search, after=parse_uuid(before), tag=tag)
    else:
        pages = ceil((parse_number(request.GET.get("n", "")) or 1) / PAGE_SESSIONS)
        limit = min(pages, MOST_PAGES) * PAGE_SESSIONS
        after = page_cursor(before)
        listed = session_page(viewer.owner.pk, viewer.zone, before=after, archived=archived, tag=tag, limit=limit)
    context = {
        "sessions": listed,
        "search": search,
        "archived": archived,
        "tag": tag,
        "more": bool(before),
        "current": request.GET.get("current", ""),
    }
    return render(request, "gateway/sessions.html", context)


@fragment_view
@_of_transcript
def turn_fragment(request: HttpRequest, viewer: Viewer, session_id: UUID, run_id: UUID) -> HttpResponse:
    """One turn; 404 if it is unknown."""
    session = _sessions(viewer).filter(pk=session_id).first()
    turn = turn_of_run(session, run_id, viewer.zone) if session else None
    if session is None or turn is None:
        return HttpResponse(status=404)
    return render(request, "gateway/turn.html", {"turn": turn, "session": session, "fill": context_fill(session)})


@fragment_view
@_of_transcript
def turns_fragment(request: HttpRequest, viewer: Viewer, session_id: UUID) -> HttpResponse:
    """The newest turns, the turns before message number `before`, or the turn `since` and all turns after it."""
    session = _sessions(viewer).filter(pk=session_id).first()
    if session is None:
        return HttpResponse(status=404)
    since = parse_uuid(request.GET.get("since"))
    before = _seq(request.GET.get("before", ""))
    shown = turns_since(session, viewer.zone, since) if since else conversation(session, viewer.zone, before=before)
    context = {"conversation": shown, "session": session, "fill": context_fill(session)}
    return render(request, "gateway/turns.html", context)


@fragment_view
def review_fragment(request: HttpRequest, viewer: Viewer, review_id: UUID) -> HttpResponse:
    """The written and the held writes of a review, for its toast; 204 if there are none, or for another owner's."""
    written = written_by_review(viewer.owner.pk, review_id)
    held = held_of_review()(viewer.owner.pk, review_id)
    place = written or held
    if place is None:
        return HttpResponse(status=204)
    return render(request, "gateway/review_entries.html", {"place": place, "written": written, "held": held})


def context_fill(session: Session | None) -> int:
    """Return how much of the agent's context limit the session fills, in whole percent. The tokens are those that the
    model server reported for the newest completed run, or else estimated from its characters."""
    if session is None:
        return 0
    runs = Run.objects.filter(owner_id=session.owner_id, session=session, state=Run.State.COMPLETED, superseded=False)
    run = runs.order_by("-id").only("usage", "text").first()
    if run is None:
        return 0
    tokens = int(
        run.usage.get("total_tokens") or run.usage.get("prompt_tokens") or len(run.text) // _CHARACTERS_PER_TOKEN
    )
    limit = AgentSettings.model_validate(session.agent.settings).context_token_limit
    return min(100, round(100 * tokens / limit))


def _chat_page(request: HttpRequest, viewer: Viewer, session: Session | None) -> HttpResponse:
    at = _seq(request.GET.get("at", ""))
    shown = conversation(session, viewer.zone, at=at) if session else TranscriptPage()
    listed = session_page(viewer.owner.pk, viewer.zone)
    now = timezone.now().astimezone(viewer.zone)
    agents = list(Agent.objects.order_by("created_at", "name").values_list("name", flat=True))
    agent = session.agent.name if session else _requested_agent(request, agents)
    first = not listed.groups and not listed.has_archived
    context = {
        "tab": "chat",
        "session": session,
        "title": title_of(session) if session else "",
        "current": str(session.pk) if session else "",
        "conversation": shown,
        "sessions": listed,
        "agents": agents,
        "agent": agent,
        "temporary": session.temporary if session else request.GET.get("temporary") == "1",
        "first": first,
        "review_words": _review_words(agent) if first else "",
        "today": margin_day(now),
        "fill": context_fill(session),
        "commands": COMMAND_LINES,
        "tools": TOOLS.values(),
        "examples": EXAMPLES,
        "error_words": ERROR_WORDS.values(),
        "longest_message": settings.DAYBOOK_MAX_MESSAGE,
        "most_tags": MAX_TAGS,
        "longest_tag": TAG_LENGTH,
    }
    return render(request, "gateway/chat.html", context)


def _seq(text: str) -> int | None:
    """Parse a message number from a query string; return None for any other text."""
    seq = parse_number(text)
    return None if seq is None else min(seq, 2**31 - 1)


def _requested_agent(request: HttpRequest, agents: list[str]) -> str:
    requested = request.GET.get("agent", "")
    return requested if requested in agents else (agents[0] if agents else "")


def _review_words(agent: str) -> str:
    settings = Agent.objects.filter(name=agent).values_list("settings", flat=True).first()
    return review_words(AgentSettings.model_validate(settings)) if settings is not None else ""


def _sessions(viewer: Viewer) -> Any:
    return titled(Session.objects.filter(owner_id=viewer.owner.pk)).select_related("agent")
