"""The strict search finds the same entries as LIKE over folded text."""

from __future__ import annotations

import sqlite3

from hypothesis import given, settings
from hypothesis import strategies as st

from search import AnalysisCache, BookIndex, Entry
from search.keywords import FoldedContents, fold
from tests.search.books import FACTS, facts, holds_all, match_all

CACHE = AnalysisCache()
TEXTS = st.text(alphabet="aAbB%_\\ éÉßσςΣ", max_size=12)
WORDS = st.text(alphabet="aAbB%_\\éÉßσςΣ", min_size=1, max_size=4)


def found(book: list[Entry], keywords: list[str], *, limit: int = 5, category: str | None = None) -> list[int]:
    """Return the numbers of the entries that the strict search finds."""
    index = BookIndex.build(book, analysis=CACHE)
    hits = index.search("", keywords=keywords, limit=limit, category=category, strategy="match_all")
    return [hit.number for hit in hits]


def like(keyword: str) -> str:
    r"""Return the folded keyword as a LIKE pattern with `\`, `%` and `_` escaped by `\`."""
    escaped = fold(keyword).replace("\\", r"\\").replace("%", r"\%").replace("_", r"\_")
    return f"%{escaped}%"


def test_every_keyword_must_occur_in_the_content() -> None:
    assert found(facts("red apple", "red car", "green apple"), ["red", "apple"]) == [1]


def test_results_keep_insertion_order_and_are_capped() -> None:
    assert found(facts("one tea", "two tea", "three tea"), ["tea"], limit=2) == [1, 2]


def test_without_keywords_all_entries_are_returned_up_to_the_cap() -> None:
    assert found(facts(*FACTS), [], limit=3) == [1, 2, 3]


def test_an_entrys_keywords_and_category_are_not_searched() -> None:
    assert found(facts("nothing here", keywords=("apple",), category="apple"), ["apple"]) == []


def test_a_category_limits_the_search_to_its_entries() -> None:
    book = [Entry(number=1, content="tea"), Entry(number=2, content="tea", category="food")]
    assert found(book, ["tea"], category="food") == [2]


def test_wildcards_are_literal_characters() -> None:
    book = facts("100% sure", "100 sure", "a_b", "aXb", r"c:\dir")
    assert found(book, ["100%"]) == [1]
    assert found(book, ["a_b"]) == [3]
    assert found(book, ["c:\\"]) == [5]


def test_case_is_ignored_outside_ascii_too() -> None:
    book = facts("Über ÉCOLE", "ΟΔΟΣΑ", "МОСКВА")
    assert found(book, ["école"]) == [1]
    assert found(book, ["οδος"]) == [2]
    assert found(book, ["москва"]) == [3]


@settings(max_examples=100)
@given(st.lists(TEXTS, max_size=6), st.lists(WORDS, max_size=3))
def test_sql_like_over_folded_text_finds_the_same(contents: list[str], keywords: list[str]) -> None:
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE entry (number INTEGER, folded TEXT)")
    database.executemany("INSERT INTO entry VALUES (?, ?)", [(at + 1, fold(text)) for at, text in enumerate(contents)])
    patterns = [like(keyword) for keyword in keywords] + ["%"] * (3 - len(keywords))
    rows = database.execute(
        r"SELECT number FROM entry WHERE folded LIKE ? ESCAPE '\' AND folded LIKE ? ESCAPE '\'"
        r" AND folded LIKE ? ESCAPE '\' ORDER BY number",
        patterns,
    )
    expected = [row[0] for row in rows]
    database.close()
    assert [at + 1 for at in FoldedContents(contents).holding(keywords)] == expected


@given(st.lists(st.text(alphabet="abß\0 ", max_size=8), max_size=6), st.lists(st.text("abß\0", min_size=1), max_size=3))
def test_the_joined_contents_find_what_a_plain_loop_finds(contents: list[str], keywords: list[str]) -> None:
    expected = [at for at, content in enumerate(contents) if holds_all(content, keywords)]
    assert FoldedContents(contents).holding(keywords) == expected


@given(st.text(), st.text())
def test_folding_two_parts_equals_folding_the_whole(left: str, right: str) -> None:
    assert fold(left + right) == fold(left) + fold(right)


def test_the_index_answers_match_all_like_a_plain_loop() -> None:
    book = facts(*FACTS)
    for query in ("coffee", "plays the cello", "nothing of this", "the"):
        keywords = [word for word in query.split() if word != "the"]
        assert found(book, keywords, limit=4) == [e.number for e in match_all(book, keywords, limit=4)]
