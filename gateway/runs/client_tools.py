"""Tools of the client: the run waits while the client works, and goes on with the request that brings the results.
It is found by call ids that we gave (`call_<run>_<n>`): some servers repeat theirs."""

import re
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db import transaction

from gateway.models import Message, Run
from gateway.runs import fingerprint
from gateway.runs.context import TurnContext
from gateway.runs.lapsed import release_lapsed
from gateway.runs.leases import reopen
from gateway.runs.rows import messages_insert, session_lock, session_touch, turn_context
from gateway.runs.window import as_openai
from gateway.services import require_active
from memories.caller import Caller
from memories.tools import ToolCall

_CALL_ID = re.compile(r"^call_([0-9a-f]{32})_\d+$")


def tool_names(tools: Sequence[dict[str, Any]]) -> frozenset[str]:
    """Return the names of a client's tools, of whichever type they are."""
    described = [part for tool in tools for part in (tool, tool.get("function"), tool.get("custom"))]
    names = (part.get("name") for part in described if isinstance(part, dict))
    return frozenset(name for name in names if isinstance(name, str))


def rename_calls(run_id: UUID, calls: Sequence[ToolCall], *, start: int) -> list[ToolCall]:
    """Return the client's calls of a step with ids that name the run."""
    return [
        ToolCall(id=f"call_{run_id.hex}_{start + index}", name=call.name, arguments=call.arguments)
        for index, call in enumerate(calls)
    ]


def named_run_id(messages: Sequence[dict[str, Any]]) -> UUID | None:
    """Return the run that a request ending in tool results goes on with, if its call ids are ours."""
    last = messages[-1] if messages else {}
    if last.get("role") != "tool":
        return None
    match = _CALL_ID.match(str(last.get("tool_call_id", "")))
    return UUID(match[1]) if match else None


@transaction.atomic
def open_continued(
    caller: Caller, run_id: UUID, messages: Sequence[dict[str, Any]], client_system: str
) -> TurnContext | None:
    """Take up a run that waits for these results; None when there is no such run (any more).

    Raises Unauthorized, NotFound, SessionEnded, SessionBusy."""
    run = Run.objects.filter(owner_id=caller.owner_id, pk=run_id, state=Run.State.AWAITING_CLIENT_TOOLS).first()
    if run is None:
        return None
    session = session_lock(caller, run.session_id)
    require_active(session)
    release_lapsed(session)
    if not reopen(run):
        return None
    stored = list(Message.objects.filter(owner_id=caller.owner_id, session=session, run=run).order_by("seq"))
    results = _trailing_results(messages)
    user = next(row for row in stored if row.role == Message.Role.USER)
    steps = [as_openai(row) for row in stored if row.seq > user.seq]
    # Our own calls and results of the waiting step are put back where the client, who never saw them, left them out.
    before = _up_to_last_user(messages) or [as_openai(user)]
    messages_insert(session, run.pk, results)
    session_touch(session)
    return turn_context(
        session,
        run,
        messages=(*before, *steps, *results),
        client_system=client_system,
        user=user,
        user_canonical=fingerprint.read_conversation(caller.owner_id, session.agent.name, before).user,
        history_hash_before=run.history_hash_before,
    )


def _trailing_results(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    results: list[dict[str, Any]] = []
    for message in reversed(messages):
        if message.get("role") != "tool":
            break
        results.append(message)
    return results[::-1]


def _up_to_last_user(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    users = [index for index, message in enumerate(messages) if message.get("role") == "user"]
    return list(messages[: users[-1] + 1]) if users else []
