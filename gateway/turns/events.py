"""The options of a turn, and its events while it runs, which each API writes in its own format."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gateway.runs.joined import Ended
from memories.recall.two_lanes import Injection


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnOptions:
    """The options of a client beside its message."""

    stream: bool = True
    parameters: dict[str, Any] = field(default_factory=dict)
    client_tools: tuple[dict[str, Any], ...] = ()
    functions_only: bool = False  # see ModelRequest


@dataclass(frozen=True, slots=True)
class Delta:
    """Text as it arrived. `choice` is the upstream's choice with it, for clients that want all of it."""

    text: str
    choice: dict[str, Any]
    around: Mapping[str, Any]  # what the upstream says beside choices: service_tier, system_fingerprint, …
    calls: Sequence[dict[str, Any]] = ()  # pieces of the client's calls


@dataclass(frozen=True, slots=True)
class Recalled:
    """The memories that a run was given."""

    injection: Injection


@dataclass(frozen=True, slots=True)
class ToolUsed:
    """The result of one of our tools."""

    name: str
    arguments: str
    result: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Done(Ended):
    """The end of a turn, which is stored. `choice` is the upstream's last answer, or the choice that ended a stream."""

    new_text: str  # the text of this request; a run that waited for the client's tools gave the rest before
    new_usage: dict[str, Any]  # what this request took, likewise
    choice: dict[str, Any]
    around: Mapping[str, Any]
    finish_reason: str


Event = Delta | Recalled | ToolUsed | Done
