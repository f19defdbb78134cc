"""The JSON of a turn in the native API."""

from typing import Any

from gateway.models import Run
from gateway.runs.context import TurnContext
from gateway.runs.joined import RunResult


def run_json(run: Run) -> dict[str, Any]:
    return done_json(run, RunResult.of(run)) | {"error": run.error}


def done_json(turn: TurnContext | Run, result: RunResult) -> dict[str, Any]:
    """Return the JSON of a turn that has ended. No query."""
    return {
        "id": str(turn.pk if isinstance(turn, Run) else turn.run_id),
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
