"""Where a memory comes from, as a page says it: the session and the turn, or the turns a review read. The apps above
know this; when Django starts they register functions that answer for many memories at once."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from memories.models import ChangeSet, Memory
from memories.registered import Registered

Written = Memory | ChangeSet
"""Rows that say where they were written."""


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


NamesReader = Callable[[UUID, Collection[UUID], Collection[UUID]], Names]  # of an owner: sessions, runs
TurnsReader = Callable[[UUID, Collection[UUID]], Mapping[UUID, Turns]]  # of an owner: reviews
KeysReader = Callable[[Collection[UUID]], Mapping[UUID, str]]

names_reader = Registered[NamesReader]("how the names of sessions and runs are read")
reviewed_turns_reader = Registered[TurnsReader]("how the turns that reviews read are found")
key_names_reader = Registered[KeysReader]("how the names of API keys are read")


def key_names(keys: Collection[UUID]) -> Mapping[UUID, str]:
    """Return whose key each is, and its name: `Ada's key “laptop”`. A key that is gone is missing. One query."""
    return key_names_reader()(keys) if keys else {}


def names_of(owner_id: UUID, written: Sequence[Written]) -> Names:
    """Return the names of the sessions, runs and reviews of what an owner's writes name; four queries at most, however
    many they are."""
    sessions = {row.session_id for row in written if row.session_id}
    runs = {row.run_id for row in written if row.run_id}
    reviews = {row.review_id for row in written if row.review_id}
    names = names_reader()(owner_id, sessions, runs) if sessions or runs else Names()
    return replace(names, reviewed=reviewed_turns_reader()(owner_id, reviews)) if reviews else names


def source_link(names: Names, written: Written) -> SourceLink | None:
    """Return a link to where a write was made; None if it was made in no session, or the session was deleted."""
    session, run, review = written.session_id, written.run_id, written.review_id
    title = names.titles.get(session) if session else None
    if title is None:
        return None
    turns = (names.reviewed.get(review) if review else None) or (names.turns.get(run) if run else None)
    if turns is None:
        return SourceLink(url=f"/c/{session}/", words=f"“{title}”")
    return SourceLink(url=f"/c/{session}/#turn-{turns.run_id}", words=f"“{title}”, {turns.words}", turn=turns.words)
