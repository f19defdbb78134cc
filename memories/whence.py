"""Where a memory comes from, as a page says it: the session and the turn. The floor above knows their names; it
registers how to ask for them, for many memories at once, when Django starts."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from uuid import UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """Titles by session, and the number of its turn by run. What was deleted is missing."""

    titles: Mapping[UUID, str] = field(default_factory=dict)
    turns: Mapping[UUID, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Whence:
    """A link to where it was said. `words`: “Nightly backups”, turn 3."""

    url: str
    words: str
    turn: str = ""


NamesReader = Callable[[UUID, Collection[UUID], Collection[UUID]], Names]
_reader: NamesReader | None = None


def register_names(reader: NamesReader) -> None:
    """The gateway's way to the names of (owner, sessions, runs); called from its AppConfig's ready()."""
    global _reader
    _reader = reader


def names_of(owner_id: UUID, sessions: Collection[UUID | None], runs: Collection[UUID | None]) -> Names:
    """The names of sessions and runs of an owner; two queries, however many they are."""
    session_ids, run_ids = {key for key in sessions if key}, {key for key in runs if key}
    if _reader is None or not (session_ids or run_ids):
        return Names()
    return _reader(owner_id, session_ids, run_ids)


def whence(names: Names, session_id: UUID | None, run_id: UUID | None) -> Whence | None:
    """Where a write was made, or None when it was in no session, or the session was deleted."""
    title = names.titles.get(session_id) if session_id else None
    if title is None:
        return None
    turn = names.turns.get(run_id) if run_id else None
    words = f"“{title}”, turn {turn}" if turn else f"“{title}”"
    url = f"/c/{session_id}/" + (f"#turn-{run_id}" if turn else "")
    return Whence(url=url, words=words, turn=f"turn {turn}" if turn else "")
