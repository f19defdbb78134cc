"""memories.recall.threads: recorded turns that a request no longer contains, and the cache of threads."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memories.messaging.invalidation import Kind
from memories.models import Invalidation
from memories.recall.threads import ThreadCache, ThreadTurn, ThreadView, outside_window

WORDS = st.text(alphabet="ab cd\n", min_size=1, max_size=12).filter(str.strip)
SESSION = UUID(int=1)
OWNER = uuid4()


def turn_of(user: str, steps: list[str], *, number: int = 1) -> ThreadTurn:
    spoken = [step for step in steps if step.strip()]
    return ThreadTurn(
        record_id=uuid4(),
        run_id=uuid4(),
        turn=number,
        user=user,
        assistant="\n\n".join(spoken),
        answer=spoken[-1],
        said_at=datetime(2026, 1, 1, tzinfo=UTC),
    )


@given(user=WORDS, steps=st.lists(WORDS, min_size=1, max_size=5), data=st.data())
def test_a_turn_is_recognised_however_its_steps_are_joined(user: str, steps: list[str], data: Any) -> None:
    shown = data.draw(
        st.sampled_from(
            [steps, ["".join(steps)], [" ".join(steps)], [steps[-1]], ["", *steps], [*steps[:-1], steps[-1]]]
        )
    )
    window = [("before", ["something else"]), (f" {user}\n", shown), ("after", [])]
    assert outside_window([turn_of(user, steps)], window).outside == ()


@given(user=WORDS, steps=st.lists(WORDS, min_size=1, max_size=5))
def test_a_turn_outside_the_window_is_returned_whole(user: str, steps: list[str]) -> None:
    turn = turn_of(user, steps)
    assert outside_window([turn], [("", []), ("zzz", ["yyy"])]).outside == (turn,)


def test_a_message_in_the_window_is_blanked_and_not_searched() -> None:
    view = outside_window([turn_of("Where is the code?", ["On the blue door."])], [("Where is the code?", ["…"])])
    assert [turn.user for turn in view.outside] == [""]
    assert [text for _, text in view.search("blue code", limit=5)] == ["On the blue door."]


def test_the_limit_also_applies_to_the_newest_turns() -> None:
    view = ThreadView([turn_of(f"Chapter {n}", ["Fine."], number=n) for n in range(1, 9)])
    assert [(turn.turn, text) for turn, text in view.search("ok", limit=3)] == [
        (8, "Chapter 8"),
        (8, "Fine."),
        (7, "Chapter 7"),
    ]


def test_a_turn_is_appended_only_after_its_previous_record() -> None:
    cache, first, second = ThreadCache(), turn_of("one", ["1"]), turn_of("two", ["2"], number=2)
    cache.append(OWNER, SESSION, first, after=None)
    cache.append(OWNER, SESSION, second, after=uuid4())
    assert cache.known(SESSION, first.record_id) == (first,)
    cache.append(OWNER, SESSION, second, after=first.record_id)
    assert cache.known(SESSION, second.record_id) == (first, second)
    assert cache.known(SESSION, first.record_id) is None


def test_the_next_turn_reuses_the_index_if_the_same_turns_are_outside() -> None:
    cache, first, second = ThreadCache(), turn_of("The code?", ["On the door."]), turn_of("And?", ["Red."], number=2)
    cache.append(OWNER, SESSION, first, after=None)
    searched = cache.view(SESSION, outside_window([first], []))
    assert not searched.index_ready
    assert "On the door." in [text for _, text in searched.search("code door", limit=5)]
    cache.append(OWNER, SESSION, second, after=first.record_id)
    again = cache.view(SESSION, outside_window([first, second], [("And?", ["Red."])]))
    assert again.index_ready
    assert [text for _, text in again.search("code door", limit=5)][:1] == ["On the door."]
    grown = cache.view(SESSION, outside_window([first, second], [("And?", [])]))
    assert "Red." in [text for _, text in grown.search("red", limit=5)]


def test_the_index_is_built_seldom_while_the_window_moves_past_one_turn_after_another() -> None:
    turns = [turn_of(f"Chapter {n} about x{n}", [f"Fine, y{n}."], number=n) for n in range(1, 61)]
    cache, built = ThreadCache(), 0
    cache.append(OWNER, SESSION, turns[-1], after=None)
    for end in range(10, 50):
        window = [(turn.user, [turn.assistant]) for turn in turns[end : end + 10]]
        view = cache.view(SESSION, outside_window(turns[: end + 10], window))
        built += not view.index_ready
        assert view.outside == tuple(turns[:end])
        found = [turn.turn for turn, _ in view.search(f"What about x{end} and y{end + 1}?", limit=5)]
        assert end in found
        assert end + 1 not in found  # it is still in the window
    assert built == 4


def test_a_message_that_left_the_window_is_found() -> None:
    cache, turn = ThreadCache(), turn_of("The code?", ["On the door."])
    cache.append(OWNER, SESSION, turn, after=None)
    half = cache.view(SESSION, outside_window([turn], [("The code?", [])]))
    assert "The code?" not in [text for _, text in half.search("my code", limit=5)]
    whole = cache.view(SESSION, outside_window([turn], []))
    assert "The code?" in [text for _, text in whole.search("my code", limit=5)]


@pytest.mark.parametrize("kind", [Kind.OWNER, Kind.SESSION, Kind.SESSION_ENDED])
def test_a_view_is_removed_with_its_session(kind: Kind) -> None:
    cache, turn = ThreadCache(), turn_of("The code?", ["On the door."])
    cache.append(OWNER, SESSION, turn, after=None)
    cache.view(SESSION, outside_window([turn], [])).search("code", limit=5)
    cache.forget(Invalidation(kind=kind, owner_id=OWNER, session_id=None if kind == Kind.OWNER else SESSION))
    assert cache._views == {}
    cache.view(SESSION, outside_window([turn], []))  # by a turn that read the thread before
    assert cache._views == {}


def test_the_least_recently_used_views_are_evicted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memories.recall.threads.MAX_VIEW_BYTES", 1)
    monkeypatch.setattr("memories.recall.session_cache.WEIGH_INTERVAL_SECONDS", 0)
    cache, turn = ThreadCache(), turn_of("The code?", ["On the door."])
    for number in (1, 2, 3):
        cache.append(OWNER, UUID(int=number), turn, after=None)
        cache.view(UUID(int=number), outside_window([turn], [])).search("code", limit=5)
    assert list(cache._views) == [UUID(int=3)]
