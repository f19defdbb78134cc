"""memories.threads: which recorded turns a request no longer shows, and what the cache holds."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

from hypothesis import given
from hypothesis import strategies as st

from memories.threads import ThreadCache, ThreadTurn, ThreadView, outside_window

WORDS = st.text(alphabet="ab cd\n", min_size=1, max_size=12).filter(str.strip)
SESSION = UUID(int=1)
OWNER = uuid4()


def turn_of(user: str, steps: list[str], *, number: int = 1) -> ThreadTurn:
    said = [step for step in steps if step.strip()]
    return ThreadTurn(
        record_id=uuid4(),
        run_id=uuid4(),
        turn=number,
        user=user,
        assistant="\n\n".join(said),
        answer=said[-1],
        said_at=datetime(2026, 1, 1, tzinfo=UTC),
    )


@given(user=WORDS, steps=st.lists(WORDS, min_size=1, max_size=5), data=st.data())
def test_a_turn_is_in_the_window_however_its_steps_are_joined(user: str, steps: list[str], data: Any) -> None:
    shown = data.draw(
        st.sampled_from(
            [steps, ["".join(steps)], [" ".join(steps)], [steps[-1]], ["", *steps], [*steps[:-1], steps[-1]]]
        )
    )
    window = [("before", ["something else"]), (f" {user}\n", shown), ("after", [])]
    assert outside_window([turn_of(user, steps)], window).outside == ()


@given(user=WORDS, steps=st.lists(WORDS, min_size=1, max_size=5))
def test_a_turn_that_is_not_shown_is_outside_whole(user: str, steps: list[str]) -> None:
    turn = turn_of(user, steps)
    assert outside_window([turn], [("", []), ("zzz", ["yyy"])]).outside == (turn,)


def test_a_side_that_is_shown_is_blank_and_not_searched() -> None:
    view = outside_window([turn_of("Where is the code?", ["On the blue door."])], [("Where is the code?", ["…"])])
    assert [turn.user for turn in view.outside] == [""]
    assert [hit.text for hit in view.search("blue code", limit=5)] == ["On the blue door."]


def test_a_limit_holds_for_the_newest_turns_too() -> None:
    view = ThreadView([turn_of(f"Chapter {n}", ["Fine."], number=n) for n in range(1, 9)])
    assert [(hit.turn, hit.text) for hit in view.search("ok", limit=3)] == [
        (8, "Chapter 8"),
        (8, "Fine."),
        (7, "Chapter 7"),
    ]


def test_a_turn_is_appended_only_to_what_was_read_with_the_record_before_it() -> None:
    cache, first, second = ThreadCache(), turn_of("one", ["1"]), turn_of("two", ["2"], number=2)
    cache.append(OWNER, SESSION, first, after=None)
    cache.append(OWNER, SESSION, second, after=uuid4())
    assert cache.known(SESSION, first.record_id) == (first,)
    cache.append(OWNER, SESSION, second, after=first.record_id)
    assert cache.known(SESSION, second.record_id) == (first, second)
    assert cache.known(SESSION, first.record_id) is None
    assert cache.known(SESSION, None) == ()
