"""What a turn is executed with: plain frozen values, read in the opening transaction; no model instance leaves it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from gateway.agents.configuration import consolidation_settings_of, prices_of
from gateway.agents.rows import agent_settings
from gateway.agents.settings import AgentSettings, ConsolidationSettings, Price
from gateway.limits.allowances import NO_ALLOWANCE, Allowance
from gateway.limits.spending import ModelUse
from gateway.models import Agent, Run
from memories.recall.book_views import BookState

_OFF = ConsolidationSettings()
SystemContent = str | list[dict[str, Any]]  # of a system message: text, or parts where they carry more than text


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentConfig:
    """An agent as it was when the run opened."""

    name: str
    version: int
    settings: AgentSettings
    consolidation: ConsolidationSettings = _OFF
    prices: Mapping[str, Price] = field(default_factory=dict)


def agent_config(agent: Agent) -> AgentConfig:
    """Return an agent as it is now. Without a query once its version is known."""
    return AgentConfig(
        name=agent.name,
        version=agent.version,
        settings=agent_settings(agent),
        consolidation=consolidation_settings_of(agent),
        prices=prices_of(agent),
    )


@dataclass(slots=True, kw_only=True)
class RunOutput:
    """The output of a run so far; it is stored when the run closes."""

    text: str = ""
    reasoning: str = ""
    messages: list[dict[str, Any]] = field(default_factory=list)  # steps as OpenAI messages, the last answer included
    usage: dict[str, Any] = field(default_factory=dict)
    model: str = ""
    recalled: list[dict[str, Any]] = field(default_factory=list)
    trace: dict[str, Any] = field(default_factory=dict)
    uses: list[ModelUse] = field(default_factory=list)  # requests to models of this part of the run
    injected: dict[str, Any] | None = None  # kept only while the run waits for its client's tools

    @classmethod
    def of(cls, run: Run) -> "RunOutput":
        """Return the output in a run's row; its messages have rows of their own."""
        stored = {name: getattr(run, name) for name in ("text", "reasoning", "usage", "model", "recalled", "trace")}
        return cls(**stored)


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnContext:
    """One open run: session, agent, book, transcript and the lease that must be shown to close it."""

    owner_id: UUID
    session_id: UUID
    run_id: UUID
    lease_token: UUID
    turn: int
    counted: bool  # as a turn since the last review, when it completes
    answered_before: bool = False  # the turn had an answer, which this one replaces
    temporary: bool
    agent: AgentConfig
    book: BookState | None  # None: nothing of memory is read or written in this run
    messages: tuple[dict[str, Any], ...]  # the transcript to send, the new user message last
    message_seqs: tuple[int, ...] = ()  # their numbers, in a native session; /v1 sends its own context
    summary: str = ""  # of what came before `messages`, in a compacted native session
    compaction_epoch: int = 0
    client_system: SystemContent = ""  # the client's own leading system messages
    user_text: str  # without what the client put around it: memory is searched by it
    user_canonical: str  # as it identifies the turn
    answered: str = ""  # what the request holds as an answer already, in canonical text: the client puts ours behind it
    newest_record: UUID | None = None  # of the session's thread; what the short-term lane must know at least
    history_hash_before: str = ""
    request_id: str
    started_at: datetime
    # What an earlier part of this run said and noted before it waited for the client's tools; it is not changed.
    earlier: RunOutput = field(default_factory=RunOutput)
    allowance: Allowance = NO_ALLOWANCE  # the key that asked, and its place among the answers under way
    joined: bool = False  # the run is another request's: this one waits for its answer
    injected: dict[str, Any] | None = None  # what that part was given from memory: the rest is given the same

    def output_so_far(self) -> RunOutput:
        """Return what the run goes on from: nothing, unless it is resumed."""
        earlier = self.earlier
        return replace(earlier, usage={**earlier.usage}, recalled=[*earlier.recalled], trace={**earlier.trace})
