"""Stored responses of /v1/responses. A response is one part of a run: each part but the last ends with calls of the
client's tools, and the next one begins with their results. `resp_<run>` names the first part, `resp_<run>_<n>` a later
one. `Run.responses` contains the request fields of each stored part, by its number."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, groupby
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Length

from gateway.errors import PreviousResponseNotFound, SessionBusy
from gateway.models import Message, Run
from gateway.runs.branches import path_to
from gateway.runs.call_ids import call_prefix, run_of_call
from gateway.runs.context import TurnContext
from gateway.runs.requested import Rule
from gateway.runs.session_rows import messages_of, runs_within
from gateway.runs.window import as_openai, from_first_question
from memories.caller import Caller
from memories.errors import NotFound
from prompts.conversation import NO_RESULT

_ID = re.compile(r"resp_([0-9a-f-]{32,36})(?:_(\d{1,4}))?")
# The most messages read before a response; no model's context is longer.
MAX_ROWS = 2_000
_MAX_REPLACED = 100  # runs of a turn
# Fields of a stored part: the system and developer messages of its input, and the ids of the responses before it that
# have such messages.
SYSTEM, SYSTEM_FROM = "system", "system_from"
_MAX_SYSTEM = 400  # responses with such messages before a response
_STATES_WITH_OUTPUT = (Run.State.COMPLETED, Run.State.STOPPED, Run.State.AWAITING_CLIENT_TOOLS)


@dataclass(slots=True)
class ResponsePart:
    """The stored messages of one response: the input of its request, and the output, including calls of our tools."""

    input: list[Message] = field(default_factory=list)
    output: list[Message] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class SystemMessage:
    """A system or developer message of a response's input, in the format of a request, with the id of its item."""

    id: str
    message: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Previous:
    """Where a conversation continues: after a run, or in a session with commands only; the messages up to there, and
    the responses whose input has system messages among them."""

    run_id: UUID | None
    session_id: UUID
    messages: list[dict[str, Any]]
    system_from: list[str] = field(default_factory=list)


def response_id(run_id: UUID, part: int) -> str:
    """Return the id of a response."""
    return f"resp_{run_id.hex}" + (f"_{part}" if part else "")


def _parse_id(given: str) -> tuple[UUID, int] | None:
    """Return the run and the part that a response id names; None if it is not valid."""
    match = _ID.fullmatch(given)
    try:
        return (UUID(match[1]), int(match[2] or 0)) if match else None
    except ValueError:
        return None


def part_of(context: TurnContext) -> int:
    """Return the number of the part of its run that is being executed."""
    prefix = call_prefix(context.run_id)
    calls = (message.get("tool_calls") or () for message in context.stored)
    return sum(any(str(call.get("id", "")).startswith(prefix) for call in made) for made in calls)


def response_store(context: TurnContext, fields: dict[str, Any]) -> None:
    """Store the request fields of a later part of a run, in the transaction that resumes the run."""
    run = Run.objects.get(pk=context.run_id)
    fields = {**fields, "usage_before": context.earlier.usage}
    Run.objects.filter(pk=run.pk).update(responses={**(run.responses or {}), str(part_of(context)): fields})


def response_find(caller: Caller, given: str) -> tuple[Run, int]:
    """Return the run and the part of a stored response of the owner. Raises NotFound."""
    named = _parse_id(given)
    rows = runs_within(caller.owner_id, caller.limits)
    run = rows.select_related("session__agent").filter(pk=named[0]).first() if named else None
    if named is None or run is None or str(named[1]) not in (run.responses or {}):
        raise NotFound("There is no such response. It was not stored, or has been deleted.", param="response_id")
    return run, named[1]


@transaction.atomic
def response_delete(caller: Caller, given: str) -> None:
    """Delete a stored response. Its messages stay in the session's transcript. Raises NotFound."""
    found, part = response_find(caller, given)
    run = Run.objects.select_for_update().get(pk=found.pk)
    left = {number: kept for number, kept in (run.responses or {}).items() if number != str(part)}
    Run.objects.filter(pk=run.pk).update(responses=left or None)


def previous_response(caller: Caller, given: str) -> Previous:
    """Return where a conversation that names its previous response continues. Raises PreviousResponseNotFound, and
    SessionBusy while that response is still being written."""
    try:
        run, part = response_find(caller, given)
    except NotFound:
        return _after_command(caller, given)
    if run.state == Run.State.RUNNING and len(parts_of(run)) - 1 <= part:
        raise SessionBusy("The previous response is still being written.", run_id=str(run.pk))
    return _previous(run, part, transcript(run, part))


def _previous(run: Run, part: int, rows: Sequence[Message]) -> Previous:
    system_from = responses_with_system(run, part)
    found = with_system(run.owner_id, rows, system_from)
    messages = [row.message if isinstance(row, SystemMessage) else as_openai(row) for row in found]
    return Previous(run.pk, run.session_id, messages, system_from)


def responses_with_system(run: Run, part: int) -> list[str]:
    """Return the ids of the responses of a conversation, up to this one, whose input has system messages."""
    fields = (run.responses or {}).get(str(part), {})
    own = [response_id(run.pk, part)] if SYSTEM in fields else []
    return [*fields.get(SYSTEM_FROM, ()), *own][-_MAX_SYSTEM:]


def with_system(
    owner_id: UUID, rows: Sequence[Message], system_from: Sequence[str]
) -> Iterator[Message | SystemMessage]:
    """Yield the messages of a conversation, and before those of a response the system messages of its input; before all
    of them if the input was the whole conversation. `system_from` are the responses that have such messages; those that
    have been deleted are left out."""
    named = [parsed for parsed in map(_parse_id, system_from) if parsed]
    runs = Run.objects.filter(owner_id=owner_id, pk__in={run_id for run_id, _ in named})
    stored = dict(runs.values_list("pk", "responses"))
    shown = {row.run_id for row in rows}
    at_start: tuple[UUID | None, int] = (None, 0)
    before: dict[tuple[UUID | None, int], list[SystemMessage]] = {}
    for run_id, part in named:
        fields = (stored.get(run_id) or {}).get(str(part), {})
        is_later = "previous_response_id" in fields and run_id in shown
        before.setdefault((run_id, part) if is_later else at_start, []).extend(
            SystemMessage(f"msg_{run_id.hex}_{part}_system_{number}", message)
            for number, message in enumerate(fields.get(SYSTEM, ()))
        )
    yield from before.pop(at_start, ())
    for of_run, found in groupby(rows, key=lambda row: row.run_id):
        for number, messages in enumerate(_parts(of_run, found) if of_run else [ResponsePart(input=list(found))]):
            yield from before.pop((of_run, number), ())
            yield from (*messages.input, *messages.output)


def transcript(run: Run, part: int) -> list[Message]:
    """Return the messages of a response and all messages before it, oldest first."""
    own = [row for earlier in parts_of(run)[: part + 1] for row in (*earlier.input, *earlier.output)]
    return [*before_run(run, own), *own]


def parts_of(run: Run) -> list[ResponsePart]:
    """Return the parts of a run, at least one."""
    parts = _parts(run.pk, messages_of(run))
    parts[0].input += _results_repeated_in(run)
    return parts


def _results_repeated_in(run: Run) -> list[Message]:
    """Return the calls and results with which a run was opened: those of the runs that it replaced, if these had ended
    when the client sent its results again."""
    if not _repeats_results(run):
        return []
    earlier = Run.objects.filter(owner_id=run.owner_id, session_id=run.session_id, turn=run.turn, pk__lt=run.pk)
    newest = list(earlier.order_by("-pk")[:_MAX_REPLACED])
    first = next((at for at, replaced in enumerate(newest) if not _repeats_results(replaced)), len(newest))
    rows = Message.objects.filter(owner_id=run.owner_id, run__in=newest[: first + 1]).exclude(role=Message.Role.USER)
    by_run = groupby(rows.order_by("seq"), lambda row: row.run_id)
    return [row for _, of_run in by_run for row in _to_last_result(of_run)]


def _repeats_results(run: Run) -> bool:
    return bool(run.trace.get("session", {}).get("rule") == Rule.CALL_IDS)


def _to_last_result(rows: Iterable[Message]) -> list[Message]:
    """Return the rows of a run up to the last result that its client sent: the client never saw those after it."""
    found = list(rows)
    sent = (run_of_call(row.tool_call_id) is not None and row.text != NO_RESULT for row in found)
    return found[: max((at for at, was_sent in enumerate(sent, 1) if was_sent), default=0)]


def written_in_order(row: Message, calls: Iterable[dict[str, Any]]) -> Iterator[str | dict[str, Any]]:
    """Yield the pieces of text of an assistant message and these of its calls, in the order in which they were sent."""
    before, sent = (row.kept or {}).get("text_before") or {}, 0
    for call in calls:
        end = before.get(str(call.get("id", "")), len(row.text))
        if text := row.text[sent:end]:
            yield text
        yield call
        sent = max(sent, end)
    if text := row.text[sent:]:
        yield text


def stored_parts(caller: Caller, run_ids: Collection[UUID]) -> Iterator[tuple[UUID, int, ResponsePart]]:
    """Yield the run, number and messages of each stored response among these runs of the owner."""
    runs = runs_within(caller.owner_id, caller.limits).filter(pk__in=run_ids, responses__isnull=False)
    kept = dict(runs.values_list("pk", "responses"))
    messages = Message.objects.filter(owner_id=caller.owner_id, run_id__in=kept).order_by("run_id", "seq")
    for run_id, of_run in groupby(messages, key=lambda row: row.run_id):
        if run_id is not None:
            parts = enumerate(_parts(run_id, of_run))
            yield from ((run_id, number, part) for number, part in parts if str(number) in (kept[run_id] or {}))


def _parts(run_id: UUID, rows: Iterable[Message]) -> list[ResponsePart]:
    parts, prefix = [ResponsePart()], call_prefix(run_id)
    for row in rows:
        is_input = row.role == Message.Role.USER or row.tool_call_id.startswith(prefix)
        if is_input and parts[-1].output:
            parts.append(ResponsePart())
        (parts[-1].input if is_input else parts[-1].output).append(row)
    return parts


def before_run(run: Run, own: Sequence[Message]) -> list[Message]:
    """Return the messages before a run, on its branch: the newest, as much text as a request may have. `own` are those
    of the run."""
    seq = own[0].seq if own else 0
    rows = Message.objects.filter(owner_id=run.owner_id, session_id=run.session_id, seq__lt=seq)
    rows = rows.exclude(kind=Message.Kind.COMMAND).exclude(run__state=Run.State.FAILED)
    if run.superseded:
        rows = rows.filter(Q(run=None) | Q(run_id__in=path_to(run)))
    else:
        rows = rows.exclude(run__superseded=True)
    sizes = list(rows.order_by("-seq").values_list("seq", Length("text"))[:MAX_ROWS])
    totals = accumulate(size for _, size in sizes)
    fitting = [seq for (seq, _), total in zip(sizes, totals, strict=True) if total <= settings.DAYBOOK_MAX_BODY]
    return from_first_question(rows.filter(seq__gte=fitting[-1]).order_by("seq")) if fitting else []


def _after_command(caller: Caller, given: str) -> Previous:
    """Return where a conversation continues after a `/memory` command, whose answer has an id like a response's."""
    named = _parse_id(given)
    rows = Message.objects.filter(owner_id=caller.owner_id, kind=Message.Kind.COMMAND)
    rows = caller.limits.filter(rows, agent="session__agent__name")
    command = rows.filter(pk=named[0]).first() if named else None
    if command is None:
        raise PreviousResponseNotFound(
            f"There is no previous response {given[:80]}. It was not stored, or has been deleted: send the whole "
            "conversation.",
            param="previous_response_id",
        )
    runs = Run.objects.filter(owner_id=caller.owner_id, session_id=command.session_id, superseded=False)
    run = runs.filter(pk__lt=command.pk, state__in=_STATES_WITH_OUTPUT).order_by("-pk").first()
    if run is None:
        rows = Message.objects.filter(owner_id=caller.owner_id, session_id=command.session_id, seq__lt=command.seq)
        rows = rows.filter(kind=Message.Kind.HISTORY).order_by("seq")
        return Previous(None, command.session_id, [as_openai(row) for row in rows])
    last = len(parts_of(run)) - 1
    return _previous(run, last, transcript(run, last))
