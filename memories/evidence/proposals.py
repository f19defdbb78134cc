"""Writes that wait for a person without a review: the app above that keeps reviews keeps them too, in one queue."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from memories.ids import uuid7
from memories.models import Book, Evidence


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
    import."""

    session_id: UUID | None
    agent: str
    imported: bool = False
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


Keeper = Callable[[Book, HeldStep], Mapping[str, Kept]]
_keepers: list[Keeper] = []


def register_keeper(keeper: Keeper) -> None:
    """Let an app above keep held writes; called from its AppConfig's ready()."""
    _keepers[:] = [keeper]


def keep(book: Book, step: HeldStep) -> dict[str, Kept]:
    """Keep the held writes of a step, in a transaction of its own. `book` is as it was when they were decided about.
    Returns what became of those that were asked about before, by the id that they were added with."""
    return {given: kept for keeper in _keepers for given, kept in keeper(book, step).items()}


def proposal_id(step_id: UUID, index: int) -> str:
    """Return the public id of a held write: its group, and its place there."""
    return f"{step_id}-{index}"
