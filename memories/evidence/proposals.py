"""Held writes of turns, MCP clients and imports. The reviews app stores them in the same queue as its own and registers
here how to store and withdraw them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from memories.database.batches import Slices
from memories.ids import uuid7
from memories.models import Book, Evidence
from memories.registered import Registered


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """One held write. `number` and `version` identify the memory that an update would change."""

    action: str  # add or update
    number: int | None = None
    version: int | None = None
    target: str
    category: str
    keywords: list[str]
    before: str | None = None
    after: str
    more: Mapping[str, Any] = field(default_factory=dict)  # further fields that an import sets, as JSON
    evidence: Evidence
    rule: str
    reason: str


@dataclass(slots=True, kw_only=True)
class HeldWrites:
    """The held writes of one model step, of a call over /mcp or of an import, which are stored as one group. Only those
    of a step have a session; `imported` is the change set of an import."""

    session_id: UUID | None
    agent: str
    imported: UUID | None = None
    id: UUID = field(default_factory=uuid7)
    proposals: list[Proposal] = field(default_factory=list)

    def add(self, proposal: Proposal) -> str:
        """Add a write and return its public id."""
        self.proposals.append(proposal)
        return proposal_id(self.id, len(self.proposals) - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownProposal:
    """An earlier held write with the same content, by its public id, which a new one is merged into. `rejected`: the
    person rejected it and is not asked again."""

    id: str
    rejected: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalStore:
    """How held writes are stored. `keep` stores a group in a transaction of its own and returns, by the id from
    `HeldWrites.add`, the earlier proposals that writes of the group repeat; the book is passed in the state that the
    decision was based on. `withdraw` drops the pending proposals of an import, given its owner and change set, except
    those that something else proposed as well; it returns their number."""

    keep: Callable[[Book, HeldWrites], Mapping[str, KnownProposal]]
    withdraw: Callable[[UUID, UUID], Slices[int]]


proposal_store = Registered[ProposalStore]("how held writes are stored")


def proposal_id(step_id: UUID, index: int) -> str:
    """Return the public id of a held write: the id of its group and its index in it."""
    return f"{step_id}-{index}"
