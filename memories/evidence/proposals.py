"""Writes that wait for a person without a review: the app above that keeps reviews keeps them too, in one queue, and
registers here how they are kept and withdrawn."""

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
    """One held write. `number` and `version` are those of the memory that it would change."""

    action: str  # add or update
    number: int | None = None
    version: int | None = None
    target: str
    category: str
    keywords: list[str]
    before: str | None = None
    after: str
    more: Mapping[str, Any] = field(default_factory=dict)  # fields beside these that an import sets, as JSON
    evidence: Evidence
    rule: str
    reason: str


@dataclass(slots=True, kw_only=True)
class HeldStep:
    """The held writes of one step, which are decided about together. Without a session, of a client of /mcp or of an
    import, whose change set `imported` is."""

    session_id: UUID | None
    agent: str
    imported: UUID | None = None
    id: UUID = field(default_factory=uuid7)
    proposals: list[Proposal] = field(default_factory=list)

    def add(self, proposal: Proposal) -> str:
        """Add a write; returns its public id."""
        self.proposals.append(proposal)
        return proposal_id(self.id, len(self.proposals) - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What became of a held write. `id` is that of an earlier one which says the same, if there is one; `turned_down`:
    the person did not want that one, and is not asked again."""

    id: str
    turned_down: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeper:
    """What the app above does with held writes. `keep` keeps those of a step, in a transaction of its own; the book is
    as it was when they were decided about. It returns what became of those that were asked about before, by the id
    that they were added with. `withdraw` drops those of an owner's import, named by its change set, that still wait
    and that nothing else asked for; it returns how many they were."""

    keep: Callable[[Book, HeldStep], Mapping[str, Kept]]
    withdraw: Callable[[UUID, UUID], Slices[int]]


held_keeper = Registered[Keeper]("how held writes are kept")


def proposal_id(step_id: UUID, index: int) -> str:
    """Return the public id of a held write: its group, and its place there."""
    return f"{step_id}-{index}"
