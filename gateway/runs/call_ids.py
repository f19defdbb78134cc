"""Our ids of calls of client tools, `call_<run>_<n>`, which name the run, since some servers reuse their own ids."""

import re
from typing import Any
from uuid import UUID

from gateway.messages import ChatMessage
from gateway.tool_calls import calls_in

_CALL_ID = re.compile(r"call_([0-9a-f]{32})_\d+")


def call_prefix(run_id: UUID) -> str:
    """Return the prefix of the call ids of a run."""
    return f"call_{run_id.hex}_"


def call_id(run_id: UUID, number: int) -> str:
    """Return the id of a run's call with this number."""
    return f"{call_prefix(run_id)}{number}"


def run_of_call(given: Any) -> UUID | None:
    """Return the id of the run in a call id; None for an id that is not ours."""
    match = _CALL_ID.fullmatch(given) if isinstance(given, str) else None
    return UUID(match[1]) if match else None


def call_ids(message: ChatMessage) -> list[str]:
    """Return the ids of the tool calls in a message, which need not be well-formed."""
    return [call["id"] for call in calls_in(message) if isinstance(call.get("id"), str)]


def runs_called(message: ChatMessage) -> tuple[UUID, ...]:
    """Return the ids of the runs whose calls a message contains; it need not be well-formed."""
    if not message.get("tool_calls"):
        return ()
    runs = map(run_of_call, call_ids(message))
    return tuple(dict.fromkeys(run_id for run_id in runs if run_id))
