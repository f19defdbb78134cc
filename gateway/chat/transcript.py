"""A session's conversation as the chat page shows it: turns with their words, the memories that were used, and what
memory did. Reads only; every query is the owner's; a page of turns costs the same few queries however long it is."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from uuid import UUID
from zoneinfo import ZoneInfo

from django.db.models import Q, QuerySet
from django.urls import reverse
from django.utils.safestring import SafeString, mark_safe

from gateway.chat.highlight import PAGE_BUDGET, Budget
from gateway.chat.labels import INTERRUPTED, ErrorWords, answered_words, error_words, stopped_words
from gateway.chat.markdown import render_markdown
from gateway.chat.memory_notes import MemoryNote, UsedMemory, notes_of_runs, used_in_runs
from gateway.models import Message, Run, Session
from gateway.runs.attached import attached_parts, first_text, name_of

PAGE_TURNS = 20


@dataclass(frozen=True, slots=True)
class Attachment:
    """Something that was sent with a message; `url` is where a picture is shown from, "" for all else."""

    name: str
    url: str


@dataclass(slots=True, kw_only=True)
class TurnView:
    """One turn on the page. `run_id` is None for words that a client brought along, and for commands."""

    key: str
    run_id: UUID | None = None
    number: int = 0
    state: str = Run.State.COMPLETED
    command: bool = False
    last: bool = False
    said: str = ""
    said_html: SafeString = field(default_factory=SafeString)
    said_at: datetime | None = None
    attached: Sequence["Attachment"] = ()
    answer: str = ""
    answer_html: SafeString = field(default_factory=SafeString)
    answer_at: datetime | None = None
    new_day: date | None = None
    error: ErrorWords | None = None
    stopped: str = ""
    answered: str = ""
    interrupted: bool = False
    used: Sequence[UsedMemory] = ()
    notes: Sequence[MemoryNote] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A page of turns, oldest first; `earlier` says how many turns stand before them, and `before` where."""

    turns: Sequence[TurnView]
    earlier: int = 0
    before: int = 0


def conversation(session: Session, zone: ZoneInfo, *, before: int | None = None) -> Conversation:
    """Return the newest turns of a session, or the newest ones before message number `before`."""
    said = _shown(session).filter(role=Message.Role.USER)
    if before is not None:
        said = said.filter(seq__lt=before)
    starts = list(said.order_by("-seq").values_list("seq", flat=True)[:PAGE_TURNS])
    if not starts:
        return Conversation(
            turns=_views(session, _shown(session).order_by("seq")[:PAGE_TURNS], zone) if before is None else ()
        )
    first = starts[-1]
    messages = _shown(session).filter(seq__gte=first)
    if before is not None:
        messages = messages.filter(seq__lt=before)
    turns = _views(session, messages.order_by("seq"), zone)
    if turns and before is None:
        turns[-1].last = True
    return Conversation(turns=turns, earlier=said.filter(seq__lt=first).count(), before=first)


def turn_of_run(session: Session, run_id: UUID, zone: ZoneInfo) -> TurnView | None:
    """One turn, for the fragment that takes the place of a streamed answer; None where there is no such run."""
    messages = Message.objects.filter(owner_id=session.owner_id, session=session, run_id=run_id)
    messages = messages.exclude(role=Message.Role.TOOL).order_by("seq")
    if not messages:
        messages = _command(session, run_id)
    turns = _views(session, messages, zone)
    if not turns:
        return None
    turn = turns[0]
    turn.last = not _shown(session).filter(role=Message.Role.USER, seq__gt=messages[0].seq).exists()
    turn.new_day = None
    return turn


def _command(session: Session, message_id: UUID) -> QuerySet[Message]:
    """Return a `/memory` command, which has no run and is named by its own message, and its answer."""
    rows = Message.objects.filter(owner_id=session.owner_id, session=session, kind=Message.Kind.COMMAND).order_by("seq")
    seq = rows.filter(pk=message_id, role=Message.Role.USER).values_list("seq", flat=True).first()
    return rows.filter(seq__in=[seq, seq + 1]) if seq else rows.none()


def _shown(session: Session) -> QuerySet[Message]:
    current = Q(run__isnull=True) | Q(run__superseded=False)
    return Message.objects.filter(current, owner_id=session.owner_id, session=session).exclude(role=Message.Role.TOOL)


def _views(session: Session, messages: Iterable[Message], zone: ZoneInfo) -> list[TurnView]:
    turns = _grouped(messages)
    ids = [turn.run_id for turn in turns if turn.run_id]
    runs = {run.pk: run for run in Run.objects.filter(owner_id=session.owner_id, session=session, pk__in=ids)}
    used = used_in_runs(session.owner_id, list(runs.values()))
    notes = notes_of_runs(session.owner_id, session.pk, list(runs.values()))
    day: date | None = None
    for turn in turns:
        run = runs.get(turn.run_id) if turn.run_id else None
        if run is not None:
            turn.used, turn.notes = used.get(run.pk, ()), notes.get(run.pk, ())
            _add_run(turn, run)
        at = turn.said_at or turn.answer_at
        if at is not None and at.astimezone(zone).date() != day:
            day = turn.new_day = at.astimezone(zone).date()
    colours = Budget(PAGE_BUDGET)
    for turn in reversed(turns):  # the newest, which is read first, has its colours first
        turn.answer_html = _safe(turn.answer, colours)
        turn.said_html = _said_html(turn.said, colours)
    return turns


def _grouped(messages: Iterable[Message]) -> list[TurnView]:
    turns: list[TurnView] = []
    answers: dict[str, list[str]] = defaultdict(list)
    for message in messages:
        if message.role == Message.Role.USER or not turns or turns[-1].run_id != message.run_id:
            turns.append(TurnView(key=str(message.run_id or message.pk), run_id=message.run_id))
        turn = turns[-1]
        turn.command = message.kind == Message.Kind.COMMAND
        if message.role == Message.Role.USER:
            turn.said, turn.said_at = message.text, message.created_at
            if message.parts:
                turn.said, turn.attached = first_text(message.parts), _attachments(message)
        elif message.text:
            answers[turn.key].append(message.text)
            turn.answer_at = message.created_at
    for turn in turns:
        turn.answer = "\n\n".join(answers[turn.key])
    return turns


def _attachments(message: Message) -> list[Attachment]:
    parts = attached_parts(message.parts or ())
    first = len(message.parts or ()) - len(parts)
    found = []
    for index, part in enumerate(parts, start=first):
        shown = {"session_id": message.session_id, "seq": message.seq, "index": index}
        url = reverse("chat-attachment", kwargs=shown) if part.get("type") == "image_url" else ""
        found.append(Attachment(name_of(part), url))
    return found


def _add_run(turn: TurnView, run: Run) -> None:
    turn.number, turn.state = run.turn, run.state
    turn.answer = turn.answer or run.text
    turn.answer_at = turn.answer_at or run.finished_at or run.started_at
    turn.answered = answered_words(run.trace.get("attempts", ()))
    if run.state == Run.State.FAILED:
        turn.error = error_words(run.error, wrote=bool(turn.notes))
    elif run.state == Run.State.STOPPED:
        by = str(run.trace.get("stopped_by", ""))
        turn.stopped, turn.interrupted = stopped_words(by), by in INTERRUPTED


def _said_html(text: str, colours: Budget) -> SafeString:
    # A person's words stay as typed; only a fence says that Markdown was meant.
    return _safe(text, colours) if "```" in text else SafeString()


def _safe(text: str, colours: Budget) -> SafeString:
    return mark_safe(render_markdown(text, colours)) if text else SafeString()  # noqa: S308 - sanitised by nh3
