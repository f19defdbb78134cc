"""Stored messages as evidence: who said each of them, and which answers a client may pass on as a person's words."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet
from django.db.models.functions import Left, Length

from gateway.messages import has_media
from gateway.models import Message, Run, Session
from gateway.runs.call_ids import run_of_call
from gateway.tool_calls import object_in, valid_calls
from memories.evidence import Speaker, Utterance
from memories.evidence.own_words import foreign_spans
from memories.evidence.passages import MAX_ANSWER_CHARS, MAX_ANSWERS, MIN_ANSWER_CHARS
from memories.evidence.quotes import folded
from memories.tools import TOOLS, tool_meant

EARLIER_CHARS = 50_000
"""Characters of earlier messages that are examined although a model is not shown them: its answers may repeat them."""
SEARCHED = "searched"
"""Key in the trace of a run whose model server read something itself, such as the results of a web search."""
UNSTORED = "unstored_system"
"""Key in the trace of a run whose request had system messages within the conversation, or results of tools that do not
belong to the run. These are not stored with it."""
UNTRUSTED = "untrusted"
"""Key in the trace of a run that read results of its client's tools."""
READ_ELSEWHERE = (SEARCHED, UNSTORED, UNTRUSTED)
_MAX_ROWS = 400
_MAX_ANSWER_SESSIONS = 8  # the latest sessions, since a client passes an answer on immediately
_PAGE_CHARS = 10_000
_MAX_ARGUMENTS = 100_000  # characters; nothing longer is passed on as a message
_MAX_PASSED_ON = 4 * MAX_ANSWERS
_MAX_SAID = 4_000  # characters of a person's message that are compared with such calls
_TOOL_RESULT = re.compile(r"\[tool result, \d+ characters\]")


def tool_result_words(result: str) -> str:
    """Return the placeholder for a tool result."""
    return f"[tool result, {len(result)} characters]"


def earlier_rows(rows: QuerySet[Message]) -> list[Message]:
    """Return the newest messages that `newest_within` may examine, oldest first. One query."""
    kept: list[Message] = []
    left = EARLIER_CHARS
    for row in rows.order_by("-seq")[:_MAX_ROWS]:
        kept.append(row)
        left -= len(row.text)
        if left < 0:
            break
    return kept[::-1]


def newest_within(utterances: Sequence[Utterance]) -> tuple[list[Utterance], bool]:
    """Return the newest messages within EARLIER_CHARS, oldest first, and whether the next one is so long that it may be
    a page."""
    kept: list[Utterance] = []
    left = EARLIER_CHARS
    for said in reversed(utterances):
        left -= len(said.text)
        if left < 0:
            return kept[::-1], len(said.text) > _PAGE_CHARS
        kept.append(said)
    return kept[::-1], False


def utterances_of(rows: Sequence[Message]) -> tuple[Utterance, ...]:
    """Return messages as input for evidence: untruncated, and including tool results."""
    memory_calls = own_calls(calls_made(rows))
    return tuple(
        Utterance(
            speaker=_speaker(row, memory_calls),
            text=row.text,
            session_id=row.session_id,
            run_id=row.run_id,
            message_id=row.pk,
        )
        for row in rows
    )


def calls_made(rows: Sequence[Message]) -> list[dict[str, Any]]:
    """Return the calls of models in these messages. In a history that a client sent, all calls are its own."""
    return [call for row in rows if row.kind != Message.Kind.HISTORY for call in row.calls]


def own_calls(calls: Sequence[Any], client_tools: Collection[str] = ()) -> set[str]:
    """Return the ids of the calls that are of a memory tool. A client may have a tool of the same name, such as `read`;
    calls that went to a client have ids of ours."""
    return {call["id"] for call in calls if isinstance(call.get("id"), str) and _is_own_call(call, client_tools)}


def unread_and_unstored(rows: Sequence[Message]) -> tuple[bool, bool]:
    """Whether something with these messages has no text that could be examined (a person's pictures, sounds and files,
    or what a model server read for its answer), and whether there were system messages, which are not stored. One
    query."""
    noted = noted_in(rows, SEARCHED, UNSTORED)
    return SEARCHED in noted or any(has_media(row.parts) for row in rows), UNSTORED in noted


def noted_in(rows: Sequence[Message], *keys: str) -> set[str]:
    """Return which of the keys the traces of the runs with these messages have. One query."""
    of_rows = {row.run_id for row in rows if row.run_id is not None}
    traces = Run.objects.filter(pk__in=of_rows, trace__has_any_keys=keys).values_list("trace", flat=True)
    return {key for trace in traces for key in keys if key in trace}


def answers_elsewhere(owner_id: UUID, session_id: UUID) -> list[str]:
    """Return what models wrote last in the owner's other sessions: answers, and texts in calls of their clients' tools,
    since a framework may send either to another agent as its user's message. All are cut to the length that is
    compared. Their text does not count as the person's own words (`memories.evidence.passages`). Two queries."""
    others = Session.objects.filter(owner_id=owner_id).exclude(pk=session_id).order_by("-last_active_at")
    runs = Run.objects.filter(owner_id=owner_id, session__in=others.values("pk")[:_MAX_ANSWER_SESSIONS])
    long_enough = runs.annotate(size=Length("text")).filter(size__gte=MIN_ANSWER_CHARS, state=Run.State.COMPLETED)
    answers = long_enough.order_by("-id").values_list(Left("text", MAX_ANSWER_CHARS), flat=True)[:MAX_ANSWERS]
    return [*answers, *islice(_passed_on(runs.order_by("-id").values("pk")[:MAX_ANSWERS]), MAX_ANSWERS)]


def _passed_on(runs: QuerySet[Run, Any]) -> Iterator[str]:
    """Yield the texts in these runs' calls of their clients' tools, without what the person said in the same session.
    The first _MAX_PASSED_ON texts of the newest calls are examined."""
    rows = Message.objects.filter(
        Q(tool_calls__isnull=False) | Q(role=Message.Role.USER, participant=None), run__in=runs
    )
    columns = rows.values_list("session_id", "role", "tool_calls", Left("text", _MAX_SAID))
    found = columns.order_by("-role", "-id")[: 3 * MAX_ANSWERS]  # the person's first: a long run has many calls
    said: defaultdict[UUID, list[_Said]] = defaultdict(list)
    texts: list[tuple[UUID, str]] = []
    for session_id, role, given, text in found:
        if role == Message.Role.USER:
            said[session_id].append(_Said(text))
        passed_on = (call for call in valid_calls(given) if run_of_call(call.get("id")) is not None)
        in_calls = (text for call in passed_on for text in _texts_in(call))
        texts += ((session_id, text) for text in islice(in_calls, _MAX_PASSED_ON - len(texts)))
    for session_id, text in texts:
        key = folded(text)
        if not any(message.has_own(key) for message in said[session_id]):
            yield text


def _texts_in(call: Mapping[str, Any]) -> Iterator[str]:
    """Yield the texts in a call that are long enough to be recognised in a message."""
    parts = (call.get("function") or {}).get("arguments"), (call.get("custom") or {}).get("input")
    left: list[Any] = [object_in(part) for part in parts if isinstance(part, str) and len(part) <= _MAX_ARGUMENTS]
    while left:
        value = left.pop()
        if isinstance(value, str) and len(value) >= MIN_ANSWER_CHARS:
            yield value[:MAX_ANSWER_CHARS]
        elif isinstance(value, dict | list):
            left += value.values() if isinstance(value, dict) else value


@dataclass
class _Said:
    """A person's message, prepared for comparing. To find their own words in it is slow."""

    text: str

    def has_own(self, key: str) -> bool:
        """Return True if a folded text is among the person's own words."""
        return key in self._key and any(key in words for words in self._own)

    @cached_property
    def _key(self) -> str:
        return folded(self.text)

    @cached_property
    def _own(self) -> list[str]:
        bounds = [0, *chain.from_iterable(foreign_spans(self.text)), len(self.text)]
        return [folded(self.text[start:end]) for start, end in zip(bounds[::2], bounds[1::2], strict=True)]


def _is_own_call(call: dict[str, Any], client_tools: Collection[str]) -> bool:
    function = call.get("function")
    name = function.get("name") if isinstance(function, dict) else None
    if not isinstance(name, str) or name in client_tools or run_of_call(call["id"]) is not None:
        return False
    return tool_meant(name, TOOLS) in TOOLS  # also with what models write around the name


def _speaker(row: Message, memory_calls: Set[str]) -> Speaker:
    if row.role == Message.Role.USER:
        return Speaker.TOOL if row.participant else Speaker.PERSON
    if row.role == Message.Role.TOOL:
        is_ours = row.kind != Message.Kind.HISTORY and row.tool_call_id in memory_calls
        return Speaker.MEMORY if is_ours else Speaker.TOOL
    return Speaker.TOOL if _TOOL_RESULT.fullmatch(row.text) else Speaker.ASSISTANT
