"""A turn as the native API shows it."""

from typing import Any
from uuid import UUID

from gateway.models import Run
from gateway.runs.context import TurnContext
from gateway.runs.joined import Ended


def done_json(context: TurnContext, done: Ended) -> dict[str, Any]:
    """Return a turn that has just ended, without a query."""
    return _turn_json(context, context.run_id, done)


def run_json(run: Run) -> dict[str, Any]:
    return _turn_json(run, run.pk, Ended.of(run)) | {"error": run.error}


def _turn_json(turn: TurnContext | Run, run_id: UUID, ended: Ended) -> dict[str, Any]:
    return {
        "id": str(run_id),
        "object": "turn",
        "session_id": str(turn.session_id),
        "turn": turn.turn,
        "state": ended.state.value,
        "content": ended.output.text,
        "reasoning": ended.output.reasoning,
        "tool_calls": ended.client_calls,
        "recalled": ended.output.recalled,
        "memory_changes": ended.changes,
        "usage": ended.output.usage,
        "turns_since_memory_review": ended.turns_since_review,
        "error": None,
    }
