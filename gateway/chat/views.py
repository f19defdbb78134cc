"""The chat page and its fragments. Everything that changes something goes through the native API; these only show."""

from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from gateway.agents.settings import AgentSettings
from gateway.chat.labels import ERROR_WORDS, day_words, margin_day
from gateway.chat.memory_notes import notes_of_review
from gateway.chat.pages import page
from gateway.chat.session_list import page_cursor, session_page, title_of, titled
from gateway.chat.transcript import Conversation, conversation, turn_of_run
from gateway.command_syntax import COMMANDS
from gateway.models import Agent, Message, Run, Session
from gateway.runs.attached import image_of
from memories.tools import TOOLS
from memories.viewers import Viewer, fragment_view, page_view

EXAMPLES = (
    "I prefer short answers with the command first. Keep that in mind.",
    "Plan a vegetarian dinner for six, no hazelnuts.",
    "What do you remember about me so far?",
)
_CHARACTERS_PER_TOKEN = 4
_MAX_SEARCH = 200


@page_view
def chat(request: HttpRequest, viewer: Viewer) -> HttpResponse:
    """`/`: the session used last, or the first page."""
    newest = _sessions(viewer).order_by("-last_active_at", "-id").first()
    return _chat_page(request, viewer, newest)


@page_view
def chat_new(request: HttpRequest, viewer: Viewer) -> HttpResponse:
    """`/new/`: a session that begins with its first message."""
    return _chat_page(request, viewer, None)


@page_view
def chat_session(request: HttpRequest, viewer: Viewer, session_id: UUID) -> HttpResponse:
    """`/c/<session>/`: one session; 404 for somebody else's."""
    session = _sessions(viewer).filter(pk=session_id).first()
    if session is None:
        return render(request, "gateway/not_found.html", page(request), status=404)
    return _chat_page(request, viewer, session)


@fragment_view
def chat_attachment(request: HttpRequest, viewer: Viewer, session_id: UUID, seq: int, index: int) -> HttpResponse:
    """A picture that was sent with a message, as the type that its bytes say. 404 for all else."""
    messages = Message.objects.filter(owner_id=viewer.owner.pk, session=session_id, seq=min(seq, 2**31 - 1))
    parts = messages.values_list("parts", flat=True).first() or ()
    image = image_of(parts[index]) if index < len(parts) else None
    if image is None:
        return HttpResponse(status=404)
    response = HttpResponse(image.data, content_type=image.media_type)
    response.headers["Content-Security-Policy"] = "default-src 'none'; sandbox"
    return response


@fragment_view
def sessions_fragment(request: HttpRequest, viewer: Viewer) -> HttpResponse:
    """The list of sessions, or its next stretch (`before`), or what a search (`q`) finds in it."""
    search = " ".join(request.GET.get("q", "").split())[:_MAX_SEARCH]
    before = page_cursor(request.GET.get("before", ""))
    listed = session_page(viewer.owner.pk, viewer.zone, search=search, before=before)
    context = {
        "sessions": listed,
        "search": search,
        "more": before is not None,
        "current": request.GET.get("current", ""),
    }
    return render(request, "gateway/sessions.html", context)


@fragment_view
def turn_fragment(request: HttpRequest, viewer: Viewer, session_id: UUID, run_id: UUID) -> HttpResponse:
    """One turn as the page shows it."""
    session = _sessions(viewer).filter(pk=session_id).first()
    turn = turn_of_run(session, run_id, viewer.zone) if session else None
    if session is None or turn is None:
        return HttpResponse(status=404)
    return render(request, "gateway/turn.html", {"turn": turn, "session": session, "fill": context_fill(session)})


@fragment_view
def turns_fragment(request: HttpRequest, viewer: Viewer, session_id: UUID) -> HttpResponse:
    """The newest turns, or those before message number `before`."""
    session = _sessions(viewer).filter(pk=session_id).first()
    if session is None:
        return HttpResponse(status=404)
    before = request.GET.get("before", "")
    last = min(int(before), 2**31 - 1) if before.isdecimal() else None
    shown = conversation(session, viewer.zone, before=last)
    context = {"conversation": _with_days(shown, viewer), "session": session, "fill": context_fill(session)}
    return render(request, "gateway/turns.html", context)


@fragment_view
def review_fragment(request: HttpRequest, viewer: Viewer, review_id: UUID) -> HttpResponse:
    """What a review wrote, for its toast; 204 where there is nothing of it, or it is somebody else's."""
    notes = notes_of_review(viewer.owner.pk, review_id)
    if notes is None:
        return HttpResponse(status=204)
    return render(request, "gateway/review_entries.html", {"notes": notes})


def context_fill(session: Session | None) -> int:
    """Return how much of the agent's context the session fills, in whole percent.

    The tokens of its newest completed run, as the model server counted them; else estimated from the characters."""
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
    shown = conversation(session, viewer.zone) if session else Conversation(turns=())
    listed = session_page(viewer.owner.pk, viewer.zone)
    now = timezone.now().astimezone(viewer.zone)
    agents = list(Agent.objects.order_by("created_at", "name").values_list("name", flat=True))
    context = {
        "tab": "chat",
        "session": session,
        "title": title_of(session) if session else "",
        "current": str(session.pk) if session else "",
        "conversation": _with_days(shown, viewer),
        "sessions": listed,
        "agents": agents,
        "agent": session.agent.name if session else _wanted_agent(request, agents),
        "temporary": session.temporary if session else request.GET.get("temporary") == "1",
        "first": not listed.days,
        "today": margin_day(now),
        "day": day_words(now.date(), now.date()),
        "fill": context_fill(session),
        "commands": [(command.line, command.about) for command in COMMANDS],
        "tools": TOOLS.values(),
        "examples": EXAMPLES,
        "error_words": ERROR_WORDS.values(),
    }
    return render(request, "gateway/chat.html", page(request) | context)


def _wanted_agent(request: HttpRequest, agents: list[str]) -> str:
    wanted = request.GET.get("agent", "")
    return wanted if wanted in agents else (agents[0] if agents else "")


def _with_days(shown: Conversation, viewer: Viewer) -> dict[str, Any]:
    today = timezone.now().astimezone(viewer.zone).date()
    turns = [(turn, day_words(turn.new_day, today) if turn.new_day else "") for turn in shown.turns]
    return {"turns": turns, "earlier": shown.earlier, "before": shown.before}


def _sessions(viewer: Viewer) -> Any:
    return titled(Session.objects.filter(owner_id=viewer.owner.pk)).select_related("agent")
