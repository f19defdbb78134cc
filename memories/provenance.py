"""Where a memory comes from, as a page says it: the session and the turn, or the turns a review read. The apps above
know this; when Django starts they register functions that answer for many memories at once."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from uuid import UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class Turns:
    """Turns of a session, and the run of the first one, to link to."""

    first: int
    last: int
    run_id: UUID

    @property
    def words(self) -> str:
        """`turns 2 to 4`."""
        return f"turn {self.first}" if self.first == self.last else f"turns {self.first} to {self.last}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """Titles by session, the turn by run, and the turns it read by review. What was deleted is missing."""

    titles: Mapping[UUID, str] = field(default_factory=dict)
    turns: Mapping[UUID, Turns] = field(default_factory=dict)
    reviewed: Mapping[UUID, Turns] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceLink:
    """A link to where it was said. `words`: “Nightly backups”, turn 3."""

    url: str
    words: str
    turn: str = ""


NamesReader = Callable[[UUID, Collection[UUID], Collection[UUID]], Names]
TurnsReader = Callable[[UUID, Collection[UUID]], Mapping[UUID, Turns]]
KeysReader = Callable[[Collection[UUID]], Mapping[UUID, str]]
_names: NamesReader | None = None
_reviewed: TurnsReader | None = None
_keys: KeysReader | None = None


def register_names(reader: NamesReader) -> None:
    """The gateway's way to the names of (owner, sessions, runs); called from its AppConfig's ready()."""
    global _names
    _names = reader


def register_reviewed(reader: TurnsReader) -> None:
    """The way of reviews to the turns that (owner, reviews) read; called from their AppConfig's ready()."""
    global _reviewed
    _reviewed = reader


def register_keys(reader: KeysReader) -> None:
    """The gateway's way to the names of API keys; called from its AppConfig's ready()."""
    global _keys
    _keys = reader


def key_names(keys: Collection[UUID]) -> Mapping[UUID, str]:
    """Return whose key each is, and its name: `Ada's key “laptop”`. A key that is gone is missing. One query."""
    return _keys(keys) if _keys and keys else {}


def names_of(
    owner_id: UUID,
    sessions: Collection[UUID | None],
    runs: Collection[UUID | None],
    reviews: Collection[UUID | None] = (),
) -> Names:
    """Return the names of sessions, runs and reviews of an owner; four queries at most, however many they are."""
    session_ids, run_ids, review_ids = ({key for key in keys if key} for keys in (sessions, runs, reviews))
    names = _names(owner_id, session_ids, run_ids) if _names and (session_ids or run_ids) else Names()
    return replace(names, reviewed=_reviewed(owner_id, review_ids)) if _reviewed and review_ids else names


def source_link(
    names: Names, session_id: UUID | None, run_id: UUID | None, review_id: UUID | None = None
) -> SourceLink | None:
    """Where a write was made, or None when it was in no session, or the session was deleted."""
    title = names.titles.get(session_id) if session_id else None
    if title is None:
        return None
    turns = (names.reviewed.get(review_id) if review_id else None) or (names.turns.get(run_id) if run_id else None)
    if turns is None:
        return SourceLink(url=f"/c/{session_id}/", words=f"“{title}”")
    return SourceLink(url=f"/c/{session_id}/#turn-{turns.run_id}", words=f"“{title}”, {turns.words}", turn=turns.words)
