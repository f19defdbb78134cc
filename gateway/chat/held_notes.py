"""Memory writes that wait for the person's decision, as the chat shows them: under the turn in which they were made,
and in the notice. The app that stores them registers a reader when Django starts."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from memories.models import Evidence
from memories.word_diff import Piece


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldLine:
    """One write: the change that it would make, why it waits, and the words it is based on."""

    pieces: Sequence[Piece]
    struck: bool
    reason: str
    evidence: Evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldNote:
    """The waiting writes of one review. `run_id` is the turn under which the conversation shows them."""

    review_id: UUID
    session_id: UUID | None
    run_id: UUID | None
    lines: Sequence[HeldLine]

    @property
    def title(self) -> str:
        """`A memory waits for your decision`."""
        number = len(self.lines)
        return f"{number} memories wait for your decision" if number > 1 else "A memory waits for your decision"


SessionReader = Callable[[UUID, UUID], Sequence[HeldNote]]
ReviewReader = Callable[[UUID, UUID], HeldNote | None]

_readers: list[tuple[SessionReader, ReviewReader]] = []


def register_held(of_session: SessionReader, of_review: ReviewReader) -> None:
    """Register the functions that read what waits of (owner, session) and of (owner, review). Called from an
    AppConfig's ready()."""
    _readers[:] = [(of_session, of_review)]


def held_of_runs(owner_id: UUID, session_id: UUID, shown_at: Mapping[UUID, UUID]) -> dict[UUID, list[HeldNote]]:
    """Return the waiting writes of a session by the run that shows them, which `shown_at` names for each run."""
    found: dict[UUID, list[HeldNote]] = defaultdict(list)
    for of_session, _ in _readers:
        for note in of_session(owner_id, session_id):
            if note.run_id is not None and note.run_id in shown_at:
                found[shown_at[note.run_id]].append(note)
    return found


def held_by_review(owner_id: UUID, review_id: UUID) -> HeldNote | None:
    """Return the waiting writes of a review, for the notice; None if there are none, or if it is somebody else's."""
    return next((note for _, of_review in _readers if (note := of_review(owner_id, review_id))), None)
