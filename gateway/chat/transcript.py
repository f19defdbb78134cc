"""Selects the turns that the chat page shows: the newest, those before or around a message, or those since a turn."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID
from zoneinfo import ZoneInfo

from django.db.models import Count, Exists, OuterRef, Q, QuerySet

from gateway.chat.turn_views import TurnView, turn_views
from gateway.models import Message, Session
from gateway.runs.branches import shown_ancestor

PAGE_TURNS = 20
AROUND_BEFORE = 3  # turns up to and including the message's own
AROUND_TURNS = 200
MAX_TURNS_SINCE = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptPage:
    """A page of turns, oldest first. `earlier` and `later` are the numbers of turns before and after them, `before` is
    the message number from which the previous page continues."""

    turns: Sequence[TurnView] = ()
    earlier: int = 0
    before: int = 0
    later: int = 0

    @property
    def next_page(self) -> int:
        """The number of earlier turns that are loaded next."""
        return min(self.earlier, PAGE_TURNS)


def conversation(
    session: Session, zone: ZoneInfo, *, before: int | None = None, at: int | None = None
) -> TranscriptPage:
    """Return the newest turns of a session; the newest ones before message number `before`; or the turns from shortly
    before message number `at`, up to AROUND_TURNS."""
    if at is not None and (around := _around(session, at, zone)):
        return around
    starts = _starts(session).order_by("-seq")
    if before is not None:
        starts = starts.filter(seq__lt=before)
    newest = list(starts[:PAGE_TURNS])
    if newest:
        return _page(session, zone, newest[-1], until=before, last=before is None)
    if before is not None:
        return TranscriptPage()
    return TranscriptPage(turns=turn_views(session, _shown(session).order_by("seq")[:PAGE_TURNS], zone))


def _around(session: Session, at: int, zone: ZoneInfo) -> TranscriptPage | None:
    """Return the turns around a message, or None if it is among the newest turns."""
    before = list(_starts(session).filter(seq__lte=at).order_by("-seq")[:AROUND_BEFORE])
    if not before:
        return None
    first = before[-1]
    shown = list(_starts(session).filter(seq__gte=first).order_by("seq")[: AROUND_TURNS + 1])
    if len(shown) <= PAGE_TURNS:
        return None
    if len(shown) <= AROUND_TURNS:
        return _page(session, zone, first, last=True)
    later = _count(_shown(session).filter(seq__gte=shown[-1]))
    return _page(session, zone, first, until=shown[-1], last=False, later=later)


def _page(
    session: Session, zone: ZoneInfo, first: int, *, until: int | None = None, last: bool, later: int = 0
) -> TranscriptPage:
    """Return the turns from message number `first` up to `until`. `last` means that the newest one is among them."""
    messages = _shown(session).filter(seq__gte=first).order_by("seq")
    turns = turn_views(session, messages if until is None else messages.filter(seq__lt=until), zone)
    if turns:
        turns[-1].last = last
    earlier = _count(_shown(session).filter(seq__lt=first))
    return TranscriptPage(turns=turns, earlier=earlier, before=first, later=later)


def turns_since(session: Session, zone: ZoneInfo, run_id: UUID) -> TranscriptPage:
    """Return a turn and all turns after it on the shown branch. If the turn is not on it, begin with the last turn
    before it that is, and count those before that one: the reader's page may not show it. If there is none, or they are
    more than MAX_TURNS_SINCE, return the newest turns."""
    rest = _shown(session).order_by("seq")
    numbers = rest.values_list("seq", flat=True)
    first = numbers.filter(run_id=run_id).first()
    is_hidden = first is None
    if is_hidden and (before := shown_ancestor(session, run_id)):
        first = numbers.filter(run_id=before).first()
    if first is None or _count(rest.filter(seq__gte=first)) > MAX_TURNS_SINCE:
        return conversation(session, zone)
    if is_hidden:
        return _page(session, zone, first, last=True)
    turns = turn_views(session, rest.filter(seq__gte=first), zone)
    turns[-1].last = True
    return TranscriptPage(turns=turns)


def turn_of_run(session: Session, run_id: UUID, zone: ZoneInfo) -> TurnView | None:
    """Return a turn, for the fragment that replaces a streamed answer, or None if there is no such run."""
    messages = Message.objects.filter(owner_id=session.owner_id, session=session, run_id=run_id)
    messages = messages.exclude(role=Message.Role.TOOL).order_by("seq")
    if not messages:
        messages = _command(session, run_id)
    turns = turn_views(session, messages, zone)
    if not turns:
        return None
    turn = turns[0]
    turn.last = not _starts(session).filter(seq__gt=messages[0].seq).exists()
    turn.new_day = ""
    return turn


def _command(session: Session, message_id: UUID) -> QuerySet[Message]:
    """Return the messages of a `/memory` command and its answer. A command has no run; its message id identifies it."""
    rows = Message.objects.filter(owner_id=session.owner_id, session=session, kind=Message.Kind.COMMAND).order_by("seq")
    seq = rows.filter(pk=message_id, role=Message.Role.USER).values_list("seq", flat=True).first()
    return rows.filter(seq__in=[seq, seq + 1]) if seq else rows.none()


def _starts(session: Session) -> QuerySet[Message, int]:
    """Return the numbers of the person's messages that begin a turn. A turn may answer several in a row."""
    before = Message.objects.filter(run=OuterRef("run"), role=Message.Role.USER, seq__lt=OuterRef("seq"))
    return _shown(session).filter(~Exists(before), role=Message.Role.USER).values_list("seq", flat=True)


def _count(messages: QuerySet[Message]) -> int:
    """Return how many turns these messages begin. The query reads each message once; `_starts` is for a few turns."""
    asked = messages.filter(role=Message.Role.USER)
    counts = asked.aggregate(runs=Count("run", distinct=True), others=Count("pk", filter=Q(run=None)))
    return int(counts["runs"] + counts["others"])


def _shown(session: Session) -> QuerySet[Message]:
    rows = Message.objects.filter(owner_id=session.owner_id, session=session)
    return rows.exclude(run__superseded=True).exclude(role=Message.Role.TOOL)
