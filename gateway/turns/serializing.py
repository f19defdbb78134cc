"""The JSON of a turn in the native API."""

from typing import Any
from uuid import UUID

from gateway.models import Run
from gateway.runs.context import TurnContext
from gateway.runs.joined import RunResult


def done_json(context: TurnContext, done: RunResult) -> dict[str, Any]:
    """Return the JSON of a turn that has just ended. No query."""
    return _turn_json(context, context.run_id, done)


def run_json(run: Run) -> dict[str, Any]:
    return _turn_json(run, run.pk, RunResult.of(run)) | {"error": run.error}


def _turn_json(turn: TurnContext | Run, run_id: UUID, result: RunResult) -> dict[str, Any]:
    return {
        "id": str(run_id),
        "object": "turn",
        "session_id": str(turn.session_id),
        "turn": turn.turn,
        "state": result.state.value,
        "content": result.output.text,
        "reasoning": result.output.reasoning,
        "tool_calls": result.client_calls,
        "recalled": result.output.recalled,
        "memory_changes": result.changes,
        "usage": result.output.usage,
        "turns_since_memory_review": result.turns_since_review,
        "error": None,
    }
