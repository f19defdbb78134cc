"""The options of a turn, the events that it emits, and its JSON in the native API. The other APIs write the events in
their own formats."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gateway.models import Run
from gateway.runs.context import TurnContext
from gateway.runs.joined import RunResult
from memories.recall.two_lanes import Injection


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnOptions:
    """The options that a client sends with its messages."""

    stream: bool = True
    parameters: dict[str, Any] = field(default_factory=dict)
    client_tools: tuple[dict[str, Any], ...] = ()
    functions_only: bool = False  # see ModelRequest
    searched: bool = False  # whether earlier answers are by models whose servers read something


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of text as it arrived. `choice` is the upstream's choice that contained it, for clients that pass all of
    it on."""

    text: str
    choice: dict[str, Any]
    around: Mapping[str, Any]  # other top-level fields of the upstream: service_tier, system_fingerprint, …
    calls: Sequence[dict[str, Any]] = ()  # pieces of calls of the client's tools


@dataclass(frozen=True, slots=True)
class Recalled:
    """The memories injected into a run."""

    injection: Injection


@dataclass(frozen=True, slots=True)
class ToolUsed:
    """The result of one of our tools."""

    name: str
    arguments: str
    result: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Done(RunResult):
    """The end of a stored turn. `choice` is the upstream's last answer, or the choice that ended its stream."""

    new_text: str  # the text of this request; a resumed run sent the rest to earlier requests
    new_usage: dict[str, Any]  # the usage of this request alone
    choice: dict[str, Any]
    around: Mapping[str, Any]
    finish_reason: str


Event = Delta | Recalled | ToolUsed | Done


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
