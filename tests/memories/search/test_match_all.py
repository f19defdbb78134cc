"""The strict search means what LIKE over folded text means."""

from __future__ import annotations

import sqlite3

from hypothesis import given, settings
from hypothesis import strategies as st

from memories.search import BookIndex, match_all
from memories.search.keywords import FoldedContents, escape_like, fold, holds_all
from tests.memories.search.books import FACTS, facts

TEXTS = st.text(alphabet="aAbB%_\\ éÉßσςΣ", max_size=12)
WORDS = st.text(alphabet="aAbB%_\\éÉßσςΣ", min_size=1, max_size=4)


def test_every_keyword_must_occur_in_the_content() -> None:
    book = facts("red apple", "red car", "green apple")
    assert [e.number for e in match_all(book, ["red", "apple"], limit=9)] == [1]


def test_results_keep_insertion_order_and_are_capped() -> None:
    book = facts("one tea", "two tea", "three tea")
    assert [e.number for e in match_all(book, ["tea"], limit=2)] == [1, 2]


def test_without_keywords_all_entries_are_returned_up_to_the_cap() -> None:
    assert [e.number for e in match_all(facts(*FACTS), [], limit=3)] == [1, 2, 3]


def test_keywords_of_an_entry_and_its_category_are_not_content() -> None:
    book = facts("nothing here", keywords=("apple",), category="apple")
    assert match_all(book, ["apple"], limit=5) == []


def test_a_category_keeps_only_its_entries() -> None:
    book = [*facts("tea"), *facts("tea", category="food")]
    assert [e.category for e in match_all(book, ["tea"], limit=5, category="food")] == ["food"]


def test_wildcards_are_plain_characters() -> None:
    book = facts("100% sure", "100 sure", "a_b", "aXb", r"c:\dir")
    assert [e.number for e in match_all(book, ["100%"], limit=5)] == [1]
    assert [e.number for e in match_all(book, ["a_b"], limit=5)] == [3]
    assert [e.number for e in match_all(book, ["c:\\"], limit=5)] == [5]


def test_case_is_ignored_beyond_ascii() -> None:
    book = facts("Über ÉCOLE", "ΟΔΟΣΑ", "МОСКВА")
    assert [e.number for e in match_all(book, ["école"], limit=5)] == [1]
    assert [e.number for e in match_all(book, ["οδος"], limit=5)] == [2]
    assert [e.number for e in match_all(book, ["москва"], limit=5)] == [3]


@settings(max_examples=200)
@given(st.lists(TEXTS, max_size=6), st.lists(WORDS, max_size=3))
def test_sql_like_over_folded_text_finds_the_same(contents: list[str], keywords: list[str]) -> None:
    base = sqlite3.connect(":memory:")
    base.execute("CREATE TABLE entry (number INTEGER, folded TEXT)")
    base.executemany("INSERT INTO entry VALUES (?, ?)", [(at + 1, fold(text)) for at, text in enumerate(contents)])
    patterns = [escape_like(keyword) for keyword in keywords] + ["%"] * (3 - len(keywords))
    rows = base.execute(
        r"SELECT number FROM entry WHERE folded LIKE ? ESCAPE '\' AND folded LIKE ? ESCAPE '\'"
        r" AND folded LIKE ? ESCAPE '\' ORDER BY number",
        patterns,
    )
    expected = [row[0] for row in rows]
    base.close()
    assert [e.number for e in match_all(facts(*contents), keywords, limit=99)] == expected


@given(st.lists(st.text(alphabet="abß\0 ", max_size=8), max_size=6), st.lists(st.text("abß\0", min_size=1), max_size=3))
def test_the_joined_contents_find_what_a_plain_loop_finds(contents: list[str], keywords: list[str]) -> None:
    folded = [fold(keyword) for keyword in keywords]
    expected = [at for at, content in enumerate(contents) if holds_all(fold(content), folded)]
    assert FoldedContents(contents).holding(keywords) == expected


@given(st.text(), st.text())
def test_folding_keeps_parts_parts(one: str, other: str) -> None:
    assert fold(one + other) == fold(one) + fold(other)


def test_the_index_answers_match_all_like_the_plain_function() -> None:
    book = facts(*FACTS)
    index = BookIndex.build(book)
    for query in ("coffee", "plays the cello", "nothing of this", "the"):
        hits = index.search(query, limit=4, strategy="match_all")
        keywords = [word for word in query.split() if word != "the"]
        assert [hit.number for hit in hits] == [e.number for e in match_all(book, keywords, limit=4)]
