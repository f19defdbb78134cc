"""The list of sessions beside the chat: newest first, by day, searched by title and by what was said."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from uuid import UUID
from zoneinfo import ZoneInfo

from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Substr
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from gateway.chat.labels import near_day_words
from gateway.models import Message, Run, Session
from memories.ids import parse_uuid

PAGE_SESSIONS = 40
_TITLE_FROM_WORDS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRow:
    """One session in the list."""

    id: UUID
    title: str
    temporary: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionDay:
    """A day's sessions. `continued`: the page before this one ended in the same day."""

    label: str
    rows: Sequence[SessionRow]
    continued: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionPage:
    """A stretch of the list; `before` is where the next one begins ("" at the end)."""

    days: Sequence[SessionDay]
    before: str = ""


@dataclass(frozen=True, slots=True)
class PageCursor:
    """A place in the list. Sessions that were active at the same moment (an import) follow each other by id."""

    at: datetime
    id: UUID

    def __str__(self) -> str:
        return f"{self.at.isoformat()}_{self.id}"


def page_cursor(text: str) -> PageCursor | None:
    """Return the place a page's address names; None for anything else."""
    moment, _, given = text.partition("_")
    try:
        at, pk = parse_datetime(moment), parse_uuid(given)
    except ValueError:
        return None
    return PageCursor(at, pk) if at is not None and at.tzinfo is not None and pk is not None else None


def session_page(owner_id: UUID, zone: ZoneInfo, *, search: str = "", before: PageCursor | None = None) -> SessionPage:
    """Up to PAGE_SESSIONS sessions, those that stand behind `before`."""
    rows = titled(Session.objects.filter(owner_id=owner_id)).order_by("-last_active_at", "-id")
    if before is not None:
        rows = rows.filter(Q(last_active_at__lt=before.at) | Q(last_active_at=before.at, pk__lt=before.id))
    if search:
        said = Message.objects.filter(owner_id=owner_id, session=OuterRef("pk"), text__icontains=search)
        rows = rows.filter(Q(title__icontains=search) | Exists(said.exclude(role=Message.Role.TOOL)))
    else:
        rows = rows.exclude(_only_brought())
    found = list(rows[: PAGE_SESSIONS + 1])
    shown = found[:PAGE_SESSIONS]
    today = timezone.now().astimezone(zone).date()
    days: list[SessionDay] = []
    for day, sessions in groupby(shown, lambda session: session.last_active_at.astimezone(zone).date()):
        listed = [SessionRow(id=s.pk, title=title_of(s), temporary=s.temporary) for s in sessions]
        continued = not days and before is not None and before.at.astimezone(zone).date() == day
        days.append(SessionDay(label=near_day_words(day, today), rows=listed, continued=continued))
    more = len(found) > PAGE_SESSIONS
    return SessionPage(days=days, before=str(PageCursor(shown[-1].last_active_at, shown[-1].pk)) if more else "")


def _only_brought() -> Q:
    """Sessions of messages that a program brought, in which nobody said anything yet: they are found by searching."""
    brought = Message.objects.filter(
        owner_id=OuterRef("owner_id"), session=OuterRef("pk"), seq=1, kind=Message.Kind.HISTORY
    )
    runs = Run.objects.filter(owner_id=OuterRef("owner_id"), session=OuterRef("pk"))
    return Q(Exists(brought), ~Exists(runs), turns=0)


def titled(sessions: QuerySet[Session]) -> QuerySet[Session]:
    """Return the sessions with `first_words`, which stand in for a title."""
    said = Message.objects.filter(
        owner_id=OuterRef("owner_id"), session=OuterRef("pk"), role=Message.Role.USER
    ).order_by("seq")
    return sessions.annotate(first_words=Substr(Subquery(said.values("text")[:1]), 1, 4 * _TITLE_FROM_WORDS))


def title_of(session: Session) -> str:
    """Return the session's title, or the beginning of what was said first."""
    if session.title:
        return session.title
    words = " ".join((getattr(session, "first_words", "") or "").split())
    if not words:
        return "Untitled session"
    if len(words) <= _TITLE_FROM_WORDS:
        return words
    return words[:_TITLE_FROM_WORDS].rsplit(" ", 1)[0].rstrip(".,;:") + "…"
