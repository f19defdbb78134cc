"""The word diff that notes and histories show."""

from hypothesis import given
from hypothesis import strategies as st

from memories.word_diff import word_diff


@given(st.text(max_size=120), st.text(max_size=120))
def test_both_texts_can_be_read_from_the_pieces(before: str, after: str) -> None:
    pieces = word_diff(before, after)
    assert "".join(piece.text for piece in pieces if piece.kind != "ins") == before
    assert "".join(piece.text for piece in pieces if piece.kind != "del") == after


def test_only_the_word_that_changed_is_marked() -> None:
    pieces = word_diff("Backs up every night at 02:30 with pg_dump.", "Backs up every night at 03:15 with pg_dump.")
    assert [piece for piece in pieces if piece.kind != "same"] == [("del", "02:30"), ("ins", "03:15")]


def test_very_long_texts_are_replaced_as_a_whole() -> None:
    before, after = "a " * 5000, "b " * 5000
    assert word_diff(before, after) == (("del", before), ("ins", after))
