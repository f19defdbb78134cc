"""Tools of the client: the run waits while the client works, and goes on with the request that brings the results.
It is found by call ids that we gave (`call_<run>_<n>`): some servers repeat theirs. By the same ids a client's messages
are given back what the model's server said with them, which clients drop."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from django.db import transaction

from gateway.agents.rows import agent_find
from gateway.models import Agent, Message, Run, Session
from gateway.runs import fingerprint
from gateway.runs.call_ids import call_id, call_ids, run_of_call
from gateway.runs.context import SystemContent, TurnContext
from gateway.runs.lapsed import release_lapsed
from gateway.runs.leases import reopen
from gateway.runs.rows import messages_insert, session_lock, session_touch, turn_context
from gateway.runs.session_rows import messages_of
from gateway.runs.tool_loop import loop_messages, loop_start
from gateway.runs.window import as_openai
from gateway.services import require_active
from gateway.upstream.calls import PartialCall, StepCall, call_json
from gateway.upstream.kept import KeptFields, with_kept
from memories.caller import Caller
from memories.errors import InvalidRequest

_MOST_RUNS = 100  # whose calls are looked up for one request


def tool_names(tools: Sequence[dict[str, Any]]) -> frozenset[str]:
    """Return the names of a client's tools, of whichever type they are."""
    described = [part for tool in tools for part in (tool, tool.get("function"), tool.get("custom"))]
    names = (part.get("name") for part in described if isinstance(part, dict))
    return frozenset(name for name in names if isinstance(name, str))


def asks_for_calls(tool_choice: Any) -> bool:
    """Return True if a client's `tool_choice` demands a call, or names the tools that may be called: its own."""
    return tool_choice not in (None, "auto", "none")


class ClientCalls:
    """The calls of one step that are the client's, under ids that name the run, and how much of each the client of a
    stream was given. A call of its tool is its own from the first piece on, one of a tool that nobody offered once its
    name is complete; a call of ours never, and none where the client has no tools (`theirs` is None)."""

    def __init__(self, run_id: UUID, *, start: int, theirs: Collection[str] | None, ours: Collection[str]) -> None:
        self._run_id, self._start, self._theirs, self._ours = run_id, start, theirs, ours
        self._numbers: dict[int, int] = {}  # by their place in the step
        self._given: dict[int, int] = {}  # pieces of arguments

    def news(self, calls: Sequence[PartialCall], *, ended: bool = False) -> list[dict[str, Any]]:
        """Return the pieces that the client was not given yet, as the deltas of a stream hold them."""
        found = []
        for place, call in enumerate(calls):
            is_new = place not in self._numbers
            if is_new and not self._is_theirs(call, complete=ended or place + 1 < len(calls)):
                continue
            number = self._numbers.setdefault(place, len(self._numbers))
            arguments = "".join(call.arguments[self._given.get(place, 0) :])
            self._given[place] = len(call.arguments)
            if is_new:
                said = call_json(call.name, arguments, custom=call.custom)
                found.append({"index": number, "id": self._id(number), **said})
            elif arguments:
                found.append({"index": number, **_going_on(call, arguments)})
        return found

    def shown(self, calls: Sequence[PartialCall], made: Sequence[StepCall]) -> dict[str, StepCall]:
        """Return the client's calls as it knows them, in its order, by the ids that the model's calls have in `made`,
        which are those of `calls` that have a name."""
        named = [place for place, call in enumerate(calls) if call.name]
        found = [(self._numbers[at], call) for at, call in zip(named, made, strict=True) if at in self._numbers]
        return {call.id: replace(call, id=self._id(number)) for number, call in sorted(found, key=lambda pair: pair[0])}

    def _is_theirs(self, call: PartialCall, *, complete: bool) -> bool:
        if self._theirs is None or not call.name or (call.name in self._ours and not call.custom):
            return False
        return call.name in self._theirs or complete or any(call.arguments)

    def _id(self, number: int) -> str:
        return call_id(self._run_id, self._start + number)


def _going_on(call: PartialCall, arguments: str) -> dict[str, Any]:
    return {"custom": {"input": arguments}} if call.custom else {"function": {"arguments": arguments}}


def named_run_id(messages: Sequence[dict[str, Any]]) -> UUID | None:
    """Return the run that a request ending in tool results goes on with, if its call ids are ours."""
    last = messages[-1] if messages else {}
    if last.get("role") != "tool":
        return None
    return run_of_call(last.get("tool_call_id"))


def with_dropped(owner_id: UUID, messages: Sequence[dict[str, Any]]) -> tuple[dict[str, Any], ...]:
    """Return a client's messages with what the model's server said beside the calls in them. One query at most."""
    firsts = {at: next(iter(call_ids(one)), "") for at, one in enumerate(messages) if one.get("tool_calls")}
    called = {at: run_id for at, first in firsts.items() if (run_id := run_of_call(first))}
    if not called:
        return tuple(messages)
    runs = list(dict.fromkeys(reversed(called.values())))[:_MOST_RUNS]
    rows = Message.objects.filter(owner_id=owner_id, run_id__in=runs, kept__isnull=False)
    stored = [KeptFields.from_json(row) for row in rows.values_list("kept", flat=True) if row]
    by_call = {call_id: kept for kept in stored for call_id in kept.calls}
    found = list(messages)
    for at in called:
        found[at] = with_kept(found[at], by_call.get(firsts[at]))
    return tuple(found)


@transaction.atomic
def open_continued(
    caller: Caller, run_id: UUID, agent_name: str, messages: Sequence[dict[str, Any]], client_system: SystemContent
) -> TurnContext | None:
    """Take up a run that waits for these results; None when there is no such run (any more).

    Raises Unauthorized, NotFound, ModelNotFound, SessionEnded, SessionBusy, InvalidRequest."""
    run = Run.objects.filter(owner_id=caller.owner_id, pk=run_id, state=Run.State.AWAITING_CLIENT_TOOLS).first()
    if run is None:
        return None
    session = session_lock(caller, run.session_id)
    require_active(session)
    agent = _agent_of_step(caller, session, agent_name)
    release_lapsed(session)
    if not reopen(run):
        return None
    stored = messages_of(run)
    # A stored transcript also holds the results of our own calls in that step.
    answered = {row.tool_call_id for row in stored if row.role == Message.Role.TOOL}
    results = [result for result in _trailing_results(messages) if result.get("tool_call_id") not in answered]
    user = next(row for row in stored if row.role == Message.Role.USER)
    steps = [as_openai(row) for row in stored if row.seq > user.seq]
    called = (call["id"] for step in steps for call in step.get("tool_calls") or ())
    client_ids = frozenset(given for given in called if run_of_call(given) == run.pk)
    start = loop_start(messages, client_ids)
    before = list(messages[:start]) or [as_openai(user)]
    messages_insert(session, run.pk, results)
    session_touch(session)
    loop = loop_messages(steps, messages[start:], client_ids)
    return turn_context(
        session,
        run,
        messages=(*with_dropped(caller.owner_id, before), *loop),
        client_system=client_system,
        user=user,
        user_canonical=fingerprint.read_conversation(caller.owner_id, session.agent.name, before).user,
        agent=agent,
    )


def _agent_of_step(caller: Caller, session: Session, name: str) -> Agent:
    """Return the agent that takes the next step of a turn: the session's, unless the client names another. What the
    turn was given from memory stands, so they share a book."""
    if name == session.agent.name:
        return session.agent
    agent = agent_find(caller, name)
    if agent.book != session.agent.book:
        raise InvalidRequest(
            f"These results belong to a turn of {session.agent.name}, whose memory is another book than that of "
            f"{name}. Send them to {session.agent.name}.",
            param="model",
        )
    return agent


def _trailing_results(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    results: list[dict[str, Any]] = []
    for message in reversed(messages):
        if message.get("role") != "tool":
            break
        results.append(message)
    return results[::-1]
