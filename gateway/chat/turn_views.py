"""Builds the turns of the chat page: their messages, the memories that were given, and what was written. Every query is
limited to the owner; the number of queries does not depend on the number of turns."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from django.db.models.functions import Left
from django.urls import reverse
from django.utils import timezone
from django.utils.safestring import SafeString

from gateway.agents.configuration import prices_of
from gateway.agents.settings import Price
from gateway.attachments.files import ReadFailure, file_is_gone
from gateway.attachments.in_message import attached_parts, first_text, name_of
from gateway.attachments.references import attached_in
from gateway.chat import labels
from gateway.chat.held_notes import HeldNote
from gateway.chat.highlight import SECONDS_PER_PAGE, Budget
from gateway.chat.markdown import render_markdown
from gateway.chat.memory_notes import GivenMemory, given_to_runs, notes_of_runs
from gateway.chat.tool_uses import tool_use
from gateway.limits.money import Money, dollars, usage_words
from gateway.models import Message, Run, Session
from gateway.runs.branches import versions_of

MAX_TOOL_USES = 30  # per turn
MAX_TOOL_CHARS = 2_000  # of a tool call's arguments, and of its result


@dataclass(slots=True, kw_only=True)
class TurnView:
    """One turn on the page. `run_id` is that of the message for a command, and None for messages of the client's
    history; `new_day` names the day if the turn is its first."""

    key: str
    seq: int = 0
    run_id: UUID | None = None
    state: str = Run.State.COMPLETED
    command: bool = False
    last: bool = False
    said: str = ""
    said_html: SafeString = field(default_factory=SafeString)
    said_at: datetime | None = None
    attached: Sequence[dict[str, str]] = ()
    answer: str = ""
    answer_html: SafeString = field(default_factory=SafeString)
    answer_at: datetime | None = None
    new_day: str = ""
    error: labels.ErrorWords | None = None
    stopped: str = ""
    answered: str = ""
    interrupted: bool = False
    given: Sequence[GivenMemory] = ()
    notes: Sequence[dict[str, Any]] = ()
    held: Sequence[HeldNote] = ()
    versions: dict[str, Any] | None = None
    reasoning: str = ""
    thought: str = ""
    uses: Sequence[dict[str, Any]] = ()
    uses_more: int = 0
    ended: str = ""
    figures: Sequence[tuple[str, str]] = ()

    @property
    def folded(self) -> str:
        """The size of the person's message if it is shown folded, else ""."""
        return labels.folded_size(self.said)


def turn_views(session: Session, messages: Iterable[Message], zone: ZoneInfo) -> list[TurnView]:
    """Return the turns of a session's messages, in their order. `zone` determines the days."""
    messages = list(messages)
    turns = _grouped(messages)
    uses = _uses(session, messages)
    ids = [turn.run_id for turn in turns if turn.run_id]
    runs = {run.pk: run for run in Run.objects.filter(owner_id=session.owner_id, session=session, pk__in=ids)}
    given = given_to_runs(session.owner_id, list(runs.values()))
    notes, held = notes_of_runs(session.owner_id, session.pk, list(runs.values()))
    versions = versions_of(session, runs.values())
    today, day = timezone.now().astimezone(zone).date(), None
    for turn in turns:
        run = runs.get(turn.run_id) if turn.run_id else None
        if run is not None:
            turn.given, turn.notes = given.get(run.pk, ()), notes.get(run.pk, ())
            turn.held = held.get(run.pk, ())
            turn.versions = _versions(run.pk, versions[run.pk]) if run.pk in versions else None
            turn.uses = uses.get(run.pk, ())[:MAX_TOOL_USES]
            turn.uses_more = len(uses.get(run.pk, ())) - len(turn.uses)
            _add_run(turn, run)
            turn.figures = _run_figures(run, prices_of(session.agent))
        at = turn.said_at or turn.answer_at
        if at is not None and at.astimezone(zone).date() != day:
            day = at.astimezone(zone).date()
            turn.new_day = labels.day_words(day, today)
    budget = Budget(SECONDS_PER_PAGE)
    for turn in reversed(turns):  # the newest turns get the budget first
        turn.answer_html = render_markdown(turn.answer, budget, scope=turn.key)
        if "```" in turn.said:  # a person's text is shown as typed unless it has a code fence
            turn.said_html = render_markdown(turn.said, budget, scope=f"{turn.key}-said")
    return turns


def _versions(shown: UUID, versions: Sequence[UUID]) -> dict[str, Any]:
    """Return the number of the shown version of a turn, their count, and the versions before and after it."""
    at = versions.index(shown)
    later = versions[at + 1] if at + 1 < len(versions) else None
    return {"number": at + 1, "count": len(versions), "earlier": versions[at - 1] if at else None, "later": later}


def _grouped(messages: Iterable[Message]) -> list[TurnView]:
    turns: list[TurnView] = []
    answers: dict[str, list[str]] = defaultdict(list)
    for message in messages:
        begins = message.role == Message.Role.USER and not message.run_id
        if begins or not turns or turns[-1].run_id != message.run_id:
            turns.append(TurnView(key=str(message.run_id or message.pk), seq=message.seq, run_id=message.run_id))
        turn = turns[-1]
        turn.command = message.kind == Message.Kind.COMMAND
        if message.role == Message.Role.USER:
            text = first_text(message.parts) if message.parts else message.text
            turn.said = "\n\n".join(filter(None, (turn.said, text)))
            turn.said_at = message.created_at
            turn.attached = [*turn.attached, *_attachments(message)]
        elif message.text:
            answers[turn.key].append(message.text)
            turn.answer_at = message.created_at
    for turn in turns:
        turn.answer = "\n\n".join(answers[turn.key])
    return turns


def _uses(session: Session, messages: Iterable[Message]) -> dict[UUID, list[dict[str, Any]]]:
    """Return the tool calls of each run, with truncated texts. One query; none without calls."""
    with_calls = [message for message in messages if message.run_id and message.calls]
    rows = Message.objects.filter(owner_id=session.owner_id, session=session, role=Message.Role.TOOL)
    rows = rows.filter(run_id__in={message.run_id for message in with_calls}).annotate(
        beginning=Left("text", MAX_TOOL_CHARS + 1)
    )
    results: dict[UUID | None, dict[str, str]] = defaultdict(dict)
    for run_id, call_id, text in rows.values_list("run_id", "tool_call_id", "beginning"):
        results[run_id][call_id] = text
    found: dict[UUID, list[dict[str, Any]]] = defaultdict(list)
    for message in with_calls:
        if message.run_id is not None:
            of_run = results[message.run_id]
            found[message.run_id] += [tool_use(call, of_run, max_chars=MAX_TOOL_CHARS) for call in message.calls]
    return found


def _attachments(message: Message) -> list[dict[str, str]]:
    """Return the attachments of a message. `url` is the address of a picture, "" for anything else; `note` says why a
    file is not shown."""
    parts = attached_parts(message.parts or ())
    first = len(message.parts or ()) - len(parts)
    found = []
    for index, part in enumerate(parts, start=first):
        shown = {"session_id": message.session_id, "seq": message.seq, "index": index}
        files = [text.reference.sha256 for text in attached_in([part])]
        note = ReadFailure.MISSING if any(file_is_gone(message.owner_id, sha256) for sha256 in files) else ""
        url = reverse("chat-attachment", kwargs=shown) if part.get("type") == "image_url" and not note else ""
        found.append({"name": name_of(part), "url": url, "note": str(note)})
    return found


def _add_run(turn: TurnView, run: Run) -> None:
    turn.state = run.state
    turn.answer = turn.answer or run.text
    turn.answer_at = turn.answer_at or run.finished_at or run.started_at
    notes = (labels.answered_words(run.trace.get("attempts", ())), labels.toolless_words(run.trace.get("toolless")))
    turn.answered = " ".join(filter(None, notes))
    turn.reasoning, turn.thought = run.reasoning, labels.thought_words(run.trace.get("thought_ms"))
    if run.state == Run.State.COMPLETED:
        turn.ended = labels.ended_words(turn.answer, str(run.trace.get("finish_reason", "")))
    if run.state == Run.State.FAILED:
        turn.error = labels.error_words(run.error, memory_changed=bool(turn.notes))
    elif run.state == Run.State.STOPPED:
        by = str(run.trace.get("stopped_by", ""))
        turn.stopped, turn.interrupted = labels.stopped_words(by), by in labels.INTERRUPTED


def _run_figures(run: Run, prices: Mapping[str, Price]) -> Sequence[tuple[str, str]]:
    """Return (label, value) pairs for a finished run; unknown values are left out."""
    if run.finished_at is None:
        return ()
    figures = (
        ("Model", run.model),
        ("Tokens", usage_words(run.usage) if run.usage.get("total_tokens") else ""),
        ("Cost", cost_words(run, prices)),
        ("Time", f"{(run.finished_at - run.started_at).total_seconds():.1f} s"),
    )
    return [(word, value) for word, value in figures if value]


def cost_words(run: Run, prices: Mapping[str, Price]) -> str:
    """Return the cost of a run's tokens, or "" if its model has no price or reported no tokens."""
    total, written = run.usage.get("total_tokens"), run.usage.get("completion_tokens")
    return dollars(Money(prices).cost(run.model, total, written)) if run.model in prices and total else ""
