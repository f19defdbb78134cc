"""Selects the turns that the chat page shows: the newest, those before or around a message, or those since a turn."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID
from zoneinfo import ZoneInfo

from django.db.models import Exists, OuterRef, QuerySet

from gateway.chat.turn_views import TurnView, turn_views
from gateway.models import Message, Session

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
    user_messages = _first_messages(session)
    if at is not None and (around := _around(session, user_messages, at, zone)):
        return around
    if before is not None:
        user_messages = user_messages.filter(seq__lt=before)
    starts = list(user_messages.order_by("-seq").values_list("seq", flat=True)[:PAGE_TURNS])
    if not starts:
        return TranscriptPage(
            turns=turn_views(session, _shown(session).order_by("seq")[:PAGE_TURNS], zone) if before is None else ()
        )
    first = starts[-1]
    messages = _shown(session).filter(seq__gte=first)
    if before is not None:
        messages = messages.filter(seq__lt=before)
    turns = turn_views(session, messages.order_by("seq"), zone)
    if turns and before is None:
        turns[-1].last = True
    return TranscriptPage(turns=turns, earlier=user_messages.filter(seq__lt=first).count(), before=first)


def _around(session: Session, user_messages: QuerySet[Message], at: int, zone: ZoneInfo) -> TranscriptPage | None:
    """Return the turns around a message, or None if it is among the newest turns."""
    before = list(user_messages.filter(seq__lte=at).order_by("-seq").values_list("seq", flat=True)[:AROUND_BEFORE])
    if not before:
        return None
    first = before[-1]
    starts = list(
        user_messages.filter(seq__gte=first).order_by("seq").values_list("seq", flat=True)[: AROUND_TURNS + 1]
    )
    if len(starts) <= PAGE_TURNS:
        return None
    messages = _shown(session).filter(seq__gte=first)
    later = 0
    if len(starts) > AROUND_TURNS:
        messages = messages.filter(seq__lt=starts[-1])
        later = user_messages.filter(seq__gte=starts[-1]).count()
    turns = turn_views(session, messages.order_by("seq"), zone)
    turns[-1].last = not later
    return TranscriptPage(turns=turns, earlier=user_messages.filter(seq__lt=first).count(), before=first, later=later)


def turns_since(session: Session, zone: ZoneInfo, run_id: UUID) -> TranscriptPage:
    """Return a turn and all turns after it on the shown branch. If the turn is not on it, or they are more than
    MAX_TURNS_SINCE, return the newest turns."""
    rest = _shown(session).order_by("seq")
    first = rest.filter(run_id=run_id).values_list("seq", flat=True).first()
    if first is None or _first_messages(session).filter(seq__gte=first).count() > MAX_TURNS_SINCE:
        return conversation(session, zone)
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
    turn.last = not _first_messages(session).filter(seq__gt=messages[0].seq).exists()
    turn.new_day = ""
    return turn


def _command(session: Session, message_id: UUID) -> QuerySet[Message]:
    """Return the messages of a `/memory` command and its answer. A command has no run; its message id identifies it."""
    rows = Message.objects.filter(owner_id=session.owner_id, session=session, kind=Message.Kind.COMMAND).order_by("seq")
    seq = rows.filter(pk=message_id, role=Message.Role.USER).values_list("seq", flat=True).first()
    return rows.filter(seq__in=[seq, seq + 1]) if seq else rows.none()


def _first_messages(session: Session) -> QuerySet[Message]:
    """Return the person's messages with which turns begin. A turn may answer several in a row."""
    before = Message.objects.filter(run=OuterRef("run"), role=Message.Role.USER, seq__lt=OuterRef("seq"))
    return _shown(session).filter(~Exists(before), role=Message.Role.USER)


def _shown(session: Session) -> QuerySet[Message]:
    rows = Message.objects.filter(owner_id=session.owner_id, session=session)
    return rows.exclude(run__superseded=True).exclude(role=Message.Role.TOOL)
