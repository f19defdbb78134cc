"""The context of a turn: plain frozen values read in the opening transaction, which no model instance leaves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from gateway.agents.configuration import consolidation_settings_of, prices_of
from gateway.agents.rows import agent_settings
from gateway.agents.settings import AgentSettings, ConsolidationSettings, Price
from gateway.limits.allowances import NO_ALLOWANCE, Allowance
from gateway.limits.spending import ModelUse
from gateway.models import Agent, Run
from memories.recall.book_views import BookState

SystemContent = str | list[dict[str, Any]]  # content of a system message: text, or parts if they have other fields


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentConfig:
    """An agent as it was when the run opened."""

    name: str
    version: int
    settings: AgentSettings
    consolidation: ConsolidationSettings
    prices: Mapping[str, Price]


def agent_config(agent: Agent) -> AgentConfig:
    """Return the current configuration of an agent. No query once its version is cached."""
    return AgentConfig(
        name=agent.name,
        version=agent.version,
        settings=agent_settings(agent),
        consolidation=consolidation_settings_of(agent),
        prices=prices_of(agent),
    )


STORED_OUTPUT = ("text", "reasoning", "usage", "model", "recalled", "trace")
"""The fields of a RunOutput that its run's row has, too."""


class NewHashes(NamedTuple):
    """Hashes to add to a session, with their salt. Empty ones stand for others that are not stored."""

    salt: UUID
    hashes: bytes


@dataclass(slots=True, kw_only=True)
class RunOutput:
    """The output of a run so far. It is stored when the run closes."""

    text: str = ""
    reasoning: str = ""
    messages: list[dict[str, Any]] = field(default_factory=list)  # the steps as OpenAI messages, including the answer
    usage: dict[str, Any] = field(default_factory=dict)
    model: str = ""
    recalled: list[dict[str, Any]] = field(default_factory=list)
    trace: dict[str, Any] = field(default_factory=dict)
    uses: list[ModelUse] = field(default_factory=list)  # model requests since the run was opened or resumed
    injected: dict[str, Any] | None = None  # stored only while the run waits for its client's tools
    instructions: Sequence[str] = ()  # what the client told the model around the messages; only hashes are stored
    hashes: NewHashes | None = None  # of the instructions, if the session lacks some
    closed_at: datetime | None = None  # when the messages were stored

    @classmethod
    def of(cls, run: Run) -> "RunOutput":
        """Return the output in a run's row, without the messages, which have their own rows."""
        return cls(**{name: getattr(run, name) for name in STORED_OUTPUT}, closed_at=run.finished_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnContext:
    """One open run: session, agent, book, transcript, and the lease token required to close it."""

    owner_id: UUID
    session_id: UUID
    run_id: UUID
    lease_token: UUID
    turn: int
    counted: bool  # counts as a turn since the last review once it completes
    answered_before: bool = False  # the run replaces an answer of the turn
    temporary: bool
    agent: AgentConfig
    book: BookState | None  # None: the run neither reads nor writes memory
    messages: tuple[dict[str, Any], ...] = ()  # the transcript to send, the new user message last
    stored: Sequence[dict[str, Any]] = ()  # of a resumed run: its messages so far, which the client may not send again
    message_seqs: tuple[int, ...] = ()  # their numbers in a native session
    summary: str = ""  # summary of the conversation before `messages`, in a compacted native session
    compaction_epoch: int = 0
    client_system: SystemContent = ""  # the client's own leading system messages
    user_text: str  # the user message without the client's additions; memory is searched for it
    user_canonical: str  # its canonical text, which identifies the turn
    answer_prefix: str = ""  # canonical text of a partial answer in the request, which the client continues with ours
    newest_record: UUID | None = None  # newest record of the session's thread, which the short-term lane must include
    history_hash_before: str = ""
    request_id: str
    started_at: datetime
    # The output from before the run waited for the client's tools; it is not changed.
    earlier: RunOutput = field(default_factory=RunOutput)
    allowance: Allowance = NO_ALLOWANCE  # the key of the request, and its slot among the answers in progress
    joined: bool = False  # the run belongs to another request; this one waits for its answer
    injected: dict[str, Any] | None = None  # the injection of a resumed run, which is used again

    @property
    def is_native(self) -> bool:
        """True if the transcript was read from our rows, as in a native turn; on /v1 the client sends it."""
        return bool(self.message_seqs)

    def output_so_far(self) -> RunOutput:
        """Return a copy of the output to continue from; it is empty unless the run is resumed."""
        earlier = self.earlier
        return replace(earlier, usage={**earlier.usage}, recalled=[*earlier.recalled], trace={**earlier.trace})
