"""Edge cases of the `local` keyword rule."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search import extract_keywords
from search.keywords import STOP_WORDS


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("What is the PORT of staging?", ["what", "port", "staging"]),
        ('it\'s (really) [my] {own} "cat"', ["really", "own", "cat"]),
        ("tabs\tand\nlines", ["tabs", "lines"]),
        ("go to ab abc", ["abc"]),
        ("ты я", ["ты"]),
        ("猫 cat", ["猫", "cat"]),
        ("é éa", ["éa"]),
        ("keep snake_case, kebab-case and a/b/c", ["keep", "snake_case", "kebab-case", "a/b/c"]),
        ("tea tea TEA", ["tea"]),
        ("the and of", []),
        ("“deploy” „Hafen“ «порт» ‹mot›", ["deploy", "hafen", "порт", "mot"]),
        ("¿dónde está? ¡aquí!", ["dónde", "está", "aquí"]),
        ("茶。 水！ （港）、「船」？", ["茶", "水", "港", "船"]),
        ("茶。水", ["茶", "水"]),
        ("ماء، خبز؟ जल। אמר״", ["ماء", "خبز", "जल", "אמר"]),
        ("צה״ל col·legi rock’n’roll", ["צה״ל", "col·legi", "rock", "roll"]),
        ("**deploy** `port` _tea_ --force — … ---", ["deploy", "port", "tea", "force"]),
        ("C++ asp# .NET v2.1 node.js a/b/c 10€ #tag", ["c++", "asp#", "net", "node", "a/b/c", "10€", "tag"]),
        ("*the* “and”", []),
        ("", []),
    ],
)
def test_keywords_are_extracted(text: str, expected: list[str]) -> None:
    assert extract_keywords(text) == expected


def test_there_are_exactly_twenty_stop_words() -> None:
    assert len(STOP_WORDS) == 20


@given(st.text())
def test_no_keyword_is_short_a_stop_word_a_repeat_or_has_punctuation(text: str) -> None:
    keywords = extract_keywords(text)
    assert len(set(keywords)) == len(keywords)
    for keyword in keywords:
        assert len(keyword.encode("utf-8", "surrogatepass")) > 2
        assert keyword not in STOP_WORDS
        assert not set(keyword) & set(".,!?;:()[]{}\"'\n\t ")


@given(st.lists(st.text(alphabet="bcdfgk", min_size=3, max_size=6), max_size=8))
def test_words_keep_their_order(words: list[str]) -> None:
    assert extract_keywords(" ".join(words)) == list(dict.fromkeys(words))


@given(st.text())
def test_extracting_again_from_the_keywords_changes_nothing(text: str) -> None:
    keywords = extract_keywords(text)
    assert extract_keywords(" ".join(keywords)) == keywords
