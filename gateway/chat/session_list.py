"""The session list beside the chat: pinned sessions first, then the most recently used; and search results."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import groupby
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Substr
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from gateway.chat.labels import near_day_words, period_words
from gateway.models import Message, Run, Session
from gateway.sessions.keeping import tagged, tags_of
from gateway.sessions.search import FoundSession, search_sessions
from memories.entry_rules import clean_moment
from memories.errors import InvalidRequest
from memories.history.provenance import Names, Turns
from memories.ids import parse_uuid

PAGE_SESSIONS = 40
PAGE_FOUND = 20
MOST_PAGES = 10  # in one response
_MAX_PINNED = 100
_MAX_DERIVED_TITLE = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionGroup:
    """Sessions with their titles under one heading. `continued`: the previous page ended with the same heading."""

    label: str
    rows: Sequence[tuple[Session, str]]
    continued: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionPage:
    """A page of the list or of search results. `before` is the cursor of the next page, "" on the last one. The first
    page has all `tags` of the owner."""

    groups: Sequence[SessionGroup] = ()
    found: Sequence[dict[str, Any]] = ()
    before: str = ""
    has_archived: bool = False
    tags: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class PageCursor:
    """A position in the list. Sessions that were last used at the same moment (an import) are ordered by id."""

    at: datetime
    id: UUID

    def __str__(self) -> str:
        return f"{self.at.isoformat()}_{self.id}"


def page_cursor(text: str) -> PageCursor | None:
    """Parse a cursor; return None for any other text."""
    moment, _, key = text.partition("_")
    try:
        at, pk = clean_moment(parse_datetime(moment), "A cursor is between", "before"), parse_uuid(key)
    except (ValueError, InvalidRequest):
        return None
    return PageCursor(at, pk) if at is not None and pk is not None else None


def session_page(
    owner_id: UUID,
    zone: ZoneInfo,
    *,
    before: PageCursor | None = None,
    archived: bool = False,
    tag: str = "",
    limit: int = PAGE_SESSIONS,
) -> SessionPage:
    """Return up to `limit` sessions after the cursor `before`, optionally only those with a tag. The first page starts
    with the pinned ones. Temporary sessions are not listed."""
    sessions = titled(Session.objects.filter(owner_id=owner_id, temporary=False, archived_at__isnull=not archived))
    if tag:
        sessions = tagged(sessions, tag)
    rows = sessions.exclude(_only_ingested()).order_by("-last_active_at", "-id")
    pinned: Iterable[Session] = ()
    if not archived:
        rows = rows.filter(pinned_at=None)
        if before is None:
            pinned = list(sessions.filter(pinned_at__isnull=False).order_by("-pinned_at", "-id")[:_MAX_PINNED])
    if before is not None:
        rows = rows.filter(Q(last_active_at__lt=before.at) | Q(last_active_at=before.at, pk__lt=before.id))
    found = list(rows[: limit + 1])
    shown = found[:limit]
    groups = _by_period(shown, zone, before.at if before else None)
    if first := _with_titles(pinned):
        groups.insert(0, SessionGroup(label="Pinned", rows=first))
    more = len(found) > limit
    archived_sessions = Session.objects.filter(owner_id=owner_id, temporary=False, archived_at__isnull=False)
    return SessionPage(
        groups=groups,
        before=str(PageCursor(shown[-1].last_active_at, shown[-1].pk)) if more else "",
        has_archived=not archived and archived_sessions.exists(),
        tags=tags_of(owner_id) if before is None else (),
    )


def found_page(owner_id: UUID, zone: ZoneInfo, search: str, *, after: UUID | None = None, tag: str = "") -> SessionPage:
    """Return up to PAGE_FOUND sessions that match a search, following the session `after`, optionally only those with a
    tag. The list ends if `after` was deleted in the meantime."""
    sessions = titled(Session.objects.filter(owner_id=owner_id)).select_related("agent")
    if tag:
        sessions = tagged(sessions, tag)
    try:
        found, more = search_sessions(sessions, owner_id, search, limit=PAGE_FOUND, after=after, narrowed=bool(tag))
    except InvalidRequest:
        return SessionPage()
    today = timezone.now().astimezone(zone).date()
    rows = [_found_row(row, zone, today) for row in found]
    before = str(found[-1].session.pk) if more and found else ""
    return SessionPage(found=rows, before=before, tags=tags_of(owner_id) if after is None else ())


def _by_period(sessions: Iterable[Session], zone: ZoneInfo, before: datetime | None) -> list[SessionGroup]:
    today = timezone.now().astimezone(zone).date()

    def label(moment: datetime) -> str:
        return period_words(moment.astimezone(zone).date(), today)

    groups: list[SessionGroup] = []
    for words, rows in groupby(sessions, lambda session: label(session.last_active_at)):
        continued = not groups and before is not None and label(before) == words
        groups.append(SessionGroup(label=words, rows=_with_titles(rows), continued=continued))
    return groups


def _with_titles(sessions: Iterable[Session]) -> list[tuple[Session, str]]:
    return [(session, title_of(session)) for session in sessions]


def _found_row(found: FoundSession, zone: ZoneInfo, today: date) -> dict[str, Any]:
    """Return a session that a search found. `hits` are its first matching messages, `more` counts the others."""
    hits = [
        {
            "seq": hit.seq,
            "who": "You" if hit.role == Message.Role.USER else found.session.agent.name,
            "when": near_day_words(hit.said_at.astimezone(zone).date(), today),
            "pieces": hit.snippet.pieces(),
        }
        for hit in found.hits
    ]
    session = found.session
    return {"session": session, "title": title_of(session), "hits": hits, "more": found.count - len(hits)}


def _only_ingested() -> Q:
    """Return the condition for sessions of ingested messages, without a turn of their own. Only a search lists them."""
    ingested = Message.objects.filter(
        owner_id=OuterRef("owner_id"), session=OuterRef("pk"), seq=1, kind=Message.Kind.HISTORY
    )
    runs = Run.objects.filter(owner_id=OuterRef("owner_id"), session=OuterRef("pk"))
    return Q(Exists(ingested), ~Exists(runs), turns=0)


def titled(sessions: QuerySet[Session]) -> QuerySet[Session]:
    """Annotate sessions with `first_words`, from which a missing title is derived."""
    user_messages = Message.objects.filter(
        owner_id=OuterRef("owner_id"), session=OuterRef("pk"), role=Message.Role.USER
    ).order_by("seq")
    return sessions.annotate(first_words=Substr(Subquery(user_messages.values("text")[:1]), 1, 4 * _MAX_DERIVED_TITLE))


def title_of(session: Session) -> str:
    """Return the session's title, or the beginning of its first message."""
    if session.title:
        return session.title
    words = " ".join((getattr(session, "first_words", "") or "").split())
    if not words:
        return "Untitled session"
    if len(words) <= _MAX_DERIVED_TITLE:
        return words
    return words[:_MAX_DERIVED_TITLE].rsplit(" ", 1)[0].rstrip(".,;:") + "…"


def provenance_names(owner_id: UUID, sessions: Collection[UUID], runs: Collection[UUID]) -> Names:
    """Return the titles of sessions and the turn numbers of runs, for the pages of all apps; at most two queries."""
    rows = titled(Session.objects.filter(owner_id=owner_id, pk__in=sessions))
    turns = Run.objects.filter(owner_id=owner_id, pk__in=runs).values_list("pk", "turn")
    return Names(
        titles={row.pk: title_of(row) for row in rows},
        turns={run: Turns(first=turn, last=turn, run_id=run) for run, turn in turns},
    )
