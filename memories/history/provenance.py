"""Where a memory comes from, as shown on pages: the session and the turn, or the turns that a review read. Apps of
higher layers register functions that look this up for many memories at once."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from memories.models import ChangeSet, Memory
from memories.registered import Registered

SourcedRow = Memory | ChangeSet
"""Rows that record where they were written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turns:
    """A range of turns of a session, and the run of the first one, for a link."""

    first: int
    last: int
    run_id: UUID

    @property
    def words(self) -> str:
        """`turns 2 to 4`."""
        return f"turn {self.first}" if self.first == self.last else f"turns {self.first} to {self.last}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """Titles by session id, turns by run id, and the turns that reviews read by review id. Deleted ones are missing."""

    titles: Mapping[UUID, str] = field(default_factory=dict)
    turns: Mapping[UUID, Turns] = field(default_factory=dict)
    reviewed: Mapping[UUID, Turns] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceLink:
    """A link to where a memory was written. `words` is such as: “Nightly backups”, turn 3."""

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
    """Return labels of API keys, such as `Ada's key “laptop”`. Deleted keys are missing. One query."""
    return key_names_reader()(keys) if keys else {}


def names_of(owner_id: UUID, rows: Sequence[SourcedRow]) -> Names:
    """Return the names of the sessions, runs and reviews that an owner's rows refer to, in at most four queries."""
    sessions = {row.session_id for row in rows if row.session_id}
    runs = {row.run_id for row in rows if row.run_id}
    reviews = {row.review_id for row in rows if row.review_id}
    names = names_reader()(owner_id, sessions, runs) if sessions or runs else Names()
    return replace(names, reviewed=reviewed_turns_reader()(owner_id, reviews)) if reviews else names


def source_link(names: Names, row: SourcedRow) -> SourceLink | None:
    """Return a link to where a row was written, or None if there was no session or it was deleted."""
    session, run, review = row.session_id, row.run_id, row.review_id
    title = names.titles.get(session) if session else None
    if title is None:
        return None
    turns = (names.reviewed.get(review) if review else None) or (names.turns.get(run) if run else None)
    if turns is None:
        return SourceLink(url=f"/c/{session}/", words=f"“{title}”")
    return SourceLink(url=f"/c/{session}/#turn-{turns.run_id}", words=f"“{title}”, {turns.words}", turn=turns.words)
