"""Tool loops of clients that replace our call ids by their own (magentic, formats with nine characters). The run that
waits for their results is found by its turn and its calls, and the messages get our ids back."""

from collections import defaultdict, deque
from collections.abc import Sequence
from typing import Any

from django.db.models import Q

from gateway.messages import ChatMessage, last_user_index
from gateway.models import Run, Session
from gateway.runs.call_ids import run_of_call, runs_called
from gateway.runs.requested import SessionLookup
from gateway.runs.session_rows import messages_of, named, with_agent
from gateway.tool_calls import calls_in, object_in

_MAX_RUNS = 4  # waiting runs of the same turn that are compared


def with_our_ids(lookup: SessionLookup, messages: Sequence[ChatMessage]) -> Sequence[ChatMessage]:
    """Return a request's messages with our call ids if a waiting run of this turn made the calls in them, in this
    order; otherwise the messages as they are. It is the newest such run, in the session that the client names, or else
    in one that no client named. One query, and one for each waiting run of the turn."""
    start = last_user_index(messages) + 1
    given = [call for message in messages[start:] for call in calls_in(message)]
    if not given or any(map(runs_called, messages[start:])):
        return messages
    waiting = lookup.active_runs(state=Run.State.AWAITING_CLIENT_TOOLS, **lookup.conversation.same_turn())
    wanted = list(map(_signature, given))
    for calls in map(_client_calls, waiting.filter(_named(lookup))[:_MAX_RUNS]):
        if list(map(_signature, calls)) == wanted:
            return [*messages[:start], *_renamed(messages[start:], deque(call["id"] for call in calls))]
    return messages


def _named(lookup: SessionLookup) -> Q:
    ref = lookup.request.session_ref
    if not ref:
        return Q(session__external_id=None)
    sessions = Session.objects.filter(owner_id=lookup.owner_id)
    return Q(session__in=sessions.filter(named(ref, with_agent(ref, lookup.agent.name))))


def _client_calls(run: Run) -> list[dict[str, Any]]:
    calls = (call for row in messages_of(run) for call in row.calls)
    return [call for call in calls if run_of_call(call.get("id")) == run.pk]


def _signature(call: dict[str, Any]) -> tuple[Any, Any]:
    """Return what identifies a call besides its id. Clients may write the arguments with other white space."""
    function = call.get("function") or call.get("custom") or {}
    arguments = function.get("arguments", function.get("input"))
    return function.get("name"), object_in(arguments) if isinstance(arguments, str) else arguments


def _renamed(messages: Sequence[ChatMessage], ours: deque[str]) -> list[ChatMessage]:
    """Return the messages of a loop with these ids, in the order of their calls. A client may use one id several times,
    so a result belongs to the oldest call of that id which has none."""
    unanswered: defaultdict[str, deque[str]] = defaultdict(deque)
    renamed: list[ChatMessage] = []
    for message in messages:
        if made := calls_in(message):
            calls = [{**call, "id": ours.popleft()} for call in made]
            for call, with_ours in zip(made, calls, strict=True):
                unanswered[str(call.get("id"))].append(with_ours["id"])
            message = {**message, "tool_calls": calls}
        elif message.get("role") == "tool" and (waiting := unanswered[str(message.get("tool_call_id"))]):
            message = {**message, "tool_call_id": waiting.popleft()}
        renamed.append(message)
    return renamed
