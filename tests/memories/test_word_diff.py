"""The word diff in notes and histories."""

import sys
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memories.history.word_diff import word_diff


@given(st.text(max_size=120), st.text(max_size=120))
def test_both_texts_can_be_restored_from_the_pieces(before: str, after: str) -> None:
    pieces = word_diff(before, after)
    assert "".join(piece.text for piece in pieces if piece.kind != "ins") == before
    assert "".join(piece.text for piece in pieces if piece.kind != "del") == after


def test_only_the_changed_word_is_marked() -> None:
    pieces = word_diff("Backs up every night at 02:30 with pg_dump.", "Backs up every night at 03:15 with pg_dump.")
    assert [piece for piece in pieces if piece.kind != "same"] == [("del", "02:30"), ("ins", "03:15")]


def test_a_single_word_between_large_changes_is_not_kept() -> None:
    before = "Wants to spend the whole summer in a hut by the northern sea."
    after = "Has booked two weeks in the mountains with friends from the choir."
    changed = [piece.kind for piece in word_diff(before, after)]
    assert changed == ["del", "ins", "same"], "only the full stop is left"
    same = [piece.text for piece in word_diff("Likes tea and cake.", "Likes coffee and pie.") if piece.kind == "same"]
    assert same == ["Likes ", " and ", "."], "the changes are as short"
    kept = word_diff("Uses vim on the work laptop daily.", "Prefers emacs on the work laptop sometimes.")
    assert ("same", " on the work laptop ") in kept


def _shuffled(count: int) -> list[str]:
    words = [f"w{number % 97} {number}" for number in range(count)]
    Random(1).shuffle(words)  # noqa: S311 - not a secret
    return words


@pytest.mark.parametrize(
    "texts",
    [
        lambda n: ("a " * n, "b a " * (n // 2)),
        lambda n: ("a b " * (n // 2), "b a " * (n // 2)),
        lambda n: (" ".join(_shuffled(n)), " ".join(reversed(_shuffled(n)))),
        lambda n: (" ".join(map(str, range(n))), " ".join(map(str, range(n, 0, -1)))),
        lambda n: ("ab" * n, "a" * n),
    ],
)
def test_the_work_does_not_grow_quadratically(texts: Callable[[int], tuple[str, str]]) -> None:
    # For texts four times as long, a quadratic comparison would take sixteen times as many steps.
    short, long = _executed_lines(*texts(220)), _executed_lines(*texts(880))
    assert long < 8 * short


def _executed_lines(before: str, after: str) -> int:
    """Return the number of lines of code that a comparison executes."""
    count = 0

    def note(frame: Any, event: str, arg: Any) -> Any:
        nonlocal count
        count += event == "line"
        return note

    sys.settrace(note)
    try:
        word_diff(before, after)
    finally:
        sys.settrace(None)
    return count


def test_texts_of_thousands_of_words_are_replaced_as_a_whole() -> None:
    before, after = "a b " * 1_500, "b a " * 1_500
    assert word_diff(before, after) == (("del", before), ("ins", after))


def test_a_word_inserted_among_many_is_found() -> None:
    words = [f"word{number}" for number in range(400)]
    pieces = word_diff(" ".join(words), " ".join([*words[:200], "came", *words[200:]]))
    assert [piece for piece in pieces if piece.kind != "same"] == [("ins", "came ")]
