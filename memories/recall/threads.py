"""The thread of a session: the texts of its completed runs, for the short-term lane.

Thread records only refer to runs. The gateway stores the texts and registers a function that reads them when Django
starts. Turns are cached in process, beside the session's snapshot, and appended when a run closes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import NamedTuple
from uuid import UUID

from memories.database.statements import Insert, RowFactory
from memories.ids import uuid7_after
from memories.messaging.invalidation import Kind, register_cache, watch
from memories.models import Invalidation, ThreadRecord
from memories.recall.session_cache import SessionCache
from memories.registered import Registered
from search.entries import Entry
from search.index import BookIndex
from search.keywords import extract_keywords
from search.query import message_of, searched_part


@dataclass(frozen=True, kw_only=True)
class ThreadTurn:
    """A recorded turn. `assistant` is the text of all model steps, `answer` that of the last step with text ("" if it
    is not known)."""

    record_id: UUID
    run_id: UUID
    turn: int
    user: str
    assistant: str
    answer: str = ""
    said_at: datetime

    @cached_property
    def user_key(self) -> int:
        """A key to compare the user message with messages of a request."""
        return hash(_without_spaces(self.user))

    @cached_property
    def answer_keys(self) -> frozenset[int]:
        """Keys to compare the answer with messages of a request: for the whole text, and for the last step alone."""
        return frozenset(hash(text) for text in map(_without_spaces, (self.assistant, self.answer)) if text)


MAX_VIEW_BYTES = 32_000_000
"""Memory for the indexes of threads in one process: enough for about 100 of 50 turns."""
INDEXED_AHEAD = 16
"""How many of the next turns an index also has, so that it lasts while the window of a client moves past them."""

_NEW = RowFactory(ThreadRecord)
_INSERT: Insert[ThreadRecord] = Insert(ThreadRecord)
# (owner, session) -> the recorded turns, oldest first, without superseded runs. Synchronous; three queries.
ThreadReader = Callable[[UUID, UUID], Sequence[ThreadTurn]]
thread_reader = Registered[ThreadReader]("how the texts of a run are read")


def record_run(*, owner_id: UUID, session_id: UUID, run_id: UUID, after: datetime) -> ThreadRecord:
    """Record a completed run, once per run id, in the caller's transaction. `after` is the session's last activity: the
    id is chosen after it, since the newest record is the one with the greatest id."""
    record = _NEW.row(id=uuid7_after(after), owner_id=owner_id, session_id=session_id, run_id=run_id)
    _INSERT.execute([record])
    return record


def thread_changed(*, owner_id: UUID, session_id: UUID, after: datetime) -> None:
    """Give the newest record of a session a new id, in the caller's transaction, so that processes read its turns again
    after a change of branch. The order of the records stays the same: `after` is the session's last activity."""
    records = ThreadRecord.objects.filter(owner_id=owner_id, session_id=session_id, cleared_at=None)
    newest = records.order_by("-id").values_list("id", flat=True).first()
    if newest is not None:
        records.filter(id=newest).update(id=uuid7_after(after))


_Part = tuple[ThreadTurn, str, str]
"""A side of a turn, with its text and speaker."""


class _PartsIndex:
    """An index of the sides of some turns, built at the first search. Thread-safe."""

    def __init__(self, turns: Sequence[ThreadTurn]) -> None:
        self.parts = _parts_of(turns)
        self._numbers = {(turn.record_id, *side): at for at, (turn, *side) in enumerate(self.parts)}
        self.built: BookIndex | None = None

    def numbers_of(self, parts: Sequence[_Part]) -> list[int] | None:
        """Return the numbers of these parts in the index, or None if it lacks one of them."""
        numbers = [self._numbers.get((turn.record_id, *side), -1) for turn, *side in parts]
        return None if -1 in numbers else numbers

    def index(self) -> BookIndex:
        if self.built is None:
            self.built = BookIndex.build(
                [
                    Entry(number=number, content=text, session_id="thread", speaker=speaker, said_at=turn.said_at)
                    for number, (turn, text, speaker) in enumerate(self.parts)
                ]
            )
        return self.built


def _parts_of(turns: Sequence[ThreadTurn]) -> list[_Part]:
    sides = [(turn, ((turn.user, "user"), (turn.assistant, "assistant"))) for turn in turns]
    return [(turn, text, speaker) for turn, both in sides for text, speaker in both if text]


class ThreadView:
    """The recorded turns of a session that are no longer in the context window, for searching. If only one side of a
    turn is still in the window, that side is "" here. The index also has the turns that may leave the window next,
    `ahead`, which are not found."""

    def __init__(self, outside: Sequence[ThreadTurn], *, ahead: Sequence[ThreadTurn] = ()) -> None:
        self.outside = tuple(outside)
        self._parts_index = _PartsIndex((*outside, *ahead))
        self._numbers: list[int] | None = None  # of the parts in the index

    @property
    def index_ready(self) -> bool:
        """Whether the index was built, by an earlier search."""
        return self._parts_index.built is not None

    @property
    def nbytes(self) -> int:
        """The memory use of the index in bytes; 0 before the first search."""
        return 0 if self._parts_index.built is None else self._parts_index.built.nbytes

    @cached_property
    def parts(self) -> Sequence[_Part]:
        """The searchable parts."""
        return _parts_of(self.outside)

    def use_index_of(self, other: "ThreadView") -> None:
        """Search in the index of another view, if it has all parts of this one."""
        numbers = other._parts_index.numbers_of(self.parts)
        if numbers is not None:
            self._parts_index, self._numbers = other._parts_index, numbers

    def search(self, query: str, *, limit: int) -> list[tuple[ThreadTurn, str]]:
        """Return the best parts, best first, each as its turn and text. A query without content words ("ok", "go on")
        returns the newest turns, newest first."""
        if not (extract_keywords(query) and message_of(searched_part(query)).tokens):
            # The sort is stable, so a turn's question stays before its answer.
            newest = sorted(self.parts, key=lambda part: -part[0].turn)
            return [part[:2] for part in newest[:limit]]
        known = self._parts_index
        if self._numbers is None:
            self._numbers = known.numbers_of(self.parts)
        hits = known.index().search(query, limit=limit, only=self._numbers)
        return [known.parts[hit.number][:2] for hit in hits]


class CachedThread(NamedTuple):
    """The cached turns of a session, and the newest record when they were read. The run of that record may have been
    superseded and then is not among the turns."""

    owner_id: UUID
    newest: UUID | None
    turns: tuple[ThreadTurn, ...]


class ThreadCache(SessionCache[CachedThread, ThreadView]):
    """The turns of recently used sessions, and their last searched views, by session id."""

    def known(self, session_id: UUID, newest: UUID) -> tuple[ThreadTurn, ...] | None:
        """Return the session's turns if they were read with `newest` as the newest record; no query. They may include
        turns that were superseded since, with the number of the current turn or a higher one."""
        cached = self._current(session_id, lambda cached: cached.newest == newest)
        return None if cached is None else cached.turns

    def view(self, session_id: UUID, view: ThreadView) -> ThreadView:
        """Return the view, with the last turn's index if that has all of its parts, and keep it for the next turn."""
        with self._lock:
            kept = self._views.peek(session_id)
            if kept is not None:
                view.use_index_of(kept)
            if view.outside and session_id in self._sessions:  # else the data may have been forgotten
                self._views.put(session_id, view)
                self._trim_views(MAX_VIEW_BYTES)
            return view

    def read(self, owner_id: UUID, session_id: UUID, newest: UUID) -> tuple[ThreadTurn, ...]:
        """Read all recorded turns. `newest` is the session's newest record, even if its run was superseded."""
        watch()
        forgettings = self._forgettings
        turns = tuple(thread_reader()(owner_id, session_id))
        with self._lock:
            if forgettings == self._forgettings:
                self._keep(session_id, CachedThread(owner_id, newest, turns))
        return turns

    def append(self, owner_id: UUID, session_id: UUID, turn: ThreadTurn, *, after: UUID | None) -> None:
        """Add the turn that was just recorded, if the cached turns were read with `after` as the newest record (None:
        the session had no record). A turn with the number of an earlier one replaces it and all later ones."""
        with self._lock:
            cached = self._sessions.peek(session_id) if after else CachedThread(owner_id, None, ())
            if cached is None or cached.newest != after:
                return
            turns = (*(known for known in cached.turns if known.turn < turn.turn), turn)
            self._keep(session_id, CachedThread(owner_id, turn.record_id, turns))

    def drop(self, session_id: UUID) -> None:
        with self._lock:
            super().drop(session_id)
            self._views.pop(session_id, None)

    def forget(self, forgotten: Invalidation) -> None:
        """Drop what was forgotten. Forgetting a book does not affect threads."""
        if forgotten.session_id is not None:
            self.drop(forgotten.session_id)
        elif forgotten.kind == Kind.OWNER:
            with self._lock:
                self._forgettings += 1
                self._sessions.remove_if(lambda cached: cached.owner_id == forgotten.owner_id)
                self._views.clear()  # they can be built again; their owners are not known


thread_cache = ThreadCache()
register_cache(thread_cache.forget, trim=thread_cache.trim, clear=thread_cache.clear)


def outside_window(turns: Sequence[ThreadTurn], window: Sequence[tuple[str, Sequence[str]]]) -> ThreadView:
    """Return a view of the messages of these turns that are not in a request any more. `window` is the request's
    conversation: the text of each user message with those of the assistant messages that follow it."""
    users: set[int] = set()
    answers: set[int] = set()
    for user, steps in window:
        users.add(hash(_without_spaces(user)))
        texts = [_without_spaces(text) for text in steps]
        # Clients resend the steps of an answer separately or joined.
        answers.update(map(hash, texts))
        answers.add(hash("".join(texts)))
    outside, end = [], len(turns)
    for place, turn in enumerate(turns, start=1):
        user_in_window, answer_in_window = turn.user_key in users, not answers.isdisjoint(turn.answer_keys)
        if user_in_window and answer_in_window:
            continue
        end = place
        if user_in_window:
            turn = replace(turn, user="")
        elif answer_in_window:
            turn = replace(turn, assistant="")
        outside.append(turn)
    return ThreadView(outside, ahead=turns[end : end + INDEXED_AHEAD])


def _without_spaces(text: str) -> str:
    """Return the text without white space, since clients trim and join messages in different ways."""
    return "".join(text.split())
