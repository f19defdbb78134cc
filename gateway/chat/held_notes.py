"""Memory writes that wait for the person's decision, as the chat shows them: under the turn in which they were made,
and in the notice. The app that stores them registers how they are read when Django starts."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from memories.registered import Registered


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldNote:
    """The waiting writes of one review. `run_id` is the turn under which the conversation shows them. Each line is a
    write: the change that it would make, why it waits, and the words it is based on."""

    review_id: UUID
    session_id: UUID | None
    run_id: UUID | None
    lines: Sequence[dict[str, Any]]

    @property
    def title(self) -> str:
        """`A memory waits for your decision`."""
        number = len(self.lines)
        return f"{number} memories wait for your decision" if number > 1 else "A memory waits for your decision"


# Given owner and session: what waits of it. Given owner and review: what waits of that, or None.
held_of_session = Registered[Callable[[UUID, UUID], Sequence[HeldNote]]]("what waits of a session")
held_of_review = Registered[Callable[[UUID, UUID], HeldNote | None]]("what waits of a review")


def held_of_runs(owner_id: UUID, session_id: UUID, shown_at: Mapping[UUID, UUID]) -> dict[UUID, list[HeldNote]]:
    """Return the waiting writes of a session by the run that shows them, which `shown_at` names for each run."""
    found: dict[UUID, list[HeldNote]] = defaultdict(list)
    for note in held_of_session()(owner_id, session_id):
        if note.run_id is not None and note.run_id in shown_at:
            found[shown_at[note.run_id]].append(note)
    return found
