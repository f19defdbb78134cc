"""The texts that a run is given from memory, with the reasons that people are shown."""

from typing import Any, Literal, NamedTuple
from uuid import UUID

from memories.recall.failures import contained
from search import Hit


class RecallItem(NamedTuple):
    """A text that a run was given, and why, as shown under "used in this answer"."""

    lane: Literal["frozen", "short_term", "long_term"]
    reason: str | Hit
    text: str
    number: int | None = None  # of a memory
    source: str = ""  # of another provider's entry
    turn_id: UUID | None = None  # of an earlier turn
    turn: int | None = None
    category: str = "general"

    @property
    def why(self) -> str:
        """The reason as a sentence for people; computed lazily for a search hit."""
        if isinstance(self.reason, str):
            return self.reason
        with contained("why", {}):
            return self.reason.why
        return ""

    def as_json(self) -> dict[str, Any]:
        """Return the API representation."""
        return {
            "memory_id": str(self.number) if self.number is not None else None,
            "turn_id": str(self.turn_id) if self.turn_id else None,
            "lane": self.lane,
            "why": self.why,
        }
