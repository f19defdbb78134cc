"""Calls of the client's tools. The run waits while the client executes them and resumes with the request that brings
the results. It is found by our call ids (`call_<run>_<n>`), since some servers repeat their own ids. The same ids find
the provider's fields of earlier messages (gateway.upstream.kept), which clients drop."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any
from uuid import UUID

from django.db import transaction

from gateway.agents.rows import agent_find
from gateway.messages import SYSTEM_ROLES
from gateway.models import Agent, Message, Run, Session
from gateway.runs import fingerprint
from gateway.runs.call_ids import call_id, call_ids, run_of_call
from gateway.runs.context import TurnContext
from gateway.runs.ending import release_lapsed
from gateway.runs.leases import reopen
from gateway.runs.requested import V1Request
from gateway.runs.responses import response_store
from gateway.runs.rows import messages_insert, session_touch, turn_context
from gateway.runs.session_rows import messages_of, session_lock
from gateway.runs.tool_loop import loop_messages, loop_start
from gateway.runs.window import as_openai
from gateway.services import require_active
from gateway.upstream.calls import PartialCall, StepCall, call_json
from gateway.upstream.kept import KeptFields, with_kept
from memories.caller import Caller
from memories.errors import InvalidRequest
from memories.tools import tool_meant

_AFTER_CALLS = SYSTEM_ROLES | {"tool"}  # results, and what a client writes between them
_MAX_RUNS = 100  # runs whose calls are looked up for one request


def asks_for_calls(tool_choice: Any) -> bool:
    """Return True if a client's `tool_choice` demands a call or restricts calls to tools of its own."""
    return tool_choice not in (None, "auto", "none")


class ClientCalls:
    """The calls of one step that go to the client, with our ids, and how much of each has been streamed to it.

    A call of a client tool goes to the client from its first piece on, a call of an unknown tool once its name is
    complete, a call in place of a custom tool at the end. A call of our tools never does, nor does any call if the
    client has no tools (`client_names` is None)."""

    def __init__(self, run_id: UUID, *, start: int, client_names: Collection[str] | None, own: Collection[str]) -> None:
        self._run_id, self._start, self._client_names, self._own_names = run_id, start, client_names, own
        self._numbers: dict[int, int] = {}  # number of each call by its index in the step
        self._sent: dict[int, int] = {}  # sent pieces of arguments, by the same index

    def new_pieces(self, calls: Sequence[PartialCall], *, ended: bool = False) -> list[dict[str, Any]]:
        """Return the pieces that have not been sent yet, in the format of a stream's deltas."""
        found = []
        for place, call in enumerate(calls):
            is_new = place not in self._numbers
            if ended:
                call.complete()
            if call.held or (is_new and not self._is_for_client(call, complete=ended or place + 1 < len(calls))):
                continue
            number = self._numbers.setdefault(place, len(self._numbers))
            arguments = "".join(call.arguments[self._sent.get(place, 0) :])
            self._sent[place] = len(call.arguments)
            if is_new:
                piece = call_json(call.name, arguments, custom=call.custom)
                found.append({"index": number, "id": self._id(number), **piece})
            elif arguments:
                more = {"custom": {"input": arguments}} if call.custom else {"function": {"arguments": arguments}}
                found.append({"index": number, **more})
        return found

    def by_model_id(self, calls: Sequence[PartialCall], made: Sequence[StepCall]) -> dict[str, StepCall]:
        """Return the client's calls under our ids, in the client's order, by the model's ids. `made` are the finished
        calls, one for each of `calls` that has a name."""
        named = [place for place, call in enumerate(calls) if call.name]
        found = [(self._numbers[at], call) for at, call in zip(named, made, strict=True) if at in self._numbers]
        return {call.id: replace(call, id=self._id(number)) for number, call in sorted(found, key=lambda pair: pair[0])}

    def _is_for_client(self, call: PartialCall, *, complete: bool) -> bool:
        if self._client_names is None or not call.name:
            return False
        if call.name in self._client_names:
            return True
        is_own = tool_meant(call.name, self._own_names) in self._own_names and not call.custom
        return not is_own and (complete or any(call.arguments))

    def _id(self, number: int) -> str:
        return call_id(self._run_id, self._start + number)


def named_run_id(messages: Sequence[dict[str, Any]]) -> UUID | None:
    """Return the run that a request ending in tool results resumes, if its call ids are ours."""
    last = messages[-1] if messages else {}
    if last.get("role") != "tool":
        return None
    return run_of_call(last.get("tool_call_id"))


def with_kept_fields(owner_id: UUID, messages: Sequence[dict[str, Any]]) -> tuple[dict[str, Any], ...]:
    """Return a client's messages with the provider's fields restored beside their tool calls. One query at most."""
    calling = {at: call_ids(message) for at, message in enumerate(messages) if message.get("tool_calls")}
    run_ids = [run_id for ids in calling.values() for call_id in ids if (run_id := run_of_call(call_id))]
    if not run_ids:
        return tuple(messages)
    runs = list(dict.fromkeys(reversed(run_ids)))[:_MAX_RUNS]
    rows = Message.objects.filter(owner_id=owner_id, run_id__in=runs, kept__isnull=False)
    stored = [KeptFields.from_json(row) for row in rows.values_list("kept", flat=True) if row]
    by_call = {call_id: kept for kept in stored for call_id in kept.calls}
    found = list(messages)
    for at, ids in calling.items():
        if steps := [by_call[call_id] for call_id in ids if call_id in by_call]:
            found[at] = with_kept(found[at], _joined(steps))
    return tuple(found)


def _joined(steps: Sequence[KeptFields]) -> KeptFields:
    """Return the kept fields of a message in which a client joined several steps: those of the first, with the calls of
    the others from the same model."""
    first, calls = steps[0], {}
    for step in steps:
        if step.is_from(first.upstream, first.model):
            calls.update(step.calls)
    return replace(first, calls=calls)


@transaction.atomic
def open_continued(request: V1Request, run_id: UUID, messages: Sequence[dict[str, Any]]) -> TurnContext | None:
    """Resume a run that waits for the results in `messages`, those of the request with our call ids. Return None if
    there is no such run, or it no longer waits for them. If the request is temporary, the run has no memory from here
    on.

    Raises Unauthorized, NotFound, ModelNotFound, SessionEnded, SessionBusy, InvalidRequest."""
    caller = request.caller
    run = Run.objects.filter(owner_id=caller.owner_id, pk=run_id, state=Run.State.AWAITING_CLIENT_TOOLS).first()
    if run is None:
        return None
    session = session_lock(caller, run.session_id)
    require_active(session)
    agent = _agent_of_step(caller, session, request.agent)
    release_lapsed(session)
    stored = messages_of(run)
    asked = [row for row in stored if row.role == Message.Role.USER]
    steps = [as_openai(row) for row in stored if row.seq > asked[-1].seq]
    made = (call["id"] for step in steps for call in step.get("tool_calls") or ())
    client_ids = frozenset(call_id for call_id in made if run_of_call(call_id) == run.pk)
    awaited = client_ids.difference(row.tool_call_id for row in stored)
    trailing = takewhile(lambda message: message.get("role") in _AFTER_CALLS, reversed(messages))
    results = [result for result in trailing if result.get("tool_call_id") in awaited][::-1]
    if not (results and reopen(run)):  # without new ones, the client repeats a step whose answer it did not get
        return None
    if request.temporary and not run.temporary:
        run.temporary = True
        run.save(update_fields=["temporary"])
    start = loop_start(messages, client_ids)
    before = list(messages[:start]) or [*map(as_openai, asked)]
    messages_insert(session, run.pk, results)
    session_touch(session)
    loop = loop_messages(steps, messages[start:], client_ids)
    sent = (*with_kept_fields(caller.owner_id, before), *loop, *request.notes)
    canonical = fingerprint.read_conversation(caller.owner_id, session.agent.name, before).user
    context = turn_context(session, run, asked, canonical=canonical, agent=agent)
    context = replace(context, messages=sent, client_system=request.client_system, stored=steps)
    if request.response is not None:
        response_store(context, request.response)
    return context


def _agent_of_step(caller: Caller, session: Session, name: str) -> Agent:
    """Return the agent of a turn's next step: the session's, unless the client names another one. Both must use the
    same book, since the injected memory stays."""
    if name == session.agent.name:
        return session.agent
    agent = agent_find(caller, name)
    if agent.book != session.agent.book:
        raise InvalidRequest(
            f"These results belong to a turn of {session.agent.name}, which uses another book than "
            f"{name}. Send them to {session.agent.name}.",
            param="model",
        )
    return agent
