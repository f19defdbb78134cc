"""Ids of calls of a client's tools, `call_<run>_<n>`. They name the run, since some model servers repeat their own
ids."""

import re
from typing import Any
from uuid import UUID

from gateway.tool_calls import calls_in

Message = dict[str, Any]
_CALL_ID = re.compile(r"call_([0-9a-f]{32})_\d+")


def call_prefix(run_id: UUID) -> str:
    """Return the beginning of the ids of a run's calls."""
    return f"call_{run_id.hex}_"


def call_id(run_id: UUID, number: int) -> str:
    """Return the id of a run's call."""
    return f"{call_prefix(run_id)}{number}"


def run_of_call(given: Any) -> UUID | None:
    """Return the run that gave this id to a call; None for an id that is not ours."""
    match = _CALL_ID.fullmatch(given) if isinstance(given, str) else None
    return UUID(match[1]) if match else None


def call_ids(message: Message) -> list[str]:
    """Return the ids of the tool calls in a message of unknown form."""
    return [call["id"] for call in calls_in(message) if isinstance(call.get("id"), str)]


def runs_called(message: Message) -> tuple[UUID, ...]:
    """Return the runs whose calls a message of unknown form holds, by their ids."""
    if not message.get("tool_calls"):
        return ()
    runs = map(run_of_call, call_ids(message))
    return tuple(dict.fromkeys(run_id for run_id in runs if run_id))
