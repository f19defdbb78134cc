"""A turn as the native API shows it."""

from typing import Any

from gateway.models import Run
from gateway.runs.context import TurnContext
from gateway.runs.joined import Ended
from gateway.runs.session_rows import messages_of
from gateway.runs.waiting import unanswered_calls
from gateway.turn_events import Done
from memories.tools import changes_of_run


def done_json(context: TurnContext, done: Done | Ended) -> dict[str, Any]:
    """Return a turn that has just ended, without a query."""
    return {
        "id": str(context.run_id),
        "object": "turn",
        "session_id": str(context.session_id),
        "turn": context.turn,
        "state": done.state.value,
        "content": done.output.text,
        "reasoning": done.output.reasoning,
        "tool_calls": done.client_calls,
        "recalled": done.output.recalled,
        "memory_changes": done.changes,
        "usage": done.output.usage,
        "turns_since_memory_review": done.turns_since_review,
        "error": None,
    }


def run_json(run: Run) -> dict[str, Any]:
    return {
        "id": str(run.pk),
        "object": "turn",
        "session_id": str(run.session_id),
        "turn": run.turn,
        "state": run.state,
        "content": run.text,
        "reasoning": run.reasoning,
        "tool_calls": _calls_waited_for(run),
        "recalled": run.recalled,
        "memory_changes": changes_of_run(run.owner_id, run.pk),
        "usage": run.usage,
        "turns_since_memory_review": run.session.turns_since_memory_review,
        "error": run.error,
    }


def _calls_waited_for(run: Run) -> list[dict[str, Any]]:
    """Return the calls of the client's tools for whose results a turn waits."""
    if run.state != Run.State.AWAITING_CLIENT_TOOLS:
        return []
    return unanswered_calls(messages_of(run))
