"""Memory writes held for the person's decision, as the chat shows them: under the turn that made them, and in toasts.
The app that stores them registers its readers when Django starts."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from memories.registered import Registered


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldNote:
    """The held writes of one review. `run_id` is the run under which the conversation shows them. Each line is one
    write: the change that it would make, why it is held, and the evidence for it."""

    review_id: UUID
    session_id: UUID | None
    run_id: UUID | None
    lines: Sequence[dict[str, Any]]

    @property
    def title(self) -> str:
        """The heading, such as `A memory waits for your decision`."""
        number = len(self.lines)
        return f"{number} memories wait for your decision" if number > 1 else "A memory waits for your decision"


# Called with the ids of the owner and of the session or review.
held_of_session = Registered[Callable[[UUID, UUID], Sequence[HeldNote]]]("the held writes of a session")
held_of_review = Registered[Callable[[UUID, UUID], HeldNote | None]]("the held writes of a review")


def held_of_runs(owner_id: UUID, session_id: UUID, shown_at: Mapping[UUID, UUID]) -> dict[UUID, list[HeldNote]]:
    """Return the held writes of a session by the run that shows them; `shown_at` maps each run to that run."""
    found: dict[UUID, list[HeldNote]] = defaultdict(list)
    for note in held_of_session()(owner_id, session_id):
        if note.run_id is not None and note.run_id in shown_at:
            found[shown_at[note.run_id]].append(note)
    return found
