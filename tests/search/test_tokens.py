"""How text in several scripts is split into search terms."""

from __future__ import annotations

import time
from datetime import date

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from search.times import NamedTime, asks_when, named_times, says_when
from search.tokens import MAX_WORD_CHARS, guess_language, tokens_of


def terms(text: str) -> list[str]:
    return [token.term for token in tokens_of(text)]


def shared(left: str, right: str) -> set[str]:
    return set(terms(left)) & set(terms(right))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("she was painting", "two paintings"),
        ("Die Wohnungen sind groß", "eine neue Wohnung ist frei"),
        ("Les chevaux sont dans le pré, le cheval aussi", "J'ai un cheval dans mon jardin"),
        ("Mis hermanas viven en la costa", "Mi hermana está en la casa"),
        ("Он играет на гитаре", "я учу игру на гитаре, моя гитара"),
        ("宁波春节停工", "明年春节什么时候放假?"),
        ("گربه‌ام سفید است", "گربه من"),
        ("Café au lait", "cafe"),
        ("живёт в Москве", "живет"),
    ],
)
def test_forms_of_a_word_share_a_term(left: str, right: str) -> None:
    assert shared(left, right)


@pytest.mark.parametrize(
    ("text", "whole", "part"),
    [
        ("read parcel.events.v2 now", "parcel.events.v2", "v2"),
        ("TestRetryAgain fails", "testretryagain", "retri"),
        ("call 555-0148", "555-0148", "0148"),
        ("see enable_dark_mode", "enable_dark_mode", "dark"),
        ("src/tools/report.py", "src/tools/report.py", "report"),
    ],
)
def test_a_compound_is_split_and_kept_whole(text: str, whole: str, part: str) -> None:
    assert whole in terms(text)
    assert part in terms(text)


def test_question_words_and_function_words_are_dropped() -> None:
    assert terms("What is it that they did when we were there?") == []
    assert terms("Was ist das und wo bin ich?") == []
    assert terms("什么时候") == []


def test_possessives_and_contractions_are_removed() -> None:
    assert terms("Ana's") == terms("Ana")
    assert terms("don't") == []


def test_names_are_recognised_by_capitals_within_a_sentence_or_digits() -> None:
    named = {token.surface for token in tokens_of("Yesterday Momo saw a bird. Then E15 blinked.") if token.is_name}
    assert named == {"Momo", "E15"}


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("The cat is on the table", "english"),
        ("Die Katze liegt auf dem Tisch", "german"),
        ("Le chat est sur la table", "french"),
        ("El gato está en la mesa", "spanish"),
        ("Pixel 8", "english"),
        ("", "english"),
    ],
)
def test_the_language_is_guessed_from_function_words(text: str, language: str) -> None:
    assert guess_language(text) == language


@given(st.text())
@example("ـ")
def test_terms_have_a_maximum_length(text: str) -> None:
    for token in tokens_of(text):
        assert 0 < len(token.term) <= 4 * MAX_WORD_CHARS
        assert token.surface


@given(st.text())
def test_splitting_is_deterministic(text: str) -> None:
    assert tokens_of(text) == tokens_of(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("on 3 August, 2023", (NamedTime(2023, 8, 3),)),
        ("on August 3rd 2023", (NamedTime(2023, 8, 3),)),
        ("2023-08-03", (NamedTime(2023, 8, 3),)),
        ("am 3.8.2023", (NamedTime(2023, 8, 3),)),
        ("3. August 2023", (NamedTime(2023, 8, 3),)),
        ("3 août 2023", (NamedTime(2023, 8, 3),)),
        ("3 августа 2023", (NamedTime(2023, 8, 3),)),
        ("2023年8月3日", (NamedTime(2023, 8, 3),)),
        ("in March 2024", (NamedTime(2024, 3, None),)),
        ("what happened in May", (NamedTime(None, 5, None),)),
        ("May I march in?", ()),
        ("31 February 2023", ()),
        ("2023-13-40", ()),
        ("2023-08-00 or 0.8.2023 or 8月0日", ()),
        ("bu JULİ içinde", ()),
    ],
)
def test_dates_and_months_are_recognised(text: str, expected: tuple[NamedTime, ...]) -> None:
    assert named_times(text) == expected


@given(st.text(alphabet="0123456789-./年月日 MayAugust", max_size=20))
def test_any_text_gives_valid_dates(text: str) -> None:
    for named in named_times(text):
        assert date(named.year or 2000, named.month, 1 if named.day is None else named.day)


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("When did she leave?", True),
        ("Wann kommt der Zug?", True),
        ("什么时候放假?", True),
        ("How long have you lived there?", True),
        ("What did she do when it rained?", False),
        ("Who left?", False),
    ],
)
def test_questions_about_a_time_are_recognised(text: str, asks: bool) -> None:
    assert asks_when(text) is asks


def test_numbers_without_end_take_little_time() -> None:
    begun = time.process_time()
    assert not says_when("一" * 50_000)
    assert says_when("十一" * 50_000 + "月")
    assert time.process_time() - begun < 2  # looking on from each of them takes half a minute


@pytest.mark.parametrize(
    ("text", "says"), [("It was yesterday", True), ("at 18:00", True), ("letzte Woche", True), ("I like tea", False)]
)
def test_statements_with_a_time_are_recognised(text: str, says: bool) -> None:
    assert says_when(text) is says
